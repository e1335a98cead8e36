//! The charges of a decision, and its permits, for callers that see the end of its request.

use super::Decision;
use crate::charges::Charges;
use std::fmt;
use std::sync::Arc;

/// The permits of a request in flight. Dropping the last clone of it and of its [`Decision`]
/// releases them.
///
/// Limits with `concurrent` count a request from its decision until then. So keep the permit as long as the
/// request is in flight, and give it to the task that ends it.
///
/// ```
/// use tidegate::{LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("jobs").concurrent(1)).build()?;
/// let permit = limiter.check_now(&Request::new())?.into_permit().expect("there is room");
/// assert!(!limiter.check_now(&Request::new())?.is_allowed(), "one job at a time");
/// drop(permit);
/// assert!(limiter.check_now(&Request::new())?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "dropping it releases the permits"]
pub struct Permit {
    charges: Arc<Charges>,
}

impl Permit {
    /// Returns the permit of these charges, if they hold any.
    pub(crate) fn of(charges: &Arc<Charges>) -> Option<Self> {
        charges.permits().are_held().then(|| Self {
            charges: Arc::clone(charges),
        })
    }

    /// Releases the permits now, even if there are clones. Returns true if this call did: they are released once.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("jobs").concurrent(1)).build()?;
    /// let decision = limiter.check_now(&Request::new())?;
    /// let permit = decision.permit().expect("there is room");
    /// assert!(permit.release() && !permit.release());
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[expect(
        clippy::must_use_candidate,
        reason = "most callers do not care who was first"
    )]
    pub fn release(&self) -> bool {
        self.charges.permits().release()
    }

    /// Returns true if the permits were not released yet.
    pub fn is_held(&self) -> bool {
        self.charges.permits().are_held()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("is_held", &self.is_held())
            .finish_non_exhaustive()
    }
}

impl Decision {
    /// Records the charges of this decision.
    pub(crate) fn charge(&mut self, charges: Arc<Charges>) {
        self.charges = Some(charges);
    }

    /// Returns the refundable charges, if there are any.
    pub(crate) fn charges(&self) -> Option<&Arc<Charges>> {
        self.charges.as_ref()
    }

    /// Returns the permits that the request holds at limits of requests in flight (`concurrent`); `None` if it holds
    /// none, or they were released. They are released when this decision and all permits and clones are dropped.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("jobs").concurrent(2)).build()?;
    /// let decision = limiter.check_now(&Request::new())?;
    /// assert!(decision.permit().is_some_and(|permit| permit.is_held()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn permit(&self) -> Option<Permit> {
        Permit::of(self.charges.as_ref()?)
    }

    /// Returns the [permits](Self::permit), without the rest.
    pub fn into_permit(self) -> Option<Permit> {
        self.permit()
    }
}
