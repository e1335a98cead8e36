//! A request of the past: what was asked, and when.

use crate::wire::question::JsonQuestion;
use std::borrow::Cow;
use tidegate::Timestamp;

/// A request of the past, as one line of a trace or an access log tells it.
#[derive(Debug, Default)]
pub struct Event<'a> {
    /// When it came in.
    pub at: Timestamp,
    /// What is known of it.
    pub question: JsonQuestion<'a>,
    /// What `X-Forwarded-For` said. It counts only if the client is a trusted proxy.
    pub forwarded: Option<Cow<'a, str>>,
}
