//! What comes of reserving.

use crate::decision::Decision;
use std::fmt;
use std::time::Duration;

/// A decision and, if it is to let pass, the id by which what it charged is settled later: by
/// [`Limiter::commit`](crate::Limiter::commit) or [`Limiter::refund`](crate::Limiter::refund), from
/// any instance that shares the store.
#[derive(Clone)]
pub struct Reservation {
    decision: Decision,
    held: Option<(String, Duration)>,
}

impl Reservation {
    pub(super) fn refused(decision: Decision) -> Self {
        Self {
            decision,
            held: None,
        }
    }

    pub(super) fn held(decision: Decision, id: String, ttl: Duration) -> Self {
        Self {
            decision,
            held: Some((id, ttl)),
        }
    }

    /// Whether the request may pass; then there is an [`id`](Self::id).
    pub fn is_allowed(&self) -> bool {
        self.held.is_some()
    }

    /// The decision: which limit is reported, what remains, when to come back.
    ///
    /// [`Limiter::give_back`](crate::Limiter::give_back) gives nothing of it back; that is what the
    /// id is for.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The id, if the request may pass. It says nothing to whoever has no seal, and is for whoever
    /// may settle: whoever has it can.
    pub fn id(&self) -> Option<&str> {
        self.held.as_ref().map(|(id, _)| id.as_str())
    }

    /// How long it lives, if the request may pass. After that, nothing of the estimate comes back.
    pub fn expires_after(&self) -> Option<Duration> {
        self.held.as_ref().map(|(_, ttl)| *ttl)
    }
}

// By hand: whoever has the id can settle.
impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("decision", &self.decision)
            .field("expires_after", &self.expires_after())
            .finish_non_exhaustive()
    }
}
