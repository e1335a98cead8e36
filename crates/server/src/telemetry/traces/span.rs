//! What is recorded of a request: a span, and those of what was done within it.

use std::time::Duration;

/// One thing that was done, when, and how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// Since 1970, in microseconds.
    pub(super) began_us: u64,
    pub(super) took: Duration,
    pub(super) attributes: Attributes,
    pub(super) is_error: bool,
}

/// What was done for one request: the request itself first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) trace: u128,
    pub(super) spans: Vec<Span>,
}

/// Names of the configuration, words of ours and numbers: nothing that a client has written.
pub(super) type Attributes = Vec<(&'static str, AttributeValue)>;

/// What an attribute says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    Word(&'static str),
    Text(String),
    Number(u64),
}

/// On which side of a call a span is. The numbers are OTLP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
