//! Tests the meaning of store URLs, and that no password is ever shown.

use crate::config::Config;
use crate::environment::{Environment, NoEnvironment};
use crate::explain;
use crate::explain::costs;
use proptest::prelude::*;
use std::fmt::Write as _;
use tidegate_policy::store::{RedisMode, RedisSettings, StoreTarget};

const POLICIES: &str = "policies: [{ name: p, limits: [{ name: l, key: ip, rate: 1/s }, { name: m, key: user, rate: 1/s }] }]";

fn read(store: &str) -> Config {
    let text = format!("store: {store}\n{POLICIES}");
    Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|errors| panic!("{errors}"))
}

fn redis(store: &str) -> RedisSettings {
    match read(store).store.target {
        StoreTarget::Redis(redis) => *redis,
        StoreTarget::Memory => panic!("{store} is memory"),
    }
}

fn url(url: &str) -> RedisSettings {
    redis(&format!("{{ url: \"{url}\" }}"))
}

#[test]
fn store_urls_are_parsed_and_shown_without_passwords() {
    for (text, shown) in [
        ("redis://a", "redis://a:6379"),
        ("redis://a/", "redis://a:6379"),
        ("redis://A.Example:7000/2", "redis://a.example:7000/2"),
        ("rediss://a", "rediss://a:6379"),
        ("valkey://a", "redis://a:6379"),
        ("valkeys://a", "rediss://a:6379"),
        ("redis://[::1]", "redis://[::1]:6379"),
        ("redis://[2001:db8::1]:1/3", "redis://[2001:db8::1]:1/3"),
        ("redis://ann:pw@a", "redis://ann:***@a:6379"),
        ("redis://:pw@a", "redis://:***@a:6379"),
        ("redis://a,b", "redis://a:6379,b:6379"),
        ("redis://a:1,redis://b:2/0", "redis://a:1,b:2"),
        (" redis://a:1 , ,, redis://b:2, ", "redis://a:1,b:2"),
        ("redis://a,redis://a:6379,b", "redis://a:6379,b:6379"),
        (
            "redis://u:pw@a,redis://u:pw@b",
            "redis://u:***@a:6379,b:6379",
        ),
        ("redis://u:pw@a,b", "redis://u:***@a:6379,b:6379"),
        (
            "redis+sentinel://s1,s2:9/main",
            "redis+sentinel://s1:26379,s2:9/main",
        ),
        (
            "rediss+sentinel://u:pw@s1,s2/main/4",
            "rediss+sentinel://u:***@s1:26379,s2:26379/main/4",
        ),
    ] {
        assert_eq!(url(text).to_string(), shown, "{text}");
    }
}

#[test]
fn a_displayed_store_url_parses_to_the_same_store() {
    for text in [
        "redis://ann:pw@a:1/2",
        "redis://%3A%40%2F%2C:pw@a,b",
        "rediss+sentinel://u:pw@[::1]:4,s2/main/4",
    ] {
        let first = url(text);
        let shown = first.to_string();
        let again = url(&shown.replace("***", "pw"));
        assert_eq!(first, again);
    }
}

#[test]
fn users_and_passwords_may_contain_any_character() {
    let redis = url("redis://%61nn%40x:p%2Cw%2F%3A%40%25%20%C3%A9@a");
    assert_eq!(redis.user.as_deref(), Some("ann@x"));
    assert_eq!(redis.password.unwrap().expose(), "p,w/:@% é");
    let redis = url("redis://ann:p:w@x@a");
    assert_eq!(redis.password.unwrap().expose(), "p:w@x");
}

#[test]
fn the_topology_is_inferred_or_configured() {
    for (store, mode) in [
        ("{ url: redis://a }", RedisMode::Standalone),
        (
            "{ url: redis://a, redis: { topology: auto } }",
            RedisMode::Standalone,
        ),
        (
            "{ url: redis://a, redis: { topology: cluster } }",
            RedisMode::Cluster,
        ),
        ("{ url: \"redis://a,b\" }", RedisMode::Cluster),
        ("{ url: [redis://a, \"b:7\"] }", RedisMode::Cluster),
        ("{ url: [redis://a] }", RedisMode::Standalone),
        (
            "{ url: [redis://s1, s2], redis: { topology: sentinel, master: m, sentinel_user: u, sentinel_password: pw } }",
            RedisMode::Sentinel {
                master: "m".to_owned(),
                user: Some("u".to_owned()),
                password: Some(tidegate_policy::text::Secret::new("pw")),
            },
        ),
        (
            "{ url: redis+sentinel://s1, redis: { master: m } }",
            RedisMode::Sentinel {
                master: "m".to_owned(),
                user: None,
                password: None,
            },
        ),
    ] {
        assert_eq!(redis(store).mode, mode, "{store}");
    }
    let sentinels = redis("{ url: [redis://s1, s2], redis: { topology: sentinel, master: m } }");
    assert_eq!(sentinels.addresses[1].port, 26_379);
}

#[test]
fn several_addresses_of_one_server_cause_a_warning() {
    let config = read("{ url: \"redis://a,b\", redis: { topology: standalone } }");
    let [warning] = config.warnings() else {
        panic!("{:?}", config.warnings())
    };
    assert!(warning.message().contains("only the first"), "{warning}");
    assert_eq!(config.store.target.to_string(), "redis://a:6379");
}

#[test]
fn no_password_is_shown_when_the_line_is_long() {
    let password = "7hunter2".repeat(100);
    let text = format!("store: {{ url: \"redis://ann:{password}@a/x\" }}\n{POLICIES}");
    let said = shown(&text);
    assert!(!said.contains("hunter2"), "{said}");
    assert!(said.contains("database"), "{said}");
}

/// An environment in which every file contains the password.
struct Files(String);

impl Environment for Files {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "PASSWORD").then(|| self.0.clone())
    }

    fn file(&self, _path: &str) -> Result<String, String> {
        Ok(self.0.clone())
    }
}

/// Returns every text that can be produced about a configuration.
fn shown(text: &str) -> String {
    shown_in(text, &NoEnvironment)
}

fn shown_in(text: &str, environment: &dyn Environment) -> String {
    match Config::parse(text, "x", environment) {
        Ok(config) => {
            let mut said = format!("{config:?} {} {}", config.store.target, explain(&config));
            for warning in config.warnings() {
                let _ = write!(said, "{warning} {warning:?}");
            }
            said + &costs(&config).concat()
        }
        Err(errors) => format!("{errors} {errors:?}"),
    }
}

fn escaped(password: &str) -> String {
    password.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "%{byte:02x}");
        text
    })
}

/// Escapes a text for double quotes in YAML.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Forms of a URL; `PW` is the password.
const FORMS: [&str; 11] = [
    "redis://ann:PW@a:6379/0",
    "redis://:PW@a",
    "redis://ann:PW@a,b",
    "redis://ann:PW@a,redis://ann:PW@b",
    "rediss://ann:PW@[::1]:1/x",
    "redis+sentinel://ann:PW@s1,s2/main/1",
    "redis+sentinel://ann:PW@s1,s2/main/x",
    "redid://ann:PW@a",
    "redis://ann:PW@",
    "redis://ann:PW@a?timeout=1",
    "redis://ann:PW@a:port",
];

proptest! {
    #[test]
    fn no_password_is_ever_shown(
        form in 0..FORMS.len(),
        marks in "[ -~]{0,3}",
        more in "[ -~é]{0,3}",
        mistake in prop::sample::select(vec!["", "redis: { topology: cluster }, ", "redis: { topology: sentinel }, ", "tmieout: 1s, ", "redis: { tls: { ca: x } }, ", "redis: { prefix: \"{\" }, "]),
        how in 0..4_u8,
    ) {
        // Whichever character cuts it off, a recognizable part remains.
        let password = format!("hunter2{marks}hunter2{more}hunter2");
        let form = FORMS[form];
        let plain = form.replace(":PW@", "@");
        let store = match how {
            0 => format!("{mistake}url: \"{}\"", form.replace("PW", &escaped(&password))),
            1 => format!("{mistake}url: \"{}\"", quoted(&form.replace("PW", &password))),
            2 => format!("{mistake}url: \"{plain}\", password: \"{}\"", quoted(&password).replace("${", "")),
            _ => format!("{mistake}url: \"{plain}\", password_file: /f, sentinel_password: \"${{PASSWORD}}\""),
        };
        let text = format!("store: {{ {store} }}\n{POLICIES}");
        let said = shown_in(&text, &Files(password.clone()));
        prop_assert!(!said.contains("hunter2"), "{}", said);
        prop_assert!(!said.contains(&escaped("hunter2")), "{}", said);
        let block = text.replace("store: { ", "store:\n  ").replacen(" }\n", "\n", 1);
        let said = shown_in(&block, &Files(password));
        prop_assert!(!said.contains("hunter2"), "{}", said);
    }

    #[test]
    fn any_url_is_parsed_or_rejected(text in r"(redis|rediss|valkey|redis\+sentinel)://[a-z:@/,\[\]%0-9?# .-]{0,40}") {
        let config = format!("store: {{ url: \"{text}\" }}\n{POLICIES}");
        if let Ok(config) = Config::parse(&config, "x", &NoEnvironment) {
            let redis = config.store.target.redis().unwrap();
            prop_assert!(!redis.addresses.is_empty());
            let shown = redis.to_string().replace("***", "pw");
            prop_assert_eq!(url(&shown).addresses, redis.addresses.clone());
        }
    }
}
