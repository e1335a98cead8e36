//! The argument of observers.

use crate::RequestHead;
use std::fmt;
use tidegate::{CheckError, Decision};

/// A request and its decision, for [`RateLimitLayer::observe`](crate::RateLimitLayer::observe).
#[derive(Clone, Copy)]
pub struct Observation<'o> {
    pub(crate) head: RequestHead<'o>,
    pub(crate) decided: Result<&'o Decision, &'o CheckError>,
    pub(crate) token_refused: Option<&'static str>,
}

impl<'o> Observation<'o> {
    /// Returns the head of the request.
    pub fn head(self) -> RequestHead<'o> {
        self.head
    }

    /// Returns the decision, or the reason why there is none.
    pub fn decided(self) -> Result<&'o Decision, &'o CheckError> {
        self.decided
    }

    /// Returns the reason why the token (JWT) of the request was rejected: one of a few phrases, for a
    /// metric. The request is decided all the same, as one without a token.
    pub fn token_refused(self) -> Option<&'static str> {
        self.token_refused
    }
}

impl fmt::Debug for Observation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation")
            .field("head", &self.head)
            .field("is_allowed", &self.decided.map(Decision::is_allowed))
            .field("token_refused", &self.token_refused)
            .finish_non_exhaustive()
    }
}
