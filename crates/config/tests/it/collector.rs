//! The variables of the collector, and the settings that they affect.

use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_policy::guard::{Guard, ListOrigin};

/// All settings that its variables affect, with other values.
const WHOLE: &str = "
respond: { profile: collector }
store: { url: 'redis://file:6380' }
guards:
  - { name: office, allow: ip, redis: { set: Office } }
  - { name: blacklist, deny: ip, redis: { set: Bad }, refresh: 1min }
  - { name: networks, deny: ip, list: [192.0.2.0/24] }
  - { name: projects, deny: 'attr:project', redis: { set: Blocked }, refresh: 1min }
  - { name: robots, deny: 'header:user-agent', redis: { set: Robots }, reason: blacklisted }
addresses: { period: 1min, threshold: 7, ban: { guard: blacklist, for: 1h } }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";

const LIMITS: &str = "policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";

/// Returns an environment with these variables.
fn set(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let found = variables.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

fn read(text: &str, variables: &[(&str, &str)]) -> Config {
    Config::parse(text, "x", &set(variables)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(text: &str, variables: &[(&str, &str)]) -> String {
    let errors = Config::parse(text, "x", &set(variables)).unwrap_err();
    errors.to_string()
}

fn store(text: &str, variables: &[(&str, &str)]) -> String {
    read(text, variables).store.target.to_string()
}

fn guard<'a>(config: &'a Config, name: &str) -> &'a Guard {
    let mut guards = config.guards.iter();
    guards.find(|guard| guard.name == name).expect(name)
}

fn set_of<'a>(config: &'a Config, name: &str) -> &'a str {
    match &guard(config, name).origin {
        ListOrigin::Redis { set, .. } => set,
        other => panic!("{other:?}"),
    }
}

#[test]
fn collector_variables_override_the_file() {
    let variables = [
        ("REDIS_URL", "cache:6379"),
        ("REDIS_PASSWORD", "hunter2"),
        ("REDIS_DISABLED_PROJECT_SET", "DisabledProjectsSet"),
        ("REDIS_BLACKLIST_IP_SET", "BlacklistIPsSet"),
        ("REDIS_ALL_IPS_MAP", "Total"),
        ("REDIS_CURRENT_PERIOD_MAP", "Period"),
        ("BLOCKED_PROJECTS_UPDATE_PERIOD", "5s"),
        ("BLACKLIST_UPDATE_PERIOD", "15s"),
        ("BLACKLIST_THRESHOLD", "10000"),
    ];
    let config = read(WHOLE, &variables);
    assert_eq!(config.store.target.to_string(), "redis://:***@cache:6379");
    let redis = config.store.target.redis().unwrap();
    assert_eq!(redis.password.as_ref().unwrap().expose(), "hunter2");
    assert_eq!(set_of(&config, "projects"), "DisabledProjectsSet");
    assert_eq!(guard(&config, "projects").refresh, Duration::from_secs(5));
    assert_eq!(set_of(&config, "blacklist"), "BlacklistIPsSet");
    assert_eq!(guard(&config, "blacklist").refresh, Duration::from_secs(15));
    assert_eq!(set_of(&config, "office"), "Office");
    assert_eq!(set_of(&config, "robots"), "Robots");
    let addresses = config.addresses.as_ref().unwrap();
    assert_eq!(addresses.period, Duration::from_secs(15));
    assert_eq!(addresses.threshold, 10_000);
    assert_eq!(
        (&*addresses.period_map, &*addresses.total_map),
        ("Period", "Total")
    );
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
}

#[test]
fn no_default_overrides_the_file() {
    let config = read(WHOLE, &[("REDIS_URL", ""), ("BLACKLIST_THRESHOLD", " ")]);
    assert_eq!(config.store.target.to_string(), "redis://file:6380");
    assert_eq!(set_of(&config, "projects"), "Blocked");
    assert_eq!(guard(&config, "blacklist").refresh, Duration::from_secs(60));
    assert_eq!(config.addresses.unwrap().threshold, 7);
}

#[test]
fn a_stray_redis_url_does_not_change_the_store() {
    let stray = [
        ("REDIS_URL", "elsewhere:6379"),
        ("REDIS_PASSWORD", "hunter2"),
        ("REDIS_BLACKLIST_IP_SET", "Elsewhere"),
        ("BLACKLIST_THRESHOLD", "many"),
    ];
    assert_eq!(store(LIMITS, &stray), "memory");
    let other = WHOLE.replace("profile: collector", "profile: adr");
    let config = read(&other, &stray);
    assert_eq!(config.store.target.to_string(), "redis://file:6380");
    assert_eq!(set_of(&config, "blacklist"), "Bad");
    assert_eq!(config.addresses.unwrap().threshold, 7);

    // A policy in the collector's style does not set `on_failure` of the whole store.
    let policy = LIMITS.replace("name: p,", "name: p, respond: { profile: collector },");
    assert_eq!(store(&policy, &stray), "memory");
}

#[test]
fn the_collectors_default_redis_is_used_only_if_needed_and_unset() {
    let answers = format!("respond: {{ profile: collector }}\n{LIMITS}");
    assert_eq!(store(&answers, &[]), "memory");
    assert_eq!(
        store(&answers, &[("REDIS_URL", "cache:7000")]),
        "redis://cache:7000"
    );

    let guarded =
        format!("guards: [{{ name: b, deny: ip, redis: {{ set: S }} }}]\nstore:\n{answers}");
    assert_eq!(store(&guarded, &[]), "redis://localhost:6379");
    let counting = format!("addresses: {{ threshold: 5 }}\n{answers}");
    assert_eq!(store(&counting, &[]), "redis://localhost:6379");
    let listed = guarded.replace("redis: { set: S }", "list: [192.0.2.1]");
    assert_eq!(store(&listed.replace("store:\n", ""), &[]), "memory");

    // Without a lookup, no default applies.
    let errors = Config::parse(&counting, "x", &NoEnvironment).unwrap_err();
    assert!(errors.to_string().contains("the store is `memory`"));
}

#[test]
fn tidegate_variables_override_collector_variables() {
    let variables = [
        ("REDIS_URL", "theirs:6379"),
        ("REDIS_PASSWORD", "theirs"),
        ("TIDEGATE_STORE_URL", "redis://ours"),
        ("TIDEGATE_STORE_REDIS_PASSWORD", "hunter2"),
    ];
    let config = read(WHOLE, &variables);
    let redis = config.store.target.redis().unwrap();
    assert_eq!(redis.password.as_ref().unwrap().expose(), "hunter2");
    assert_eq!(config.store.target.to_string(), "redis://:***@ours:6379");
}

#[test]
fn a_password_fills_a_url_without_one() {
    let password = |url: &str, rest: &str| {
        let text = WHOLE.replace("'redis://file:6380'", &format!("'{url}'{rest}"));
        let config = read(&text, &[("REDIS_PASSWORD", "filled"), ("PASS", "inside")]);
        let redis = config.store.target.redis().unwrap();
        redis.password.as_ref().unwrap().expose().to_owned()
    };
    assert_eq!(password("redis://file", ""), "filled");
    assert_eq!(password("redis://ann@file", ""), "filled");
    assert_eq!(password("redis://:${PASS}@file", ""), "inside");
    assert_eq!(
        password("redis://file", ", redis: { password: beside }"),
        "filled"
    );
    assert_eq!(
        password("redis://file", ", redis: { password_file: beside }"),
        "filled"
    );
}

#[test]
fn an_invalid_variable_is_reported_by_its_name() {
    for (variable, value) in [
        ("REDIS_URL", "redis//cache"),
        ("REDIS_URL", "http://cache"),
        ("BLACKLIST_THRESHOLD", "many"),
        ("BLACKLIST_UPDATE_PERIOD", "often"),
        ("BLACKLIST_UPDATE_PERIOD", "200ms"),
        ("BLOCKED_PROJECTS_UPDATE_PERIOD", "5"),
        ("REDIS_ALL_IPS_MAP", "CurrentPeriodMap"),
    ] {
        let said = refused(WHOLE, &[(variable, value)]);
        let names_it =
            said.contains(variable) || said.contains("both counts use the same Redis key");
        assert!(names_it, "{variable}={value}: {said}");
    }
    let said = refused(WHOLE, &[("REDIS_URL", ":hunter2@ca che")]);
    assert!(said.contains("REDIS_URL") && !said.contains("hunter2"));
}

#[test]
fn a_variable_that_fits_several_guards_is_rejected() {
    let two = "
respond: { profile: collector }
guards:
  - { name: projects, deny: 'attr:project', redis: { set: A } }
  - { name: users, deny: user, redis: { set: B }, reason: blocked }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";
    let variables = [("REDIS_DISABLED_PROJECT_SET", "Blocked")];
    let said = refused(two, &variables);
    assert!(
        said.contains("it could set any of the guards `projects`, `users`"),
        "{said}"
    );
    assert!(said.contains("write `set: ${REDIS_DISABLED_PROJECT_SET}` in the guard it is for"));

    let told = two.replace("set: B", "set: '${REDIS_DISABLED_PROJECT_SET}'");
    let config = read(&told, &variables);
    assert_eq!(
        (set_of(&config, "projects"), set_of(&config, "users")),
        ("A", "Blocked")
    );
}

#[test]
fn a_blacklist_variable_applies_to_the_guard_that_bans() {
    let text = WHOLE.replace(
        "deny: ip, list: [192.0.2.0/24]",
        "deny: ip, redis: { set: Other }",
    );
    let config = read(&text, &[("REDIS_BLACKLIST_IP_SET", "BlacklistIPsSet")]);
    assert_eq!(set_of(&config, "blacklist"), "BlacklistIPsSet");
    assert_eq!(set_of(&config, "networks"), "Other");
}

#[test]
fn an_unused_collector_variable_causes_a_warning() {
    let text = format!("respond: {{ profile: collector }}\n{LIMITS}");
    for (variable, why) in [
        ("REDIS_DISABLED_PROJECT_SET", "no guard blocks"),
        ("BLACKLIST_UPDATE_PERIOD", "no guard refuses addresses"),
        ("BLACKLIST_THRESHOLD", "no requests are counted by address"),
    ] {
        let config = read(&text, &[(variable, "7s")]);
        let [warning] = config.warnings() else {
            panic!("{variable}: {:?}", config.warnings())
        };
        assert_eq!(warning.variable(), Some(variable));
        assert!(warning.message().contains(why), "{warning}");
    }
}
