//! A translation merged with the user's own configuration.

use super::imported;
use tidegate_config::{Config, ConfigErrors};
use tidegate_config::{ConfigProblem, NoEnvironment};
use tidegate_import::{NamedText, SourceFile, traefik_plugin};

const EDGE: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: minute, requests_per_unit: 10 }
";

fn merged_with(own: &str) -> Result<Config, ConfigErrors> {
    let yaml = imported(EDGE).to_yaml();
    let own = NamedText {
        name: "own.yaml",
        text: own,
    };
    let policies = NamedText {
        name: "folder, translated",
        text: &yaml,
    };
    Config::parse_with_policies(own, policies, &NoEnvironment)
}

fn names(config: &Config) -> Vec<&str> {
    config.policies.iter().map(|it| it.name.as_str()).collect()
}

#[test]
fn a_config_without_policies_uses_those_of_the_translation() {
    let config = merged_with("listen: { grpc: 127.0.0.1:9 }\nstore: { timeout: 7ms }").unwrap();
    assert_eq!(names(&config), ["edge"]);
    assert_eq!(config.store.timeout.as_millis(), 7);
    // None of the translation's own listeners is left.
    assert!(config.listen.http.is_none());
    assert_eq!(
        names(&merged_with("policies:\nstore: {}").unwrap()),
        ["edge"]
    );
}

#[test]
fn policies_of_the_config_come_first() {
    let own = "policies: [{ name: api, limits: [{ name: a, rate: 1/s }] }]";
    assert_eq!(names(&merged_with(own).unwrap()), ["api", "edge"]);
}

#[test]
fn errors_refer_to_the_text_that_contains_them() {
    let own = "\
store: { tmeout: 1s }
policies:
  - { name: edge, limits: [{ name: a, rate: 1/s }] }
";
    let errors = merged_with(own).unwrap_err();
    let said = errors.to_string();
    assert_eq!(errors.count(), 2, "{said}");
    let places: Vec<_> = errors.problems().iter().map(ConfigProblem::file).collect();
    assert_eq!(places, ["own.yaml", "folder, translated"], "{said}");
    assert!(
        said.contains("folder, translated:9:11: duplicate name: two policies"),
        "{said}"
    );
    assert!(said.contains("the first is on line 3"), "{said}");
    assert!(said.contains("    9 |   - name: edge\n"), "{said}");
}

#[test]
fn an_unreadable_config_is_reported_as_usual() {
    let errors = merged_with("listen: [").unwrap_err();
    assert!(errors.to_string().starts_with("own.yaml:"), "{errors}");
    let errors = merged_with("").unwrap_err();
    assert!(errors.to_string().contains("is empty"), "{errors}");
}

#[test]
fn a_keeper_with_an_empty_key_was_translated_without_a_key() {
    for key in ["", "~", "null", "\"\"", "\"  \""] {
        let file = SourceFile {
            name: "plugin.yml".to_owned(),
            text: format!("spec:\n  keeperURL: http://keeper:8080\n  keeperRateLimitKey: {key}\n"),
        };
        let errors = traefik_plugin(&file).expect_err("a keeper without a key");
        let text = errors.to_string();
        assert!(
            text.contains("`keeperURL` needs `keeperRateLimitKey`"),
            "{text}"
        );
    }
}
