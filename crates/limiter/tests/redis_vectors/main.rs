//! Sends every vector to a limiter over Redis, over every topology and layout, with a clock that its trace
//! sets, and compares each decision with that of an independent model.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

#[path = "../common/vector.rs"]
mod vector;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate::{Config, Limiter, ManualClock};
use tidegate_config::NoEnvironment;
use tidegate_redis::{
    Address, ConnectionSettings, HashTag, Layout, OpenLayout, RedisBuckets, RedisOptions,
    RedisTopology, TlsSettings,
};
use tidegate_testkit::redis::{
    Acl, Certificates, Cluster, SentinelGroup, Server, ServerProgram, TestLogin, until,
};
use tidegate_testkit::vectors::{self, Vector};
use tokio::runtime::Runtime;

/// The ACL rules that the limiter needs; see `docs/how-to/redis.md`.
const RULES: &str = "~tg* resetchannels -@all +@connection +evalsha +script|load +get +mget +set \
     +del +time +info +role +cluster|slots +hmget +hget +hset +hdel +hlen +hrandfield +zadd +zrange \
     +zrem +zcount +zremrangebyrank +pttl +exists +pexpire +pexpireat";

/// A prefix per store, so that no two stores share keys.
static PREFIX: AtomicU32 = AtomicU32::new(0);

fn address(server: &Server) -> Address {
    Address::new("127.0.0.1", server.port())
}

/// Sends all vectors that `fits` accepts to stores at `settings`.
fn replay_all(
    settings: &ConnectionSettings,
    options: &RedisOptions,
    fits: impl Fn(&Vector) -> bool,
) {
    let patience = Duration::from_secs(10);
    let settings = settings.clone().timeout(patience).connect_timeout(patience);
    let runtime = Runtime::new().unwrap();
    for vector in vectors::decided().into_iter().filter(fits) {
        let clock = ManualClock::default();
        let options = options
            .clone()
            .prefix(format!("tg{}:", PREFIX.fetch_add(1, Relaxed)))
            // The deny cache uses real time.
            .deny_cache(0)
            .clock(clock.clone());
        runtime.block_on(async {
            let store = RedisBuckets::connect(settings.clone(), options)
                .await
                .unwrap();
            let builder = Limiter::builder().clock(clock.clone());
            let builder = builder.yaml(&vector.config).unwrap();
            let limiter = builder.build_with(store.clone()).unwrap();
            // On several slots of a Cluster, a refusal holds its cost until it is refunded.
            let stats = store.stats();
            let settled = || stats.refunds.get() == stats.refunds_due.get();
            vector::replay(&vector, &limiter, &clock, || {
                until("everything is given back", settled);
            })
            .await;
        });
    }
}

/// Sends the vectors to both layouts.
fn replay_layouts(settings: &ConnectionSettings, options: &RedisOptions) {
    replay_all(settings, options, |_| true);
    let open = options.clone().layout(Layout::Open(OpenLayout::new()));
    // Windows of the open layout begin with a whole second, as its document specifies.
    let has_fixed_windows = |vector: &Vector| vector.config.contains("fixed-window");
    replay_all(settings, &open, |vector| !has_fixed_windows(vector));
}

#[test]
fn standalone() {
    let server = Server::start();
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address(&server)]);
    replay_layouts(&settings, &RedisOptions::default());
}

#[test]
fn redis_8_and_valkey_9() {
    for flavour in [ServerProgram::Redis8, ServerProgram::Valkey9] {
        if flavour.available() {
            let server = Server::builder().flavour(flavour).start();
            let settings =
                ConnectionSettings::new(RedisTopology::Standalone, vec![address(&server)]);
            replay_layouts(&settings, &RedisOptions::default());
        }
    }
}

#[test]
fn tls_and_users() {
    let certificates = Certificates::make();
    let builder = Server::builder().tls(&certificates).ask_clients();
    let server = builder.acl(Acl::limiter(RULES)).start();
    let read = |path| std::fs::read(path).unwrap();
    let tls = TlsSettings::new()
        .ca(read(certificates.authority()))
        .identity(
            read(certificates.client_certificate()),
            read(certificates.client_key()),
        );
    let TestLogin { user, password } = TestLogin::limiter();
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address(&server)])
        .tls(tls)
        .user(user)
        .password(password);
    replay_layouts(&settings, &RedisOptions::default());
}

#[test]
fn sentinel() {
    let group = SentinelGroup::start();
    let master = group.name().to_owned();
    let sentinels = group.sentinels().iter().map(address).collect();
    let settings = ConnectionSettings::new(RedisTopology::Sentinel { master }, sentinels);
    replay_layouts(&settings, &RedisOptions::default());
}

#[test]
fn cluster_by_subject_and_by_policy() {
    let cluster = Cluster::start(3, 0);
    let settings = ConnectionSettings::new(
        RedisTopology::Cluster,
        cluster.nodes().iter().map(address).collect(),
    );
    for tag in [HashTag::Subject, HashTag::Policy] {
        for node in cluster.nodes() {
            node.command(&["FLUSHALL"]).done();
        }
        replay_layouts(&settings, &RedisOptions::default().tag(tag));
    }
}

/// Key names are made in two independent places: where a configuration is explained, and where keys are
/// written.
#[test]
fn library_and_server_name_open_layout_keys_alike() {
    let text = "
store: { url: 'redis://127.0.0.1:1', redis: { layout: open } }
policies:
  - name: api
    limits:
      - { name: burst, key: ip, rate: 10/s burst 50 }
      - { name: several, key: [user, route], bands: [{ rate: 10/s, label: second }, { rate: 100/min, label: minute }] }
      - { name: log, key: ip, rate: 5/s, algorithm: sliding-log, template: 'log:{ip}' }
      - { name: window, key: attr:project, rate: 5/min, algorithm: fixed-window }
";
    let config = Config::parse(text, "test", &NoEnvironment).unwrap();
    let layout = tidegate::redis::open_layout(&config.policies, &config.key_rules());
    let subjects = [
        "ip:192.0.2.1",
        "user:ann,route:r%2F1",
        "ip:2001:db8::",
        "attr.project:7",
    ];
    for (limit, subject) in config.policies[0].limits.iter().zip(subjects) {
        let template = limit.template.as_ref().unwrap();
        for band in &limit.bands {
            let of = tidegate_policy::template::KeyOf {
                policy: "api",
                limit: &limit.name,
                subject,
                band: tidegate_policy::template::band_name(band),
            };
            let bucket = format!("api/{}/{subject}", limit.name);
            let (name, field) = layout.name(bucket.as_bytes(), &band.quota).unwrap();
            assert_eq!(String::from_utf8(name).unwrap(), template.render(&of));
            if let Some(field) = field {
                let mut key = String::new();
                tidegate_policy::template::push_key(&mut key, subject);
                assert_eq!(String::from_utf8(field).unwrap(), key);
            }
        }
    }
}
