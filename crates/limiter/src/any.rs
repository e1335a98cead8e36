//! The store that a configuration names, chosen at run time.

use std::time::Duration;
use tidegate_core::{
    Ask, Atomicity, Clock, Inspection, Quota, Reply, SharedState, Store, StoreError,
};
use tidegate_memory::{MemoryStore, SystemClock};

/// The store that a configuration names, chosen at run time.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyStore<C = SystemClock> {
    /// Buckets in memory.
    Memory(MemoryStore<C>),
    /// Buckets in Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(crate::redis::RedisStore),
}

/// Evaluates an expression with the store of the variant.
macro_rules! of {
    ($any:expr, $store:ident => $result:expr) => {
        match $any {
            AnyStore::Memory($store) => $result,
            #[cfg(feature = "redis")]
            AnyStore::Redis($store) => $result,
        }
    };
}

impl<C: Clock> Store for AnyStore<C> {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        #[cfg(debug_assertions)]
        tidegate_policy::work::count_store_call();
        of!(self, store => store.decide(asks).await)
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        of!(self, store => store.inspect(bucket, quota).await)
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        of!(self, store => store.reset(bucket, quota).await)
    }

    fn timeout(&self) -> Option<Duration> {
        of!(self, store => store.timeout())
    }

    fn can_fail(&self) -> bool {
        of!(self, store => store.can_fail())
    }

    fn has_machine_clock(&self) -> bool {
        of!(self, store => store.has_machine_clock())
    }

    fn atomicity(&self) -> Atomicity {
        of!(self, store => store.atomicity())
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        of!(self, store => store.refund(asks));
    }

    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        #[cfg(debug_assertions)]
        if matches!(self, Self::Memory(_)) {
            tidegate_policy::work::count_store_call();
        }
        of!(self, store => store.decide_at_once(asks))
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        of!(self, store => store.shared_state())
    }
}
