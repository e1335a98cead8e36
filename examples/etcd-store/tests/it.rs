//! The store with a real etcd: all laws, expiry, and an outage.

use etcd_store::Etcd;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use tidegate_core::cas::CasStore;
use tidegate_core::{Ask, ManualClock, Quota, Store, StoreErrorKind, Timestamp};
use tidegate_store_laws::laws::{StoreUnderTest, law_12_unknown_is_an_error};
use tidegate_store_laws::store_laws;
use tidegate_testkit::etcd::EtcdServer as Server;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime starts"));

/// Far longer than a call takes: other tests share the machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store with a separate prefix.
struct World {
    store: CasStore<Etcd<ManualClock>>,
    clock: ManualClock,
}

impl World {
    fn new(server: &Server) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("{}/", NEXT.fetch_add(1, Relaxed));
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let etcd = Etcd::new(&server.address().to_string(), &prefix, clock.clone());
        let etcd = etcd.timeout(PATIENCE);
        // Leases end by etcd's own clock, which continues while a test's clock is stopped.
        let store = CasStore::new(etcd).clock_skew_max(Duration::from_hours(1));
        Self { store, clock }
    }
}

impl StoreUnderTest for World {
    type Store = CasStore<Etcd<ManualClock>>;

    fn store(&self) -> &Self::Store {
        &self.store
    }

    fn advance_micros(&self, micros: u64) {
        self.clock.advance_micros(micros);
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        RUNTIME.block_on(future)
    }
}

/// The etcd that all laws share.
fn world() -> Option<World> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(Server::start);
    server.as_ref().map(World::new)
}

store_laws!(if_there => world);

#[test]
fn law_12() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let world = World::new(&server);
    law_12_unknown_is_an_error(&world, || server.kill());
    let quota = Quota::new(3, 60_000_000).build().unwrap();
    let error = world.block_on(world.store.decide(&[Ask::take(b"known", &quota, 1)]));
    let error = error.unwrap_err();
    assert!(error.is_transient());
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    server.restart();
    assert_eq!(
        world.decide_one(Ask::take(b"known", &quota, 1)).remaining,
        1
    );
}

#[test]
fn keys_expire_some_time_after_they_matter() {
    let Some(server) = Server::start() else {
        return;
    };
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let etcd = Etcd::new(&server.address().to_string(), "t/", clock);
    let store = CasStore::new(etcd.timeout(PATIENCE)).clock_skew_max(Duration::from_secs(1));
    let call = |method: &str, body: Value| -> Value {
        let body = server.call(method, &body.to_string()).unwrap();
        serde_json::from_str(&body).unwrap()
    };
    let keys = || call("kv/range", json!({ "key": "dC8=", "range_end": "dDA=" }));
    let quota = Quota::new(10, 10_000_000).build().unwrap();
    for bucket in [b"a", b"b"] {
        RUNTIME
            .block_on(store.decide(&[Ask::take(bucket, &quota, 10)]))
            .unwrap();
    }
    let leases = [0, 1].map(|nth| keys()["kvs"][nth]["lease"].clone());
    assert!(
        leases[0].is_string() && leases[0] == leases[1],
        "{leases:?}"
    );
    let lease = call("lease/timetolive", json!({ "ID": leases[0] }));
    let seconds: u64 = lease["TTL"].as_str().unwrap().parse().unwrap();
    assert!((11..=4 * 12).contains(&seconds), "{lease}");
    RUNTIME.block_on(store.reset(b"a", &quota)).unwrap();
    assert_eq!(keys()["count"], "1");
}
