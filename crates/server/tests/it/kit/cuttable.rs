//! A server over a store that can be cut off.

use super::client::{Reply, get, post};
use super::server::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate::{
    Config, Limiter, ManualClock, MemoryStats, MemoryStore, Store, StoreError, StoreErrorKind,
    Timestamp,
};
use tidegate_config::NoEnvironment;
use tidegate_frontends::decider::Decider;
use tidegate_frontends::listeners::ServedStore;
use tidegate_net::bounds::Bounds;
use tidegate_telemetry::store::StoreStats;

/// A store behind a wire that can be cut.
#[derive(Clone, Debug)]
struct CuttableStore {
    memory: Arc<MemoryStore<ManualClock>>,
    is_cut: Arc<AtomicBool>,
}

impl CuttableStore {
    fn reach(&self) -> Result<&MemoryStore<ManualClock>, StoreError> {
        if self.is_cut.load(Relaxed) {
            let error = StoreError::transient("the wire is cut");
            return Err(error.with_kind(StoreErrorKind::Timeout));
        }
        Ok(&self.memory)
    }
}

impl Store for CuttableStore {
    async fn decide(
        &self,
        asks: &[tidegate_core::Ask<'_>],
    ) -> Result<tidegate_core::Reply, StoreError> {
        Ok(self.reach()?.decide_now(asks))
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &tidegate_core::Quota,
    ) -> Result<Option<tidegate_core::Inspection>, StoreError> {
        Ok(self.reach()?.inspect_now(bucket, quota))
    }

    async fn reset(&self, bucket: &[u8], quota: &tidegate_core::Quota) -> Result<bool, StoreError> {
        Ok(self.reach()?.reset_now(bucket, quota))
    }
}

impl StoreStats for CuttableStore {
    fn memory(&self) -> Option<MemoryStats> {
        None
    }
}

impl ServedStore for CuttableStore {}

/// A server over a store that can be cut off.
pub(crate) struct CuttableServer {
    pub(crate) server: Server,
    store: CuttableStore,
    clock: ManualClock,
}

impl CuttableServer {
    pub(crate) async fn start(policies: &str) -> Self {
        let listen = "listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }";
        let text = format!("{listen}\n{policies}");
        let parse = || Config::parse(&text, "test.yaml", &NoEnvironment).unwrap();
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let store = CuttableStore {
            memory: Arc::new(MemoryStore::builder().clock(clock.clone()).build()),
            is_cut: Arc::default(),
        };
        let limiter = Limiter::builder()
            .config(parse())
            .clock(clock.clone())
            .build_with(store.clone())
            .unwrap();
        let decider = Decider::new(limiter, &parse().policies);
        let server = Server::of(&parse().listen, decider, Bounds::default()).await;
        Self {
            server,
            store,
            clock,
        }
    }

    pub(crate) fn cut(&self) {
        self.store.is_cut.store(true, Relaxed);
    }

    /// Restores the wire, and lets a quiet second pass.
    pub(crate) fn mend(&self) {
        self.store.is_cut.store(false, Relaxed);
        self.clock.advance_micros(1_000_000);
    }

    pub(crate) async fn ask(&self, policy: &str) -> Reply {
        post(self.server.http, &format!("{{\"policy\": \"{policy}\"}}")).await
    }

    pub(crate) async fn readyz(&self) -> (u16, String) {
        let reply = get(self.server.admin, "/readyz").await;
        (reply.status, reply.body.trim().to_owned())
    }
}
