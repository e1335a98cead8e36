//! A check of one bucket by the caller's own quota.

use super::Decider;
use std::time::Duration;
use tidegate::{CheckError, Rules, Store, Throttle, ThrottleOutcome};
use tracing::debug;

impl<S: Store> Decider<S> {
    /// Checks one bucket by the caller's own quota. It is not counted: the caller does
    /// that for many at once, because counting takes about as long.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::throttle`](tidegate::Limiter::throttle).
    pub async fn throttle(
        &self,
        rules: &Rules,
        throttle: &Throttle<'_>,
    ) -> Result<ThrottleOutcome, CheckError> {
        noted(self.limiter.throttle(rules, throttle).await)
    }

    /// Checks one bucket by the caller's own quota, if the store decides immediately. `None` means that
    /// nothing was done.
    #[inline]
    pub fn throttle_at_once(
        &self,
        rules: &Rules,
        throttle: &Throttle<'_>,
    ) -> Option<ThrottleOutcome> {
        self.limiter.throttle_at_once(rules, throttle)
    }

    /// Returns the time until the bucket of `key` is full, or `None` if the store has no record of it.
    pub(crate) async fn throttle_reset_after(
        &self,
        rules: &Rules,
        key: &[u8],
    ) -> Result<Option<Duration>, CheckError> {
        noted(self.limiter.throttle_reset_after(rules, key).await)
    }

    /// Resets the bucket of `key`. Returns true if the store had a record of it.
    pub(crate) async fn reset_throttle(
        &self,
        rules: &Rules,
        key: &[u8],
    ) -> Result<bool, CheckError> {
        noted(self.limiter.reset_throttle(rules, key).await)
    }
}

/// Logs a failure of the store.
fn noted<T>(outcome: Result<T, CheckError>) -> Result<T, CheckError> {
    if let Err(CheckError::Store(error)) = &outcome {
        debug!(event = "throttle_failed", %error, "store failed; no bucket was read or changed");
    }
    outcome
}
