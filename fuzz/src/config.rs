//! Any text as a configuration: it is read or rejected, and nothing panics.
//!
//! How: the text is parsed with a few variables set. A rejection must have a reason and a position.
//! An accepted configuration must explain itself and decide requests.

use tidegate_config::{Severity, explain};
use tidegate_policy::policy::Scratch;
use tidegate_config::{Config, ConfigErrors};
use tidegate_policy::Request;

fuzz_target!(|text: &str| {
    match Config::parse(text, "fuzz.yaml", &variable) {
        Ok(config) => {
            check_warnings(&config);
            ask(&config);
        }
        Err(errors) => check_errors(text, &errors),
    }
});

fn variable(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("8080".to_owned()),
        "RATE" => Some("10/s burst 50".to_owned()),
        "LOOP" => Some("${LOOP}".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn check_errors(text: &str, errors: &ConfigErrors) {
    assert!(errors.count() > 0, "rejected without a reason");
    assert_eq!(errors.file(), "fuzz.yaml");
    assert!(!errors.to_string().is_empty());
    // A carriage return alone ends a line in YAML, too.
    let lines_max = text.split(['\n', '\r']).count() + 1;
    for problem in errors.problems() {
        assert_eq!(problem.severity(), Severity::Error);
        assert!(!problem.message().is_empty());
        assert!(
            problem
                .line()
                .is_none_or(|line| (1..=lines_max).contains(&line))
        );
        let shown = problem.to_string();
        let moves_cursor = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!shown.contains(moves_cursor), "{shown:?}");
    }
}

fn check_warnings(config: &Config) {
    for problem in config.warnings() {
        assert_eq!(problem.severity(), Severity::Warning);
        assert!(!problem.to_string().is_empty());
    }
    explain(config);
    assert!(!format!("{config:?}").is_empty());
}

/// Checks that an accepted configuration has a first policy, and that every policy decides
/// requests.
fn ask(config: &Config) {
    assert!(config.policy(None).is_some());
    let rules = config.key_rules();
    let mut scratch = Scratch::default();
    let request = Request::new()
        .ip([192, 0, 2, 1].into())
        .user("ann")
        .method("GET")
        .host("api.example.com:443")
        .path("/api/v2/users");
    for policy in &config.policies {
        assert!(config.policy(Some(&policy.name)).is_some());
        for request in [Request::new(), request] {
            let meeting = policy.meet(&request, &rules, &mut scratch);
            assert!(meeting.met.len() <= policy.limits.len());
        }
        for band in policy.limits.iter().flat_map(|limit| &limit.bands) {
            assert!(band.quota.period_us() > 0);
        }
    }
}
