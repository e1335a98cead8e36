//! Whom to tell when something needs a person.

use crate::config::Secret;
use std::time::Duration;

/// Whom to tell, and of what (`alerts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alerts {
    /// Where alerts are posted. A secret: such addresses often carry a token.
    pub webhook: Secret,
    /// How they are written.
    pub format: AlertFormat,
    /// What is told of; everything unless told.
    pub on: Vec<AlertKind>,
    /// How long one delivery may take.
    pub timeout: Duration,
    /// For how long the same is not told again.
    pub repeat: Duration,
}

impl Alerts {
    /// How long a delivery may take unless told.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// For how long the same is not told again unless told.
    pub const REPEAT: Duration = Duration::from_mins(10);
}

/// How an alert is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlertFormat {
    /// A JSON object: what happened, to whom, when, and a sentence.
    #[default]
    Json,
    /// A form with `message` and `parse_mode=Markdown`, as bots for chats take it.
    Form,
}

/// What alerts are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlertKind {
    /// An address was banned.
    Ban,
    /// A limit is nearly used up, or is.
    Threshold,
    /// The store is away, or back.
    Store,
    /// A list, plans or the policy of a source could not be loaded for long, or is again.
    Stale,
    /// A configuration was rejected, or is valid again.
    Config,
}

impl AlertKind {
    /// Every kind and its word.
    pub const ALL: [(&'static str, Self); 5] = [
        ("ban", Self::Ban),
        ("threshold", Self::Threshold),
        ("store", Self::Store),
        ("stale", Self::Stale),
        ("config", Self::Config),
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, kind)| *kind == self)
            .map_or("", |(word, _)| word)
    }
}
