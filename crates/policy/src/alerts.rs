//! Alerts to operators, posted to a webhook.

use crate::text::Secret;
use std::time::Duration;

/// The webhook that receives alerts, and their kinds (`alerts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alerts {
    /// The URL that receives alerts. It is a secret: such URLs often contain a token.
    pub webhook: Secret,
    /// The format of the request body.
    pub format: AlertFormat,
    /// The kinds of events that are sent. Default: all.
    pub on: Vec<AlertKind>,
    /// The timeout of one delivery.
    pub timeout: Duration,
    /// The time during which the same alert is not repeated.
    pub repeat: Duration,
}

impl Alerts {
    /// The default timeout of a delivery.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// The default time during which the same alert is not repeated.
    pub const REPEAT: Duration = Duration::from_secs(600);
}

/// The format of an alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlertFormat {
    /// A JSON object: the event, its subject, the time, and a sentence.
    #[default]
    Json,
    /// A form with `message` and `parse_mode=Markdown`, as chat bots accept it.
    Form,
}

/// The kinds of events that alerts report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlertKind {
    /// An address was banned.
    Ban,
    /// A limit is nearly used up, or used up.
    Threshold,
    /// The store became unreachable, or is reachable again.
    Store,
    /// A list, plans or the policy of a source could not be loaded for a long time, or loads again.
    Stale,
    /// A configuration was rejected, or is valid again.
    Config,
}

impl AlertKind {
    /// Every kind with its name in the configuration.
    pub const ALL: [(&'static str, Self); 5] = [
        ("ban", Self::Ban),
        ("threshold", Self::Threshold),
        ("store", Self::Store),
        ("stale", Self::Stale),
        ("config", Self::Config),
    ];

    /// Returns the kind's name in the configuration.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, kind)| *kind == self)
            .map_or("", |(word, _)| word)
    }
}
