//! Single buckets under a quota of the caller.

use super::Limiter;
use crate::ask::{self, Throttle, ThrottleOutcome};
use crate::error::CheckError;
use crate::rules::Rules;
use std::time::Duration;
use tidegate_core::Store;

impl<S: Store> Limiter<S> {
    /// Charges a single bucket under a quota that the caller supplies.
    ///
    /// If the store does not answer, the store's `on_failure` applies: decided in memory at a share of the
    /// quota, allowed, refused, or an error. In [shadow mode](Rules::is_shadow) no caller is refused;
    /// [`ThrottleOutcome::outcome`] is the outcome of the bucket.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer and its `on_failure` is `error`.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{LimitSpec, Limiter, Throttle};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
    /// let (rules, quota) = (limiter.rules()?, Throttle::quota(5, 1, 60)?);
    /// let ask = |quantity| Throttle { key: b"ann", quota: &quota, quantity };
    /// assert_eq!(limiter.throttle(&rules, &ask(2)).await?.outcome.remaining, 3);
    /// assert!(!limiter.throttle(&rules, &ask(4)).await?.is_allowed());
    /// // A quantity of 0 reads the bucket: the refusal took nothing.
    /// assert_eq!(limiter.throttle(&rules, &ask(0)).await?.outcome.remaining, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn throttle(
        &self,
        rules: &Rules,
        throttle: &Throttle<'_>,
    ) -> Result<ThrottleOutcome, CheckError> {
        ask::charge(&self.state.backend, rules, throttle).await
    }

    /// Like [`throttle`](Self::throttle), if the store decides immediately. `None` means that nothing was
    /// done: call [`throttle`](Self::throttle).
    #[inline]
    pub fn throttle_at_once(
        &self,
        rules: &Rules,
        throttle: &Throttle<'_>,
    ) -> Option<ThrottleOutcome> {
        ask::charge_at_once(&self.state.backend, rules, throttle)
    }

    /// Returns the time until the bucket of `key` is full, under any quota it was used with. Returns `None`
    /// if the store has no state for it: it is full, or was never used.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer in time.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{LimitSpec, Limiter, Throttle};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
    /// let rules = limiter.rules()?;
    /// assert_eq!(limiter.throttle_reset_after(&rules, b"ann").await?, None);
    ///
    /// let quota = Throttle::quota(2, 1, 60)?;
    /// limiter.throttle(&rules, &Throttle { key: b"ann", quota: &quota, quantity: 1 }).await?;
    /// assert!(limiter.throttle_reset_after(&rules, b"ann").await?.is_some());
    /// assert!(limiter.reset_throttle(&rules, b"ann").await?);
    /// assert_eq!(limiter.throttle_reset_after(&rules, b"ann").await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn throttle_reset_after(
        &self,
        rules: &Rules,
        key: &[u8],
    ) -> Result<Option<Duration>, CheckError> {
        ask::reset_after(&self.state.backend, rules, key).await
    }

    /// Resets the bucket of `key`, under any quota it was used with. Returns true if the store had state for
    /// it.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer in time.
    pub async fn reset_throttle(&self, rules: &Rules, key: &[u8]) -> Result<bool, CheckError> {
        ask::reset(&self.state.backend, rules, key).await
    }
}
