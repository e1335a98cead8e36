//! A past request, with its time.

use std::borrow::Cow;
use tidegate::Timestamp;
use tidegate_frontends::wire::question::JsonQuestion;

/// A past request, from one line of a trace or an access log.
#[derive(Debug, Default)]
pub struct Event<'a> {
    /// The time of the request.
    pub at: Timestamp,
    /// The known fields of the request.
    pub question: JsonQuestion<'a>,
    /// The value of `X-Forwarded-For`. It counts only if the client is a trusted proxy.
    pub forwarded: Option<Cow<'a, str>>,
}
