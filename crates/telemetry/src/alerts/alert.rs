//! An alert.

use super::form;
use bytes::Bytes;
use serde::Serialize;
use std::fmt;
use tidegate::{Clock, SystemClock, Timestamp};
use tidegate_config::alerts::{AlertFormat, AlertKind};

/// The maximum length of a name or a message in an alert.
const TEXT_MAX: usize = 512;

/// Something that requires action by an operator. What is sent and printed contains no secret: subjects are keys
/// in the form shown to people.
#[derive(Clone, PartialEq, Eq)]
pub struct Alert {
    /// The kind of the alert.
    pub kind: AlertKind,
    /// The subject: an alert with the same subject is not repeated for a while.
    pub subject: String,
    /// A sentence for people.
    pub message: String,
    /// The cause, if it contains more than the subject: it may contain a secret, and is neither sent nor printed.
    cause: Option<String>,
    /// The window that the cause belongs to, if it ends with one.
    pub(super) window: Option<AlertWindow>,
}

/// The window of a limit in which something happened: in the next one it is news. Both instants are by the clock of
/// the component that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertWindow {
    /// The time of the event.
    pub at: Timestamp,
    /// The end of the window.
    pub ends: Timestamp,
}

impl fmt::Debug for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alert")
            .field("kind", &self.kind)
            .field("subject", &self.subject)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

/// The JSON of an alert.
#[derive(Serialize)]
struct AlertBody<'a> {
    kind: &'static str,
    subject: &'a str,
    message: &'a str,
    at_ms: u64,
}

impl Alert {
    /// Creates an alert. Long texts are cut.
    pub fn new(kind: AlertKind, subject: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            subject: shortened(subject.to_owned()),
            message: shortened(message.into()),
            cause: None,
            window: None,
        }
    }

    /// Sets the cause: alerts of another cause are no repetition of this one, although their subjects, in which
    /// secrets are masked, may be the same.
    #[must_use]
    pub fn caused_by(self, cause: String) -> Self {
        Self {
            cause: Some(cause),
            ..self
        }
    }

    /// Sets the window that the cause belongs to: after its end, the same alert is no repetition.
    #[must_use]
    pub fn within(self, window: AlertWindow) -> Self {
        Self {
            window: Some(window),
            ..self
        }
    }

    /// Returns the text in which it differs from other alerts.
    pub(super) fn cause(&self) -> &str {
        self.cause.as_deref().unwrap_or(&self.subject)
    }

    /// Returns the content type for a format.
    pub(super) fn content_type(format: AlertFormat) -> &'static str {
        match format {
            AlertFormat::Json => "application/json",
            AlertFormat::Form => "application/x-www-form-urlencoded",
        }
    }

    /// Returns the body for a format.
    pub fn body(&self, format: AlertFormat) -> Bytes {
        match format {
            AlertFormat::Json => self.json().into(),
            AlertFormat::Form => form::body(&self.message).into(),
        }
    }

    fn json(&self) -> Vec<u8> {
        let body = AlertBody {
            kind: self.kind.as_str(),
            subject: &self.subject,
            message: &self.message,
            at_ms: SystemClock::new().now().as_micros() / 1_000,
        };
        // Texts and a number can always be written.
        serde_json::to_vec(&body).unwrap_or_default()
    }
}

fn shortened(mut text: String) -> String {
    let mut end = TEXT_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::Alert;
    use tidegate_config::alerts::{AlertFormat, AlertKind};

    #[test]
    fn an_alert_is_json_for_any_text() {
        let alert = Alert::new(AlertKind::Ban, "192.0.2.1", "it said \"no\"\n");
        let body = alert.body(AlertFormat::Json);
        let read: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(read["kind"], "ban");
        assert_eq!(read["subject"], "192.0.2.1");
        assert_eq!(read["message"], "it said \"no\"\n");
        assert!(read["at_ms"].as_u64() > Some(1_700_000_000_000));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let alert = Alert::new(AlertKind::Stale, &"ä".repeat(300), "x");
        assert_eq!(alert.subject.chars().count(), 256);
        let odd = format!("x{}", "ä".repeat(300));
        assert_eq!(Alert::new(AlertKind::Stale, &odd, "x").subject.len(), 511);
    }
}
