//! The result of reserving.

use crate::decision::Decision;
use std::fmt;
use std::time::Duration;

/// A decision and, if it allows the request, the id for settling its charges later: by
/// [`Limiter::commit`](crate::Limiter::commit) or [`Limiter::refund`](crate::Limiter::refund), at any
/// instance that shares the store.
///
/// The limiter keeps no list of reservations: the id carries the charges, encrypted. A reservation that is
/// never settled stays charged, and costs nothing else.
#[derive(Clone)]
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use tidegate::{LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("tokens").band("1000/h"))
///     .reserve(Duration::from_secs(60))
///     .build()?;
/// let first = limiter.reserve(&Request::new().cost(800), Duration::from_secs(10)).await?;
/// assert!(first.is_allowed() && first.id().is_some());
/// assert_eq!(first.expires_after(), Some(Duration::from_secs(10)));
///
/// // There is no room for a second: no id, and a decision that names the limit.
/// let second = limiter.reserve(&Request::new().cost(800), None).await?;
/// assert!(second.id().is_none());
/// assert_eq!(second.decision().limit(), Some("tokens"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Returns true if the request may pass; then there is an [`id`](Self::id).
    pub fn is_allowed(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the decision: the reported limit, the remaining units, when to retry.
    ///
    /// [`Limiter::refund_decision`](crate::Limiter::refund_decision) refunds none of its charges; use the id for that.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the id, if the request may pass. Its contents are encrypted. Any holder of the id can settle
    /// the reservation, so pass it only to callers that may.
    pub fn id(&self) -> Option<&str> {
        self.held.as_ref().map(|(id, _)| id.as_str())
    }

    /// Returns its time to live, if the request may pass. After that, nothing of the estimate is refunded.
    pub fn expires_after(&self) -> Option<Duration> {
        self.held.as_ref().map(|(_, ttl)| *ttl)
    }
}

// Implemented by hand: any holder of the id can settle the reservation.
impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("decision", &self.decision)
            .field("expires_after", &self.expires_after())
            .finish_non_exhaustive()
    }
}
