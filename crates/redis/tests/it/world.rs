//! Stores on real servers that all tests of this binary share. Each store has a separate key
//! prefix.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;
use tidegate_core::{Ask, ManualClock, Reply, Store, Timestamp};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology, TlsSettings};
use tidegate_testkit::laws::StoreUnderTest;
pub(crate) use tidegate_testkit::redis::shared::{
    cluster as shared_cluster, flavour as shared_flavour, own_prefix, runtime,
    server as shared_server,
};
use tidegate_testkit::redis::{
    Acl, Certificates, Cluster, SentinelGroup, Server, TestLogin, until,
};

/// The minimal ACL rules of the limiter; see `docs/how-to/redis.md`.
pub(crate) const RULES: &str = "~tg* resetchannels -@all +@connection +evalsha +script|load +get \
     +mget +set +del +time +info +role +cluster|slots +zadd +zremrangebyscore +zcard \
     +pexpire +zrange";

pub(crate) fn address(server: &Server) -> Address {
    Address::new("127.0.0.1", server.port())
}

/// Long enough for a busy machine: these tests do not measure time.
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

/// TLS with certificates on both sides, and a user with minimal rights.
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

/// A store with virtual time.
pub(crate) struct World {
    pub(crate) store: RedisBuckets,
    pub(crate) clock: ManualClock,
}

impl World {
    pub(crate) fn new(settings: ConnectionSettings, options: RedisOptions) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let options = options
            .prefix(own_prefix())
            // The deny cache uses real time.
            .deny_cache(0)
            .clock(clock.clone());
        let store = runtime()
            .block_on(RedisBuckets::connect(settings, options))
            .expect("the server is up");
        Self { store, clock }
    }
}

impl StoreUnderTest for World {
    type Store = RedisBuckets;

    fn store(&self) -> &RedisBuckets {
        &self.store
    }

    fn advance_micros(&self, micros: u64) {
        self.clock.advance_micros(micros);
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        runtime().block_on(future)
    }

    /// On a Cluster a refusal holds its cost until it is refunded; the laws allow for that.
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
