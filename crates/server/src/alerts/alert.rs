//! An alert.

use super::form;
use crate::wire::json::write_string;
use bytes::Bytes;
use tidegate::{Clock, SystemClock};
use tidegate_policy::alerts::{AlertFormat, AlertKind};

/// The maximum length of a name or a message in an alert.
const TEXT_MAX: usize = 512;

/// Something that requires action by an operator. It contains no secret: subjects are keys in the form
/// shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alert {
    pub(crate) kind: AlertKind,
    /// The subject: an alert with the same subject is not repeated for a while.
    pub(crate) subject: String,
    /// A sentence for people.
    pub(crate) message: String,
}

impl Alert {
    pub(crate) fn new(kind: AlertKind, subject: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            subject: shortened(subject.to_owned()),
            message: shortened(message.into()),
        }
    }

    /// Returns the content type for a format.
    pub(super) fn content_type(format: AlertFormat) -> &'static str {
        match format {
            AlertFormat::Json => "application/json",
            AlertFormat::Form => "application/x-www-form-urlencoded",
        }
    }

    /// Returns the body for a format.
    pub(super) fn body(&self, format: AlertFormat) -> Bytes {
        match format {
            AlertFormat::Json => self.json().into(),
            AlertFormat::Form => form::body(&self.message).into(),
        }
    }

    fn json(&self) -> Vec<u8> {
        let mut out = b"{\"kind\":".to_vec();
        write_string(self.kind.as_str(), &mut out);
        out.extend_from_slice(b",\"subject\":");
        write_string(&self.subject, &mut out);
        out.extend_from_slice(b",\"message\":");
        write_string(&self.message, &mut out);
        let at_ms = SystemClock::new().now().as_micros() / 1_000;
        out.extend_from_slice(format!(",\"at_ms\":{at_ms}}}").as_bytes());
        out
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
    use tidegate_policy::alerts::{AlertFormat, AlertKind};

    #[test]
    fn an_alert_is_json_however_it_is_worded() {
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
