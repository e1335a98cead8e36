//! The Redis store: buckets, and the state that instances share in addition to them.

use super::{
    ConnectError, Connection, ConnectionSettings, Heartbeat, RedisBuckets, RedisOptions, RedisStats,
};
use std::time::Duration;
use tidegate_core::{
    Ask, Atomicity, Inspection, Quota, Reply, SharedState, Store, StoreError, Timestamp,
};
use tidegate_redis_shared::RedisSharedState;

/// A store in Redis or Valkey: buckets, and the state that instances share in addition to them. Clones are
/// cheap and share everything.
///
/// Both use one connection and one prefix. Instances with the same [`RedisOptions`] share the store.
#[derive(Clone, Debug)]
pub struct RedisStore {
    buckets: RedisBuckets,
    shared: RedisSharedState,
}

impl RedisStore {
    /// Connects to Redis.
    ///
    /// # Errors
    ///
    /// Redis is unreachable, rejects the credentials, or is too old.
    pub async fn connect(
        settings: ConnectionSettings,
        options: RedisOptions,
    ) -> Result<Self, ConnectError> {
        RedisBuckets::connect(settings, options)
            .await
            .map(Self::new)
    }

    /// Connects in the background. Until then, every decision is an error.
    ///
    /// # Errors
    ///
    /// The settings can never work: there is no address, or a certificate cannot be read.
    pub fn start(
        settings: ConnectionSettings,
        options: RedisOptions,
    ) -> Result<Self, ConnectError> {
        RedisBuckets::start(settings, options).map(Self::new)
    }

    /// Adds the shared state to a store of buckets, over the same connection.
    pub fn new(buckets: RedisBuckets) -> Self {
        let shared = RedisSharedState::new(buckets.connection().clone(), buckets.prefix());
        Self { buckets, shared }
    }

    /// The buckets.
    pub fn buckets(&self) -> &RedisBuckets {
        &self.buckets
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        self.buckets.connection()
    }

    /// Counters of this store.
    pub fn stats(&self) -> &RedisStats {
        self.buckets.stats()
    }

    /// Enters this instance into the list of those that share the store.
    pub fn list_instance(&self) {
        self.shared.list_instance();
    }

    /// Returns the heartbeat of this instance, if it is [listed](Self::list_instance).
    pub fn heartbeat(&self) -> Option<&Heartbeat> {
        self.shared.heartbeat()
    }
}

impl Store for RedisStore {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        self.buckets.decide(asks).await
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        self.buckets.inspect(bucket, quota).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        self.buckets.reset(bucket, quota).await
    }

    fn timeout(&self) -> Option<Duration> {
        self.buckets.timeout()
    }

    fn can_fail(&self) -> bool {
        self.buckets.can_fail()
    }

    fn holds_permits(&self) -> bool {
        self.buckets.holds_permits()
    }

    fn atomicity(&self) -> Atomicity {
        self.buckets.atomicity()
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        self.buckets.refund(asks);
    }

    fn has_machine_clock(&self) -> bool {
        self.buckets.has_machine_clock()
    }

    fn present(&self) -> Option<Timestamp> {
        self.buckets.present()
    }

    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        self.buckets.decide_at_once(asks)
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        Some(&self.shared)
    }
}
