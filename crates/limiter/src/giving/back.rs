//! Refunding the charges of a decision, for callers.

use super::Charges;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::limiter::Limiter;
use std::sync::Arc;
use tidegate_core::Store;

impl<S: Store> Limiter<S> {
    /// Refunds the charges of `decision` as far as that is safe, if the allowed request did not happen after
    /// all. Returns true if there was anything to refund. Each decision, clones included, is refunded at most
    /// once, even if this fails.
    ///
    /// Only charges of `refundable` limits are refunded, and all charges of a policy in which requests wait.
    /// Requests that wait behind it in the same bucket move up. In a shared store, token buckets that
    /// requests wait for are not refunded: requests that wait in other instances could not move up, and would
    /// pass together with a newcomer that takes the freed units.
    ///
    /// Nothing is refunded for a decision that another limiter made, or that was made without the store.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("jobs").band("1/h").refundable())
    ///     .build()?;
    /// let decision = limiter.check(&Request::new()).await?;
    /// // The job could not be started.
    /// assert!(limiter.give_back(&decision).await?);
    /// assert!(!limiter.give_back(&decision).await?);
    /// assert!(limiter.check(&Request::new()).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn give_back(&self, decision: &Decision) -> Result<bool, CheckError> {
        match self.to_give_back(decision) {
            Some(charges) if charges.claim() => {
                let given = self.return_charges(charges).await;
                given.map(|()| true).map_err(CheckError::Store)
            }
            _ => Ok(false),
        }
    }

    /// Like [`give_back`](Self::give_back), without waiting. `None` means that the store cannot decide
    /// immediately and nothing was done.
    pub fn give_back_at_once(&self, decision: &Decision) -> Option<bool> {
        if self.waits() {
            return None;
        }
        match self.to_give_back(decision) {
            Some(charges) if charges.claim() => self.return_at_once(charges).map(|()| true),
            _ => Some(false),
        }
    }

    fn to_give_back<'a>(&self, decision: &'a Decision) -> Option<&'a Arc<Charges>> {
        let charges = decision.charges()?;
        let is_ours = self.is_owner(decision.owner());
        debug_assert!(is_ours, "this decision is another limiter's");
        (is_ours && self.is_returnable(charges)).then_some(charges)
    }
}
