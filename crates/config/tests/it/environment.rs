//! Variables, files, overrides, secrets.

use crate::good::{EVERYTHING, everything};
use tidegate_config::Config;
use tidegate_config::{ConfigProblem, NoEnvironment, overrides};
use tidegate_policy::SlotTag;

const SMALL: &str = "policies: [{ name: p, limits: [{ name: l, rate: \"${RATE:-1/s}\" }] }]";

/// Returns an environment with these variables.
fn set(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let found = variables.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

#[test]
fn variables_reach_every_value() {
    let config = Config::parse(SMALL, "x", &set(&[("RATE", "7/s burst 9")])).unwrap();
    assert_eq!(config.policies[0].limits[0].bands[0].text, "7/s burst 9");
}

#[test]
fn variables_cannot_inject_yaml_structure() {
    let odd = "1/s }, { name: m, rate: 1/s";
    let errors = Config::parse(SMALL, "x", &set(&[("RATE", odd)])).unwrap_err();
    assert_eq!(errors.problems()[0].path(), "policies[0].limits[0].rate");
}

#[test]
fn overrides_win_over_the_file() {
    let text = format!(
        "listen: {{ http: {{ address: 127.0.0.1:1, token: t }} }}\nstore: {{ url: [redis://a, redis://b], redis: {{ password_file: f }}, timeout: 5ms, key_secret: a }}\n{SMALL}"
    );
    let variables = [
        ("TIDEGATE_LISTEN_HTTP", "0.0.0.0:80"),
        ("TIDEGATE_LISTEN_GRPC", "127.0.0.1:81"),
        ("TIDEGATE_STORE_TIMEOUT", "50ms"),
        ("TIDEGATE_STORE_URL", "redis://db"),
        ("TIDEGATE_STORE_REDIS_PASSWORD", "hunter2"),
        ("TIDEGATE_STORE_REDIS_TAG", "policy"),
        ("TIDEGATE_STORE_KEY_SECRET", "${b"),
        ("TIDEGATE_STORE_MAX_KEYS", ""),
        ("TIDEGATE_CLIENT_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1"),
    ];
    let config = Config::parse(&text, "x", &set(&variables)).unwrap_or_else(|e| panic!("{e}"));
    let http = config.listen.http.unwrap();
    assert_eq!(http.address.to_string(), "0.0.0.0:80");
    assert!(http.token.is_some(), "only the address is overridden");
    assert_eq!(
        config.listen.grpc.unwrap().address.tcp().unwrap().port(),
        81
    );
    assert_eq!(config.store.timeout.as_millis(), 50);
    assert_eq!(config.store.target.to_string(), "redis://:***@db:6379");
    assert_eq!(config.store.target.redis().unwrap().tag, SlotTag::Policy);
    assert_eq!(config.store.key_secret.unwrap().expose(), "${b");
    assert_eq!(
        config.store.max_keys, 1_000_000,
        "set to nothing is not set"
    );
    assert_eq!(config.client.trusted_proxies().len(), 2);
}

#[test]
fn every_override_is_read_and_named_in_its_error() {
    for (variable, path) in overrides() {
        // Files cannot be read here. A value that may be any text cannot be invalid.
        let is_any_text = path.ends_with("secret")
            || path.ends_with("password")
            || path.ends_with("user")
            || ["store.redis.prefix", "store.redis.template"].contains(&path.as_str());
        if is_any_text {
            continue;
        }
        let environment = |name: &str| (name == variable).then(|| "?".to_owned());
        let errors = Config::parse(SMALL, "x", &environment).unwrap_err();
        let [problem] = errors.problems() else {
            panic!("{errors}")
        };
        assert_eq!(problem.variable(), Some(variable));
        assert!(
            problem.path().starts_with(&path),
            "{variable}: {}",
            problem.path()
        );
        assert!(problem.to_string().contains(variable));
    }
}

#[test]
fn errors_suggest_variables_only_if_variables_are_read() {
    let said = |text: &str| Config::from_yaml(text).unwrap_err().to_string();

    let variable = said("policies: [{ name: p, limits: [{ name: l, rate: '${RATE}' }] }]");
    assert!(
        variable.contains("the variable `RATE` is unknown: this environment has no variables"),
        "{variable}"
    );
    assert!(variable.contains("`tidegate::ProcessEnvironment`, or a default: ${RATE:-value}"));
    assert!(!variable.contains("set it"), "{variable}");

    let file = said(&format!("store: {{ key_secret_file: s.txt }}\n{SMALL}"));
    assert!(
        file.contains("`s.txt` cannot be read: this environment has no files; use an environment"),
        "{file}"
    );
    assert!(file.contains("`tidegate::ProcessEnvironment`"), "{file}");

    // If variables are looked up, setting one helps.
    let unset = "policies: [{ name: p, limits: [{ name: l, rate: '${OTHER}' }] }]";
    let errors = Config::parse(unset, "x", &set(&[])).unwrap_err();
    assert_eq!(
        errors.problems()[0].help(),
        Some("set it, or add a default: ${OTHER:-value}")
    );
}

#[test]
fn an_empty_list_of_trusted_proxies_is_valid() {
    let text = format!("client: {{ trusted_proxies: [] }}\n{SMALL}");
    let config = Config::parse(&text, "x", &NoEnvironment).unwrap();
    assert!(config.client.trusted_proxies().is_empty());
}

#[test]
fn secrets_are_not_in_debug() {
    let debug = format!("{:?}", everything());
    assert!(!debug.contains("hunter2"), "{debug}");
    assert!(!debug.contains("from a file"), "{debug}");
    assert!(debug.contains("password: Some(***)"), "{debug}");
}

#[test]
fn secrets_are_not_in_errors() {
    // A mistake on each line in turn: an unknown field, then a line that is not YAML.
    for mistake in ["? ", "\"", "oops: {"] {
        for line in 0..EVERYTHING.lines().count() {
            let mut lines: Vec<String> = EVERYTHING.lines().map(str::to_owned).collect();
            lines[line] = lines[line].replacen(|c: char| c.is_alphabetic(), mistake, 1);
            if let Err(errors) = Config::parse(&lines.join("\n"), "x", &NoEnvironment) {
                let said = format!("{errors} {errors:?}");
                assert!(!said.contains("hunter2"), "line {}: {errors}", line + 1);
            }
        }
    }
}

#[test]
fn the_same_secret_makes_the_same_keys() {
    let with = |secret: &str| {
        let text = format!("store: {{ key_secret: {secret} }}\n{SMALL}");
        Config::parse(&text, "x", &NoEnvironment)
            .unwrap()
            .key_rules()
            .secret
    };
    assert_eq!(with("a"), with("a"));
    assert_ne!(with("a"), with("b"));
    assert_eq!(Config::built_in().key_rules().secret, None);
}

#[test]
fn a_bad_value_of_a_variable_was_reported_at_every_place_of_use() {
    let text = "
policies:
  - name: p
    limits:
      - { name: a, rate: '${RATE}' }
      - { name: b, rate: '${RATE}' }
      - { name: c, bands: ['${RATE}', '${OTHER}'] }
      - { name: d, rate: fast }
      - { name: e, rate: fast }
";
    let variables = [("RATE", "fast"), ("OTHER", "fast")];
    let errors = Config::parse(text, "x", &set(&variables)).unwrap_err();
    let lines: Vec<_> = errors.problems().iter().map(ConfigProblem::line).collect();
    // Another variable, and literal values, are separate mistakes.
    assert_eq!(lines, [Some(5), Some(7), Some(8), Some(9)], "{errors}");
    assert!(
        errors
            .to_string()
            .contains("note: the same on lines 6, 7\n"),
        "{errors}"
    );

    let errors = Config::parse(text, "x", &set(&[("OTHER", "1/s")])).unwrap_err();
    let unset = errors.to_string();
    assert_eq!(
        unset.matches("the variable `RATE` is not set").count(),
        1,
        "{unset}"
    );
}

#[test]
fn a_bad_value_of_a_variable_with_two_settings_was_reported_twice() {
    let text = "
store: { url: 'redis://127.0.0.1' }
respond: { profile: collector }
guards: [{ name: blacklist, deny: ip, redis: { set: Blacklist } }]
addresses: { ban: { guard: blacklist } }
policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]
";
    for value in ["soon", "5000d"] {
        let variables = [("BLACKLIST_UPDATE_PERIOD", value)];
        let errors = Config::parse(text, "x", &set(&variables)).unwrap_err();
        let named = errors.problems().iter();
        let named = named.filter(|it| it.variable() == Some("BLACKLIST_UPDATE_PERIOD"));
        assert_eq!(named.count(), 1, "{errors}");
    }
    // Items of one list are separate mistakes.
    let variables = [("TIDEGATE_CLIENT_TRUSTED_PROXIES", "a, b")];
    let errors = Config::parse(SMALL, "x", &set(&variables)).unwrap_err();
    assert_eq!(errors.count(), 2, "{errors}");
}
