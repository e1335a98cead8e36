//! A store whose callers have another clock.

use std::time::Duration;
use tidegate::{Clock, ManualClock, Store, StoreError, Timestamp};
use tidegate_core::{Ask, Atomicity, Inspection, Quota, Reply, SharedState};

/// A store as a caller sees it whose clock is off: windows are chosen by that clock, and decisions by the store's.
#[derive(Clone, Debug)]
pub(crate) struct SkewedStore<S> {
    pub(crate) store: S,
    pub(crate) clock: ManualClock,
    /// The hours by which the caller's clock is ahead.
    pub(crate) ahead_hours: i64,
}

impl<S: Store> Store for SkewedStore<S> {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        self.store.decide(asks).await
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        self.store.inspect(bucket, quota).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        self.store.reset(bucket, quota).await
    }

    fn timeout(&self) -> Option<Duration> {
        self.store.timeout()
    }

    fn can_fail(&self) -> bool {
        self.store.can_fail()
    }

    fn atomicity(&self) -> Atomicity {
        self.store.atomicity()
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        self.store.refund(asks);
    }

    fn present(&self) -> Option<Timestamp> {
        let now = self.clock.now().as_micros();
        let ahead = self.ahead_hours * 3_600_000_000;
        Some(Timestamp::from_micros(now.saturating_add_signed(ahead)))
    }

    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        self.store.decide_at_once(asks)
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        self.store.shared_state()
    }
}
