//! Valid configurations and their meaning.

use std::fs;
use std::path::Path;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::alerts::{AlertFormat, AlertKind};
use tidegate_config::traces::Sample;
use tidegate_config::{Environment, NoEnvironment};
use tidegate_core::{Algorithm, Align, LimitMode};
use tidegate_policy::store::{LayoutWord, LocalShare, RedisMode};
use tidegate_policy::{
    ChargeTime, Evaluate, KeyPart, Limit, LimitOverride, MissingIdentity, OnFailure, SlotTag,
    Template,
};

/// Every field of the language, once.
pub(crate) const EVERYTHING: &str = include_str!("../good/everything.yaml");

/// No variable is set. Keys are in `tests/keys`, and every other file contains the same secret.
pub(crate) struct Files;

impl Environment for Files {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Ok(key_file(path).unwrap_or_else(|_| "from a file\n".to_owned()))
    }
}

/// Returns the contents of a file in `tests/keys`.
pub(crate) fn key_file(name: &str) -> Result<String, String> {
    if name.contains('/') {
        return Err("this environment reads no files".to_owned());
    }
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys");
    fs::read_to_string(keys.join(name)).map_err(|error| error.to_string())
}

pub(crate) fn everything() -> Config {
    Config::parse(EVERYTHING, "everything.yaml", &Files).unwrap_or_else(|errors| panic!("{errors}"))
}

fn one_limit(limit: &str) -> Limit {
    let text = format!("policies: [{{ name: p, limits: [{{ name: l, {limit} }}] }}]");
    let config = Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
    config.policies.into_iter().next().unwrap().limits.remove(0)
}

#[test]
fn every_vector_loads_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/vectors");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("config.yaml");
        if path.exists() {
            let text = fs::read_to_string(&path).unwrap();
            let config = Config::parse(&text, "config.yaml", &NoEnvironment)
                .unwrap_or_else(|errors| panic!("{}:\n{errors}", path.display()));
            assert!(config.warnings().is_empty(), "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 11, "only {count} vectors found");
}

#[test]
fn defaults_are_as_documented() {
    let config = Config::built_in();
    assert_eq!(
        config.listen.http.unwrap().address.to_string(),
        "127.0.0.1:8080"
    );
    assert_eq!(config.listen.admin.address.to_string(), "127.0.0.1:8090");
    assert!(config.listen.grpc.is_none());
    assert!(config.store.target.is_memory());
    assert_eq!(config.store.timeout, Duration::from_millis(20));
    assert_eq!(config.store.on_failure, OnFailure::Local);
    assert_eq!(config.store.local_share, LocalShare::Millionths(500_000));
    assert_eq!(config.store.max_keys, 1_000_000);
    assert_eq!(config.client.ipv6_prefix(), 64);
    let proxies = config
        .client
        .trusted_proxies()
        .iter()
        .map(ToString::to_string);
    assert_eq!(proxies.collect::<Vec<_>>(), ["127.0.0.0/8", "::1/128"]);

    let limit = one_limit("rate: 10/s");
    assert!(limit.enabled);
    assert!(limit.conditions.is_empty());
    assert_eq!(limit.key, [KeyPart::Global]);
    assert_eq!(limit.missing, MissingIdentity::Address);
    assert_eq!(limit.algorithm, Algorithm::TokenBucket);
    assert_eq!(limit.mode, LimitMode::Enforce);
    assert_eq!(limit.charge, ChargeTime::IfFits);
    assert_eq!((limit.waiting, limit.refundable), (None, false));
    assert_eq!(limit.on_failure, None);
    assert_eq!(limit.bands[0].quota.capacity(), 10);
}

#[test]
fn unconditional_charges_overdraw_by_the_amount_of_each_band() {
    let text = |charge: &str, limits: &str| {
        format!("policies: [{{ name: p, charge: {charge}, limits: [{limits}] }}]")
    };
    let limits = "{ name: a, bands: [10/s burst 50, 1000/h] },
        { name: b, rate: 10000/d, algorithm: sliding-log },
        { name: c, rate: 10/s, overdraft: 3 },
        { name: d, rate: 10/s, charge: always },
        { name: e, rate: 10/s, charge: if-fits }";
    let config = Config::from_yaml(&text("even-if-refused", limits));
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    let policy = &config.policies[0];
    let overdrafts = |limit: &Limit| {
        let bands = limit.bands.iter().map(|band| band.quota.overdraft());
        (limit.charge, bands.collect::<Vec<_>>())
    };
    let read: Vec<_> = policy.limits.iter().map(overdrafts).collect();
    let expected = [
        (ChargeTime::EvenIfRefused, vec![10, 1000]),
        // As much as a log can hold.
        (ChargeTime::EvenIfRefused, vec![0]),
        (ChargeTime::EvenIfRefused, vec![3]),
        (ChargeTime::Always, vec![0]),
        (ChargeTime::IfFits, vec![0]),
    ];
    assert_eq!(read, expected);
    // Limits that requests carry are charged as the policy sets it.
    let told = LimitOverride {
        amount: 7,
        period_us: 60_000_000,
    };
    assert_eq!(policy.override_band(told).unwrap().quota.overdraft(), 7);
    let config = Config::from_yaml(&text("if-fits", "{ name: a, rate: 1/s }")).unwrap();
    let band = config.policies[0].override_band(told);
    assert_eq!(band.unwrap().quota.overdraft(), 0);
}

#[test]
fn every_field_is_parsed() {
    let config = everything();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let grpc = config.listen.grpc.as_ref().unwrap();
    assert_eq!(grpc.address.to_string(), "[::1]:8081");
    assert_eq!(
        grpc.tls.as_ref().unwrap().client_ca.as_deref(),
        Some("/etc/ca.pem")
    );
    assert_eq!(
        config.listen.admin.token.as_ref().unwrap().expose(),
        "from a file"
    );
    the_store_arrives(&config);
    assert_eq!(config.store.local_share, LocalShare::Millionths(250_000));
    assert_eq!(config.store.max_keys, 50_000);
    assert_eq!(config.client.trusted_proxies().len(), 3);
    assert_eq!(
        config.policy(Some("routes")).unwrap().evaluate,
        Evaluate::First
    );
    assert_eq!(config.policy(None).unwrap().name, "api");
    assert!(config.policy(Some("nobody")).is_none());

    let limit = &config.policies[0].limits[0];
    let condition = &limit.conditions[0];
    assert_eq!(condition.methods, ["GET", "POST"]);
    assert_eq!(
        condition.headers,
        [("x-tier".to_owned(), "gold".to_owned())]
    );
    assert_eq!(condition.clients[0].to_string(), "203.0.113.0/24");
    assert_eq!(limit.conditions.len(), 2);
    assert_eq!(limit.on_failure, Some(OnFailure::Deny));
    assert_eq!(limit.charge, ChargeTime::Always);
    let [burst, hourly] = limit.bands.as_slice() else {
        panic!("two bands")
    };
    assert_eq!(
        (burst.text.as_str(), burst.quota.capacity()),
        ("10/s burst 50", 50)
    );
    assert_eq!(hourly.text, "1000/h burst 2000");
    assert_eq!(hourly.label.as_deref(), Some("hourly"));
    assert_eq!(hourly.quota.overdraft(), 5);
    assert!(hourly.quota.is_refundable());

    let limit = &config.policies[0].limits[1];
    let key = [
        KeyPart::User,
        KeyPart::Header("x-tenant".to_owned()),
        KeyPart::Attr("project".to_owned()),
    ];
    assert_eq!(limit.key, key);
    assert_eq!(limit.mode, LimitMode::Shadow);
    assert_eq!(limit.algorithm, Algorithm::FixedWindow(Align::Clock));

    let waiting = config.policies[0].limits[2].waiting.unwrap();
    assert_eq!(waiting.max_wait, Duration::from_secs(2));
    assert_eq!(waiting.max_waiting, 100);
    assert!(!config.policies[0].waits(), "that limit is disabled");
}

#[test]
fn a_block_has_its_configured_length_and_0_is_none() {
    let block = |written: &str| {
        let text =
            format!("policies: [{{ name: p, limits: [{{ name: l, rate: 1/s{written} }}] }}]");
        let config = Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
        assert!(config.warnings().is_empty());
        let block = config.policies[0].limits[0].block.clone();
        block.map(|block| {
            assert!(block.quota.is_block());
            (block.text, block.quota.period_us())
        })
    };
    for none in ["", ", block: 0", ", block: 0s", ", block: '0'"] {
        assert_eq!(block(none), None, "{none}");
    }
    assert_eq!(block(", block: 5m"), Some(("5m".to_owned(), 300_000_000)));
    let charged = block(", charge: always, block: 365 days");
    assert_eq!(charged, Some(("365 days".to_owned(), 31_536_000_000_000)));
}

#[test]
fn a_waiting_limit_has_a_queue_and_its_policy_is_refundable() {
    let text = "policies:
  - name: p
    limits:
      - { name: slow, rate: 7/2s burst 3, on_refusal: wait, max_wait: 1999ms }
      - { name: window, rate: 7/s, algorithm: fixed-window, on_refusal: wait, max_wait: 1h }
      - { name: other, rate: 1/s }
  - name: q
    limits: [{ name: l, rate: 1/s, refundable: true }, { name: m, rate: 1/s }]
  - name: r
    limits: [{ name: l, rate: 1/s, on_refusal: refuse }]";
    let mut config = Config::parse(text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
    let [p, q, r] = config.policies.as_mut_slice() else {
        panic!("three policies")
    };
    assert!(p.waits() && p.refundable());
    assert!(!q.waits() && q.refundable());
    assert!(!r.waits() && !r.refundable());
    // Six refill in two seconds less a millisecond, not seven.
    let [slow, window, other] = p.limits.as_slice() else {
        panic!("three limits")
    };
    assert_eq!(slow.bands[0].quota.overdraft(), 6);
    assert_eq!(slow.waiting.unwrap().max_waiting, 1_000);
    assert_eq!(window.bands[0].quota.overdraft(), 0);
    for limit in [slow, window, other] {
        assert!(limit.refundable && limit.bands[0].quota.is_refundable());
    }
    let is_refundable = |limit: &Limit| limit.refundable && limit.bands[0].quota.is_refundable();
    assert!(is_refundable(&q.limits[0]) && !is_refundable(&q.limits[1]));
    r.make_refundable();
    assert!(r.refundable() && is_refundable(&r.limits[0]));
}

#[test]
fn counting_and_alerts_are_parsed() {
    let config = everything();
    let counted = config.addresses.unwrap();
    let ban = counted.ban.as_ref().unwrap();
    assert_eq!(
        (ban.guard.as_str(), ban.length),
        ("banned", Some(Duration::from_secs(7_200)))
    );
    assert_eq!(
        (counted.period, counted.threshold),
        (Duration::from_secs(30), 5_000)
    );
    let names = (counted.period_map.as_str(), counted.total_map.as_str());
    assert_eq!(names, ("PeriodMap", "TotalMap"));
    assert_eq!(counted.max_addresses, 200_000);
    assert_eq!(counted.total_lasts, Some(Duration::from_secs(2_592_000)));
    assert!(counted.count_banned);

    let alerts = config.alerts.unwrap();
    assert_eq!(alerts.webhook.expose(), "https://hooks.example.com/hunter2");
    assert!(!format!("{alerts:?}").contains("hunter2"));
    assert_eq!(alerts.format, AlertFormat::Form);
    assert_eq!(alerts.on, [AlertKind::Ban, AlertKind::Store]);
    assert_eq!(
        (alerts.timeout, alerts.repeat),
        (Duration::from_secs(2), Duration::from_secs(3_600))
    );
}

#[test]
fn traces_and_logs_are_parsed() {
    let config = everything();
    let traces = config.traces.unwrap();
    assert_eq!(traces.url, "https://otel.example.com:4318/v1/traces");
    assert_eq!(traces.sample, Sample::millionths(25_000));
    let [(name, value)] = traces.headers.as_slice() else {
        panic!("one header: {traces:?}");
    };
    assert_eq!(
        (name.as_str(), value.expose()),
        ("authorization", "Bearer hunter2")
    );
    assert!(!format!("{traces:?}").contains("hunter2"));
    assert_eq!(
        (traces.service.as_str(), traces.timeout),
        ("tidegate-eu", Duration::from_secs(3))
    );
    assert_eq!(config.logs.refusals, Sample::millionths(100_000));
}

#[test]
fn counting_has_the_defaults_of_the_collector() {
    let text = "store: { url: redis://a }
guards: [{ name: b, deny: ip, redis: { set: BlacklistIPsSet } }]
addresses: { ban: { guard: b, for: 0 } }
alerts: { webhook: 'http://a' }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
    let counted = config.addresses.unwrap();
    assert_eq!(
        (counted.period, counted.threshold),
        (Duration::from_secs(15), 10_000)
    );
    let names = (counted.period_map.as_str(), counted.total_map.as_str());
    assert_eq!(
        names,
        ("tidegate:addresses:period", "tidegate:addresses:total")
    );
    assert_eq!(counted.ban.unwrap().length, None, "permanent");
    assert_eq!(
        (counted.max_addresses, counted.total_lasts),
        (1_000_000, None)
    );
    assert!(!counted.count_banned);
    let alerts = config.alerts.unwrap();
    assert_eq!((alerts.format, alerts.on.len()), (AlertFormat::Json, 5));
    assert_eq!(
        (alerts.timeout, alerts.repeat),
        (Duration::from_secs(5), Duration::from_secs(600))
    );
}

fn the_store_arrives(config: &Config) {
    let redis = config.store.target.redis().unwrap();
    let RedisMode::Sentinel {
        master,
        user,
        password,
    } = &redis.mode
    else {
        panic!("{redis}")
    };
    assert_eq!(
        (master.as_str(), user.as_deref()),
        ("main", Some("watcher"))
    );
    assert_eq!(password.as_ref().unwrap().expose(), "hunter2");
    let addresses: Vec<String> = redis.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["s1:26379", "s2:26379"]);
    assert_eq!(redis.user.as_deref(), Some("ann"));
    assert_eq!(redis.password.as_ref().unwrap().expose(), "hunter2");
    let tls = redis.tls.as_ref().unwrap();
    assert_eq!(tls.ca.as_ref().unwrap().expose(), "from a file");
    assert_eq!(tls.server_name.as_deref(), Some("redis.internal"));
    let identity = tls.identity.as_ref().unwrap();
    assert_eq!(identity.cert.expose(), "from a file");
    assert_eq!(identity.key.expose(), "from a file");
    assert_eq!((redis.connections, redis.retries), (2, 2));
    assert_eq!(redis.connect_timeout, Duration::from_millis(500));
    assert!(redis.required_at_start);
    assert_eq!(
        (redis.prefix.as_str(), redis.tag),
        ("limits:", SlotTag::Policy)
    );
    assert_eq!((redis.layout, redis.deny_cache), (LayoutWord::Open, 5_000));
    let templates: Vec<Option<&str>> = config
        .policies
        .iter()
        .take(3)
        .flat_map(|policy| &policy.limits)
        .map(|limit| limit.template.as_ref().map(Template::as_str))
        .collect();
    let all = Some("rl:{policy}:{limit}:{key}:{band}");
    let window = Some("rate_limits:{limit}");
    assert_eq!(templates, [all, window, all, all, None, None, all]);
}

#[test]
fn a_store_has_defaults() {
    let text =
        "store: { url: redis://a }\npolicies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    let redis = config.store.target.redis().unwrap();
    assert_eq!(redis.mode, RedisMode::Standalone);
    assert_eq!(
        (redis.database, redis.connections, redis.retries),
        (0, 2, 1)
    );
    assert_eq!(redis.connect_timeout, Duration::from_secs(1));
    assert_eq!(
        (redis.prefix.as_str(), redis.tag),
        ("tg:", SlotTag::Subject)
    );
    assert_eq!(
        (redis.layout, redis.deny_cache),
        (LayoutWord::Packed, 100_000)
    );
    assert!(!redis.required_at_start && redis.tls.is_none() && redis.password.is_none());
}

#[test]
fn a_config_can_be_written_in_json() {
    let text = r#"{ "policies": [ { "name": "api", "limits": [
        { "name": "a", "enabled": true, "key": ["ip", "path"], "rate": "10\/s burst 50" }
    ] } ] }"#;
    let config = Config::parse(text, "x.json", &NoEnvironment).unwrap();
    assert_eq!(config.policies[0].limits[0].bands[0].quota.capacity(), 50);
}

#[test]
fn one_period_may_occur_under_two_labels() {
    let limit = one_limit("bands: [10/s, { rate: 20/s, label: b }, { rate: 30/s, label: c }]");
    assert_eq!(limit.bands.len(), 3);
}

#[test]
fn a_single_listener_opens_no_other() {
    let text =
        "listen: { grpc: 127.0.0.1:0 }\npolicies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    assert!(config.listen.http.is_none());
    assert_eq!(config.listen.admin.address.tcp().unwrap().port(), 8090);
}

#[test]
fn a_limit_after_a_disabled_or_watched_one_is_reached() {
    for first in [
        "mode: off",
        "mode: shadow",
        "match: { path: /a }",
        "key: user, missing: skip",
    ] {
        let text = format!(
            "policies: [{{ name: p, evaluate: first, limits: [{{ name: a, rate: 1/s, {first} }}, {{ name: b, rate: 1/s }}] }}]"
        );
        let config = Config::parse(&text, "x", &NoEnvironment).unwrap();
        assert!(config.warnings().is_empty(), "{first}");
    }
}

#[test]
fn problems_are_machine_readable() {
    let text = "policies:\n  - name: p\n    limits:\n      - name: l\n        rate: 1/s\n      - name: m\n        rate: 1/s\n        key: cookie\n";
    let errors = Config::parse(text, "x.yaml", &NoEnvironment).unwrap_err();
    let [problem] = errors.problems() else {
        panic!("{errors}")
    };
    assert_eq!((problem.line(), problem.column()), (Some(8), Some(14)));
    assert_eq!(problem.path(), "policies[0].limits[1].key");
    assert_eq!(problem.message(), "`cookie` is not a key");
    assert!(problem.help().unwrap().starts_with("expected `ip`"));
    assert_eq!(errors.file(), "x.yaml");
}

#[test]
fn a_burst_next_to_a_rate_is_the_burst_of_the_rate() {
    let (inside, beside) = (
        one_limit("rate: 10/s burst 50"),
        one_limit("rate: 10/s, burst: 50"),
    );
    assert_eq!(inside.bands[0].text, beside.bands[0].text);
    assert_eq!(inside.bands[0].quota, beside.bands[0].quota);
    assert_eq!(
        one_limit("rate: 10/s, burst: 1_000").bands[0]
            .quota
            .capacity(),
        1_000
    );
}

#[test]
fn a_store_may_be_just_a_url() {
    let policies = "policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";
    let read = |store: &str, variable: Option<(&str, &str)>| {
        let environment = |name: &str| {
            let (set, value) = variable?;
            (set == name).then(|| value.to_owned())
        };
        let config = Config::parse(&format!("store: {store}\n{policies}"), "x", &environment);
        config.unwrap_or_else(|e| panic!("{store}: {e}")).store
    };
    assert_eq!(read("memory", None), read("{ url: memory }", None));
    let url = "redis://:${PASSWORD:-secret}@db:7000/2";
    let alone = read(url, None);
    assert_eq!(alone, read(&format!("{{ url: '{url}' }}"), None));
    assert_eq!(alone.target.to_string(), "redis://:***@db:7000/2");
    // Variables change single settings of it, as of a map.
    let timeout = read("redis://db", Some(("TIDEGATE_STORE_TIMEOUT", "5ms")));
    assert_eq!(timeout.timeout, Duration::from_millis(5));
    assert_eq!(timeout.target.to_string(), "redis://db:6379");
    let other = read("redis://db", Some(("TIDEGATE_STORE_URL", "memory")));
    assert_eq!(other.target.to_string(), "memory");
}
