//! The recorded data of a request: its span, and the spans within it.

use std::time::Duration;

/// One operation, with its time and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// The start in microseconds since 1970.
    pub(super) began_us: u64,
    pub(super) took: Duration,
    pub(super) attributes: Attributes,
    pub(super) is_error: bool,
}

/// The spans of one request: its own comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpans {
    pub(super) trace: u128,
    pub(super) spans: Vec<Span>,
}

/// Names of the configuration, words defined by Tidegate, and numbers: nothing that a client has written.
pub(super) type Attributes = Vec<(&'static str, AttributeValue)>;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A fixed word.
    Word(&'static str),
    /// Any text.
    Text(String),
    /// A number.
    Number(u64),
}

/// The side of a call that a span describes. The numbers are OTLP's.
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
