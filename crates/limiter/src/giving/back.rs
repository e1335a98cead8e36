//! Giving back what a decision has charged, for whoever asked.

use super::Charges;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::limiter::Limiter;
use std::sync::Arc;
use tidegate_core::Store;

impl<S: Store> Limiter<S> {
    /// Gives back what `decision` charged, as far as that is safe: because what it allowed did not
    /// happen after all. Tells whether there was anything to give back; each decision, clones
    /// included, is given back at most once, even if this fails.
    ///
    /// Only limits that are `refundable` are given back, and all of a policy in which requests wait.
    /// Those who wait behind it in the same bucket move up. A store that others share is given nothing
    /// back of token buckets that requests wait for: those who wait elsewhere could not move up, and
    /// would pass together with whoever gets what has come free.
    ///
    /// Nothing is given back of a decision that another limiter made, or that was made without the
    /// store.
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

    /// The same without waiting, if the store does that; `None`, from any other, means that nothing
    /// was done.
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
