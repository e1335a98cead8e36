//! One bucket by a quota that the caller brings.

use super::Decider;
use crate::telemetry::resp::Tally;
use tidegate::{CheckError, Rules, Store, Throttle, Throttled};
use tracing::debug;

impl<S: Store> Decider<S> {
    /// Asks one bucket, by a quota of the caller's own. Counted only when the caller
    /// says so (`count_throttled`).
    pub async fn throttle(
        &self,
        rules: &Rules,
        throttle: &Throttle<'_>,
    ) -> Result<Throttled, CheckError> {
        let throttled = self.limiter.throttle(rules, throttle).await;
        if let Err(CheckError::Store(error)) = &throttled {
            debug!(%error, "a bucket could not be asked");
        }
        throttled
    }

    /// The same, if the store decides at once; `None` means that nothing was done.
    #[inline]
    pub fn throttle_at_once(&self, rules: &Rules, throttle: &Throttle<'_>) -> Option<Throttled> {
        self.limiter.throttle_at_once(rules, throttle)
    }

    /// Counts what came of calls: of many at once, for a call takes hardly longer than to count it.
    pub(crate) fn count_throttled(&self, tally: &Tally) {
        self.metrics.resp.add(tally);
    }
}
