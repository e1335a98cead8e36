//! The store that a configuration names, chosen at run time.

use crate::snapshot::SnapshotSource;
use std::time::Duration;
use tidegate_core::{
    Ask, Atomicity, Clock, Inspection, Quota, Reply, SharedState, Store, StoreError, Timestamp,
};
use tidegate_memory::{MemoryStore, SystemClock};

/// The store that a configuration names, chosen at run time. [`LimiterBuilder::start`] and
/// [`LimiterBuilder::connect`] return a limiter over it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use tidegate::{AnyStore, LimitSpec, Limiter};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).start().await?;
/// assert!(matches!(limiter.store(), AnyStore::Memory(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`LimiterBuilder::start`]: crate::LimiterBuilder::start
/// [`LimiterBuilder::connect`]: crate::LimiterBuilder::connect
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

impl<C> AnyStore<C> {
    /// Returns the kind of the store, as in the configuration.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }

    /// Returns the addresses of the nodes that the store is connected to; none if it is in this process.
    pub fn nodes(&self) -> Vec<String> {
        match self {
            Self::Memory(_) => Vec::new(),
            #[cfg(feature = "redis")]
            Self::Redis(store) => {
                let nodes = store.connection().nodes();
                nodes.iter().map(|node| node.address.to_string()).collect()
            }
        }
    }

    /// Returns the store if it is Redis.
    #[cfg(feature = "redis")]
    pub fn redis(&self) -> Option<&crate::redis::RedisStore> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store),
        }
    }
}

impl<C: Clock> AnyStore<C> {
    /// Returns the part of the store that a snapshot has, if it is in memory.
    #[cfg_attr(
        not(feature = "redis"),
        expect(clippy::unnecessary_wraps, reason = "a store in Redis has none")
    )]
    pub(crate) fn snapshot_source(&self) -> Option<&dyn SnapshotSource> {
        match self {
            Self::Memory(store) => Some(store),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        }
    }
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

    fn holds_permits(&self) -> bool {
        of!(self, store => store.holds_permits())
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

    fn present(&self) -> Option<Timestamp> {
        of!(self, store => store.present())
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
