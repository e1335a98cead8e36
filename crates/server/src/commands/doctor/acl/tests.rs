use super::*;
use crate::commands::doctor::info::Info;
use tidegate_config::NoEnvironment;

fn config(store: &str) -> Config {
    let text = format!(
        "store: {{ {store} }}\npolicies: [{{ name: p, limits: [{{ name: l, key: ip, rate: 1/s }}] }}]"
    );
    Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|errors| panic!("{errors}"))
}

fn lines_of(store: &str, version: &str) -> AclLines {
    let config = config(store);
    let version = Info::new(version).version();
    lines(
        &config,
        config.store.target.redis().unwrap(),
        version.as_ref(),
    )
}

#[test]
fn the_acl_line_grants_the_needed_permissions_and_shows_no_secret() {
    let lines = lines_of("url: 'redis://ann:hunter2@a'", "redis_version:7.0.15");
    assert_eq!(
        lines.limiter,
        "ACL SETUSER ann reset on >PASSWORD ~tg:* +evalsha +script|load +time +get +mget +set +del \
         +ping +role +info +client|setname +zadd +zcard +zremrangebyscore +pexpire +zrange"
    );
    assert_eq!(
        lines.operator,
        lines.limiter.replace("ann", "ann-operator")
            + " +pttl +exists +scan +config|get +acl|whoami"
    );
}

#[test]
fn guards_are_granted_only_their_own_sets() {
    let text = "
store: { url: 'redis://a' }
guards:
  - { name: here, deny: ip, redis: { set: 'List*' } }
  - { name: there, deny: ip, redis: { set: Elsewhere, url: 'redis://b' } }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    let redis = config.store.target.redis().unwrap();
    let line = lines(&config, redis, None).limiter;
    assert!(line.contains(r" ~List\* ~tg:* ~{List\*}:until "), "{line}");
    assert!(
        line.contains("+scard +sscan") && !line.contains("Elsewhere"),
        "{line}"
    );
}

#[test]
fn counts_and_bans_are_granted_their_companion_keys() {
    let text = "
store: { url: 'redis://a' }
guards: [{ name: blacklist, deny: ip, redis: { set: Banned } }]
addresses: { maps: { period: 'Now*' }, ban: { guard: blacklist, for: 1h } }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    let patterns = patterns(&config, config.store.target.redis().unwrap());
    assert_eq!(
        patterns,
        [
            "~Banned",
            r"~Now\*",
            "~tg:*",
            "~tidegate:addresses:total",
            "~{Banned}:until",
            r"~{Now\*}:batch:*",
            r"~{Now\*}:closing",
            r"~{Now\*}:period",
            "~{tidegate:addresses:total}:batch:*",
        ]
    );
}

/// Words in the scripts' sources that look like commands, but are none.
const NO_COMMANDS: [&str; 11] = [
    "COUNT",
    "EX",
    "GT",
    "LIMIT",
    "NX",
    "PX",
    "PXAT",
    "WITHSCORES",
    "WITHVALUES",
    "WRONGTYPE",
    "XX",
];

/// Commands on keys that no script calls.
const BY_THEMSELVES: [&str; 3] = ["hscan", "scard", "sscan"];

/// Returns the commands that sources of a crate for Redis call.
fn called(folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            names.extend(called(&path));
        } else if path.extension().is_some_and(|it| it == "lua") || path.ends_with("script/mod.rs")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let words = text.split('\'');
            let is_command = |word: &&str| {
                word.len() > 1
                    && word.chars().all(|c| c.is_ascii_uppercase())
                    && !NO_COMMANDS.contains(word)
            };
            names.extend(words.filter(is_command).map(str::to_ascii_lowercase));
        }
    }
    names
}

#[test]
fn every_command_used_by_scripts_is_granted() {
    let of = |folder: &str| {
        let crates = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        called(&crates.join(folder))
    };
    let called = [of("redis/src"), of("redis-shared/src")].concat();
    assert!(called.contains(&"get".to_owned()) && called.contains(&"zcard".to_owned()));
    let text = "
store: { url: 'redis://a', local_share: auto, redis: { layout: open } }
guards: [{ name: blacklist, deny: ip, redis: { set: s } }]
addresses: { ban: { guard: blacklist, for: 1h } }
policies: [{ name: p, limits: [{ name: l, key: ip, rate: 1/s }] }]
";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    let needs = needs(&config, config.store.target.redis().unwrap(), None);
    // And no other command that accesses keys.
    for need in &needs {
        let is_data = need.whose != Operator && need.probe.contains(&"KEY");
        let is_called =
            called.iter().any(|name| name == need.name) || BY_THEMSELVES.contains(&need.name);
        assert!(
            is_called || !is_data,
            "`{}` is granted, and not called",
            need.name
        );
    }
    for name in called {
        let granted = needs.iter().find(|need| need.name == name);
        let granted = granted.filter(|need| need.whose != Operator);
        assert!(granted.is_some(), "`{name}` is called, and not granted");
    }
}

#[test]
fn joined_policies_need_no_extra_keys() {
    let text = "
store: { url: 'redis://a', redis: { layout: open, template: 'x:{policy}:{limit}:{key}' } }
routes: [{ name: all, upstreams: 'http://127.0.0.1:9', policy: [p, q] }]
policies:
  - { name: p, limits: [{ name: l, key: ip, rate: 1/s }] }
  - { name: q, limits: [{ name: m, key: ip, rate: 1/s }] }
";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    let patterns = patterns(&config, config.store.target.redis().unwrap());
    assert_eq!(patterns, ["~tg:*", "~x:p:l:*", "~x:q:m:*"]);
}

#[test]
fn the_line_follows_topology_version_prefix_and_layout() {
    let cluster = lines_of(
        "url: 'redis://a,b', redis: { prefix: 'rl*' }",
        "valkey_version:9.0.0",
    );
    assert!(cluster.limiter.contains(" ~rl\\** "), "{}", cluster.limiter);
    assert!(cluster.limiter.contains("+cluster|slots +asking"));
    assert!(cluster.limiter.contains("+client|setinfo"));
    let database = lines_of("url: 'redis://a/3'", "");
    assert!(database.limiter.contains("+select"));
    assert!(!database.limiter.contains("setinfo"));
    let open = lines_of("url: 'redis://a', redis: { layout: open }", "");
    assert!(
        open.limiter.contains(" ~ratelimit:l:* ~tg:* "),
        "{}",
        open.limiter
    );
    assert_eq!(open.limiter.matches("+zadd").count(), 1);
}
