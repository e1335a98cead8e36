//! Whichever store a configuration names.

use tidegate_core::{Ask, Clock, Inspection, Quota, Reply, Store, StoreError};
use tidegate_memory::{MemoryStore, SystemClock};

/// Whichever store a configuration names, told apart while running.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyStore<C = SystemClock> {
    /// Buckets in this process.
    Memory(MemoryStore<C>),
    /// Buckets in Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(Box<crate::redis::SharedStore>),
}

impl<C> AnyStore<C> {
    /// Tells those who share it that this instance goes; see [`Limiter::leave`].
    ///
    /// [`Limiter::leave`]: crate::Limiter::leave
    #[cfg_attr(
        not(feature = "redis"),
        expect(clippy::unused_async, reason = "with the feature, it waits")
    )]
    pub async fn leave(&self) {
        match self {
            Self::Memory(_) => {}
            #[cfg(feature = "redis")]
            Self::Redis(shared) => {
                // Whom it does not reach notices by itself, a little later.
                if let Some(heartbeat) = &shared.heartbeat
                    && let Err(error) = heartbeat.close().await
                {
                    tracing::debug!(%error, "the other instances were not told that this one goes");
                }
            }
        }
    }
}

impl<C: Clock> Store for AnyStore<C> {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        #[cfg(debug_assertions)]
        tidegate_policy::work::count_store_call();
        match self {
            Self::Memory(store) => store.decide(asks).await,
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.decide(asks).await,
        }
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        match self {
            Self::Memory(store) => store.inspect(bucket, quota).await,
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.inspect(bucket, quota).await,
        }
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        match self {
            Self::Memory(store) => store.reset(bucket, quota).await,
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.reset(bucket, quota).await,
        }
    }

    fn can_fail(&self) -> bool {
        match self {
            Self::Memory(store) => store.can_fail(),
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.can_fail(),
        }
    }

    fn has_machine_clock(&self) -> bool {
        match self {
            Self::Memory(store) => store.has_machine_clock(),
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.has_machine_clock(),
        }
    }

    fn takes_steps(&self) -> bool {
        match self {
            Self::Memory(store) => store.takes_steps(),
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.takes_steps(),
        }
    }

    fn takes_steps_within_a_policy(&self) -> bool {
        match self {
            Self::Memory(store) => store.takes_steps_within_a_policy(),
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.takes_steps_within_a_policy(),
        }
    }

    #[inline]
    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        match self {
            Self::Memory(store) => {
                #[cfg(debug_assertions)]
                tidegate_policy::work::count_store_call();
                store.decide_at_once(asks)
            }
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.decide_at_once(asks),
        }
    }

    async fn shared_secret(&self, proposal: [u8; 32]) -> Result<Option<[u8; 32]>, StoreError> {
        match self {
            Self::Memory(store) => store.shared_secret(proposal).await,
            #[cfg(feature = "redis")]
            Self::Redis(shared) => shared.store.shared_secret(proposal).await,
        }
    }
}
