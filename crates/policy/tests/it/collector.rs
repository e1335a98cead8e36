//! The variables of the collector, and who listens to them.

use std::time::Duration;
use tidegate_policy::Config;
use tidegate_policy::config::NoEnvironment;
use tidegate_policy::guard::{Guard, ListOrigin};

/// All that its variables can say something of, written otherwise.
const WHOLE: &str = "
respond: { profile: collector }
store: { url: 'redis://file:6380' }
guards:
  - { name: office, exempt: ip, redis: { set: Office } }
  - { name: blacklist, refuse: ip, redis: { set: Bad }, refresh: 1min }
  - { name: networks, refuse: ip, list: [192.0.2.0/24] }
  - { name: projects, refuse: 'attr:project', redis: { set: Blocked }, refresh: 1min }
  - { name: robots, refuse: 'header:user-agent', redis: { set: Robots }, reason: blacklisted }
addresses: { period: 1min, threshold: 7, ban: { guard: blacklist, for: 1h } }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";

const LIMITS: &str = "policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";

/// An environment in which these variables are set.
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
fn the_collectors_variables_beat_the_file() {
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
fn no_default_beats_the_file() {
    let config = read(WHOLE, &[("REDIS_URL", ""), ("BLACKLIST_THRESHOLD", " ")]);
    assert_eq!(config.store.target.to_string(), "redis://file:6380");
    assert_eq!(set_of(&config, "projects"), "Blocked");
    assert_eq!(guard(&config, "blacklist").refresh, Duration::from_mins(1));
    assert_eq!(config.addresses.unwrap().threshold, 7);
}

#[test]
fn a_stray_redis_url_changes_nobodys_store() {
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

    // A policy that answers as the collector does says nothing of the store of all.
    let policy = LIMITS.replace("name: p,", "name: p, respond: { profile: collector },");
    assert_eq!(store(&policy, &stray), "memory");
}

#[test]
fn redis_is_where_the_collector_expects_it_only_where_it_is_needed_and_nowhere_said() {
    let answers = format!("respond: {{ profile: collector }}\n{LIMITS}");
    assert_eq!(store(&answers, &[]), "memory");
    assert_eq!(
        store(&answers, &[("REDIS_URL", "cache:7000")]),
        "redis://cache:7000"
    );

    let guarded =
        format!("guards: [{{ name: b, refuse: ip, redis: {{ set: S }} }}]\nstore:\n{answers}");
    assert_eq!(store(&guarded, &[]), "redis://localhost:6379");
    let counting = format!("addresses: {{ threshold: 5 }}\n{answers}");
    assert_eq!(store(&counting, &[]), "redis://localhost:6379");
    let listed = guarded.replace("redis: { set: S }", "list: [192.0.2.1]");
    assert_eq!(store(&listed.replace("store:\n", ""), &[]), "memory");

    // Where nothing is looked up, there is nothing that could have a default.
    let errors = Config::parse(&counting, "x", &NoEnvironment).unwrap_err();
    assert!(errors.to_string().contains("the store is `memory`"));
}

#[test]
fn our_own_variables_beat_the_collectors() {
    let variables = [
        ("REDIS_URL", "theirs:6379"),
        ("REDIS_PASSWORD", "theirs"),
        ("TIDEGATE_STORE_URL", "redis://ours"),
        ("TIDEGATE_STORE_PASSWORD", "hunter2"),
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
    assert_eq!(password("redis://file", ", password: beside"), "filled");
    assert_eq!(
        password("redis://file", ", password_file: beside"),
        "filled"
    );
}

#[test]
fn what_is_wrong_with_a_variable_is_said_of_the_variable() {
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
        let names_it = said.contains(variable) || said.contains("both counts have the same name");
        assert!(names_it, "{variable}={value}: {said}");
    }
    let said = refused(WHOLE, &[("REDIS_URL", ":hunter2@ca che")]);
    assert!(said.contains("REDIS_URL") && !said.contains("hunter2"));
}

#[test]
fn a_variable_that_could_mean_several_guards_is_refused_until_the_file_says_which() {
    let two = "
respond: { profile: collector }
guards:
  - { name: projects, refuse: 'attr:project', redis: { set: A } }
  - { name: users, refuse: user, redis: { set: B }, reason: blocked }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";
    let variables = [("REDIS_DISABLED_PROJECT_SET", "Blocked")];
    let said = refused(two, &variables);
    assert!(
        said.contains("it could be for any of the guards `projects`, `users`"),
        "{said}"
    );
    assert!(said.contains("write `set: ${REDIS_DISABLED_PROJECT_SET}` at the one that is meant"));

    let told = two.replace("set: B", "set: '${REDIS_DISABLED_PROJECT_SET}'");
    let config = read(&told, &variables);
    assert_eq!(
        (set_of(&config, "projects"), set_of(&config, "users")),
        ("A", "Blocked")
    );
}

#[test]
fn of_several_blacklists_the_one_that_bans_is_meant() {
    let text = WHOLE.replace(
        "refuse: ip, list: [192.0.2.0/24]",
        "refuse: ip, redis: { set: Other }",
    );
    let config = read(&text, &[("REDIS_BLACKLIST_IP_SET", "BlacklistIPsSet")]);
    assert_eq!(set_of(&config, "blacklist"), "BlacklistIPsSet");
    assert_eq!(set_of(&config, "networks"), "Other");
}

#[test]
fn a_variable_that_nothing_listens_to_is_told_of() {
    let text = format!("respond: {{ profile: collector }}\n{LIMITS}");
    for (variable, why) in [
        ("REDIS_DISABLED_PROJECT_SET", "no guard blocks anybody"),
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
