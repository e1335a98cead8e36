//! Stores on real servers, which all tests of this program share; each store has keys of its own.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Ask, ManualClock, Reply, Store, Timestamp};
use tidegate_redis::{
    Address, ConnectionSettings, RedisOptions, RedisStore, RedisTopology, TlsSettings,
};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::{
    Acl, Certificates, Cluster, SentinelGroup, Server, ServerProgram, TestLogin, until,
};
use tokio::runtime::Runtime;

/// What the limiter needs to be allowed, and no more; see `docs/operating-redis.md`.
pub(crate) const RULES: &str = "~tg* resetchannels -@all +@connection +evalsha +script|load +get \
     +mget +set +del +time +info +role +cluster|slots +zadd +zremrangebyscore +zcard \
     +pexpire +zrange";

/// What it needs to be allowed beside that where addresses are counted and banned.
pub(crate) const COUNTING: [&str; 25] = [
    "type",
    "exists",
    "scard",
    "sscan",
    "sadd",
    "srem",
    "sismember",
    "zadd",
    "zrem",
    "zscan",
    "zrangebyscore",
    "hlen",
    "hexists",
    "hincrby",
    "hset",
    "hmget",
    "hscan",
    "rename",
    "unlink",
    "pexpire",
    "get",
    "set",
    "del",
    "time",
    "evalsha",
];

/// A runtime for the whole program: connections of one test must not end with another.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime")
    })
}

/// A prefix that no other store of this program has.
pub(crate) fn own_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("tg{}:", NEXT.fetch_add(1, Relaxed))
}

pub(crate) fn address(server: &Server) -> Address {
    Address::new("127.0.0.1", server.port())
}

/// Long enough for a busy machine: these tests are not about time.
pub(crate) fn patient(settings: ConnectionSettings) -> ConnectionSettings {
    let patience = Duration::from_secs(10);
    settings.timeout(patience).connect_timeout(patience)
}

pub(crate) fn standalone(server: &Server) -> ConnectionSettings {
    patient(ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![address(server)],
    ))
}

pub(crate) fn sentinel(group: &SentinelGroup) -> ConnectionSettings {
    let master = group.name().to_owned();
    let addresses = group.sentinels().iter().map(address).collect();
    patient(ConnectionSettings::new(
        RedisTopology::Sentinel { master },
        addresses,
    ))
}

pub(crate) fn cluster(cluster: &Cluster) -> ConnectionSettings {
    let addresses = cluster.nodes().iter().map(address).collect();
    patient(ConnectionSettings::new(RedisTopology::Cluster, addresses))
}

pub(crate) fn with_tls(
    settings: ConnectionSettings,
    certificates: &Certificates,
) -> ConnectionSettings {
    let read = |path| std::fs::read(path).expect("the kit has made it");
    let tls = TlsSettings::new()
        .ca(read(certificates.authority()))
        .identity(
            read(certificates.client_certificate()),
            read(certificates.client_key()),
        );
    settings.tls(tls)
}

pub(crate) fn with_login(settings: ConnectionSettings) -> ConnectionSettings {
    let TestLogin { user, password } = TestLogin::limiter();
    settings.user(user).password(password)
}

/// One server for all tests of the program.
pub(crate) fn shared_server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

pub(crate) fn shared_flavour(flavour: ServerProgram) -> Option<&'static Server> {
    static REDIS_8: OnceLock<Option<Server>> = OnceLock::new();
    static VALKEY_9: OnceLock<Option<Server>> = OnceLock::new();
    let cell = match flavour {
        ServerProgram::Redis8 => &REDIS_8,
        _ => &VALKEY_9,
    };
    let start = || {
        let available = flavour.available();
        available.then(|| Server::builder().flavour(flavour).start())
    };
    cell.get_or_init(start).as_ref()
}

/// TLS with certificates on both sides, and a user who may do just what it needs.
pub(crate) fn shared_secured() -> &'static (Server, Certificates) {
    static SERVER: OnceLock<(Server, Certificates)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let certificates = Certificates::make();
        let builder = Server::builder().tls(&certificates).ask_clients();
        (builder.acl(Acl::limiter(RULES)).start(), certificates)
    })
}

pub(crate) fn shared_sentinels() -> &'static SentinelGroup {
    static GROUP: OnceLock<SentinelGroup> = OnceLock::new();
    GROUP.get_or_init(SentinelGroup::start)
}

pub(crate) fn shared_cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(3, 0))
}

/// A store in virtual time.
pub(crate) struct World {
    pub(crate) store: RedisStore,
    pub(crate) clock: ManualClock,
}

impl World {
    pub(crate) fn new(settings: ConnectionSettings, options: RedisOptions) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let options = options
            .prefix(own_prefix())
            // It goes by real time.
            .deny_cache(0)
            .clock(clock.clone());
        let store = runtime()
            .block_on(RedisStore::connect(settings, options))
            .expect("the server is there");
        Self { store, clock }
    }
}

impl StoreUnderTest for World {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    fn advance_micros(&self, micros: u64) {
        self.clock.advance_micros(micros);
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        runtime().block_on(future)
    }

    /// On a Cluster a refusal holds its cost until it is given back; the laws look after that.
    fn decide(&self, asks: &[Ask<'_>]) -> Reply {
        let reply = self
            .block_on(self.store.decide(asks))
            .expect("a healthy store answers");
        let stats = self.store.stats();
        if stats.refunds_due.get() > 0 {
            until("everything is given back", || {
                stats.refunds.get() == stats.refunds_due.get()
            });
        }
        reply
    }
}
