//! Stores that schedules run over: two instances each, with one clock.

use crate::{clock, config};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate::redis::{
    Address, ConnectionSettings, KeyTag, RedisOptions, RedisStore, RedisTopology,
};
use tidegate::shared_state::StateFuture;
use tidegate::{Limiter, ManualClock, MemoryStore, SharedState, Store, StoreError};
use tidegate_core::{Ask, Inspection, Quota, Reply};
use tidegate_testkit::redis::{Cluster, Server};

/// In-memory buckets that several limiters share, like a remote store.
#[derive(Clone, Debug)]
pub(crate) struct SharedMemory {
    memory: Arc<MemoryStore<ManualClock>>,
    secret: Arc<Mutex<Option<[u8; 32]>>>,
    secrets_asked: Arc<AtomicU32>,
    is_far: bool,
}

impl SharedMemory {
    /// Creates the store. If it `is_far`, callers have to wait.
    pub(crate) fn new(clock: ManualClock, is_far: bool) -> Self {
        let memory = MemoryStore::builder().clock(clock).max_keys(10_000).build();
        Self {
            memory: Arc::new(memory),
            secret: Arc::default(),
            secrets_asked: Arc::default(),
            is_far,
        }
    }

    /// Forgets the secret, as a failover may.
    pub(crate) fn forget_secret(&self) {
        *self.secret.lock() = None;
    }

    /// Returns the number of requests for the secret.
    pub(crate) fn secrets_asked(&self) -> u32 {
        self.secrets_asked.load(Relaxed)
    }
}

impl Store for SharedMemory {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        // Another task may run between the start of a call and its effect.
        tokio::task::yield_now().await;
        let reply = self.memory.decide_now(asks);
        tokio::task::yield_now().await;
        Ok(reply)
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        Ok(self.memory.inspect_now(bucket, quota))
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        Ok(self.memory.reset_now(bucket, quota))
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        self.memory.decide_now(asks);
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        (!self.is_far).then(|| self.memory.decide_now(asks))
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        Some(self)
    }
}

impl SharedState for SharedMemory {
    fn secret(&self, proposal: [u8; 32]) -> Option<StateFuture<'_, [u8; 32]>> {
        self.secrets_asked.fetch_add(1, Relaxed);
        let secret = *self.secret.lock().get_or_insert(proposal);
        Some(Box::pin(std::future::ready(Ok(secret))))
    }
}

/// Two instances that share a store.
pub(crate) struct Pair<S> {
    pub(crate) limiters: [Limiter<S>; 2],
    pub(crate) clock: ManualClock,
}

impl<S: Store + 'static> Pair<S> {
    /// Creates a pair with these limits; `store` creates the store of each.
    pub(crate) fn over(clock: ManualClock, limits: &str, store: impl Fn() -> S) -> Self {
        let limiter = || {
            let builder = Limiter::builder().config(config(limits)).max_keys(1_000);
            let built = builder.clock(clock.clone()).build_with(store());
            built.unwrap_or_else(|error| panic!("{error}"))
        };
        Self {
            limiters: [limiter(), limiter()],
            clock,
        }
    }

    pub(crate) fn of(&self, nth: usize) -> &Limiter<S> {
        &self.limiters[nth % 2]
    }
}

/// Creates a pair in memory that behaves like a remote store.
pub(crate) fn in_memory(limits: &str) -> Pair<SharedMemory> {
    let clock = clock();
    let store = SharedMemory::new(clock.clone(), true);
    Pair::over(clock, limits, || store.clone())
}

/// A prefix per store, so that no two stores of one server share keys.
static PREFIX: AtomicU32 = AtomicU32::new(0);

/// Creates a pair over the server at `settings`.
pub(crate) async fn in_redis(
    settings: &ConnectionSettings,
    tag: KeyTag,
    limits: &str,
) -> Pair<RedisStore> {
    let clock = clock();
    let prefix = format!("tg{}:", PREFIX.fetch_add(1, Relaxed));
    let options = RedisOptions::default()
        .prefix(prefix)
        .tag(tag)
        // The deny cache uses real time.
        .deny_cache(0)
        .clock(clock.clone());
    let mut stores = Vec::new();
    for _ in 0..2 {
        let store = RedisStore::connect(settings.clone(), options.clone()).await;
        stores.push(store.expect("the server is up"));
    }
    let stores = Mutex::new(stores);
    Pair::over(clock, limits, || stores.lock().pop().unwrap())
}

/// Returns settings for one server, with long timeouts.
pub(crate) fn standalone(server: &Server) -> ConnectionSettings {
    patient(RedisTopology::Standalone, std::slice::from_ref(server))
}

pub(crate) fn cluster(cluster: &Cluster) -> ConnectionSettings {
    patient(RedisTopology::Cluster, cluster.nodes())
}

fn patient(mode: RedisTopology, servers: &[Server]) -> ConnectionSettings {
    let address = |server: &Server| Address::new("127.0.0.1", server.port());
    let patience = Duration::from_secs(10);
    ConnectionSettings::new(mode, servers.iter().map(address).collect())
        .timeout(patience)
        .connect_timeout(patience)
}
