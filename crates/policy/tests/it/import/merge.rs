//! A translation beside a configuration of one's own.

use super::imported;
use tidegate_policy::config::{ConfigProblem, NoEnvironment};
use tidegate_policy::import::{NamedText, SourceFile, traefik_plugin};
use tidegate_policy::{Config, ConfigErrors};

const EDGE: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: minute, requests_per_unit: 10 }
";

fn beside(own: &str) -> Result<Config, ConfigErrors> {
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
fn a_configuration_without_policies_takes_those_of_the_translation() {
    let config = beside("listen: { grpc: 127.0.0.1:9 }\nstore: { timeout: 7ms }").unwrap();
    assert_eq!(names(&config), ["edge"]);
    assert_eq!(config.store.timeout.as_millis(), 7);
    // Of the translation's own doors nothing is left.
    assert!(config.listen.http.is_none());
    assert_eq!(names(&beside("policies:\nstore: {}").unwrap()), ["edge"]);
}

#[test]
fn ones_own_policies_come_first() {
    let own = "policies: [{ name: api, limits: [{ name: a, rate: 1/s }] }]";
    assert_eq!(names(&beside(own).unwrap()), ["api", "edge"]);
}

#[test]
fn what_is_wrong_is_told_of_the_text_that_it_is_in() {
    let own = "\
store: { tmeout: 1s }
policies:
  - { name: edge, limits: [{ name: a, rate: 1/s }] }
";
    let errors = beside(own).unwrap_err();
    let said = errors.to_string();
    assert_eq!(errors.count(), 2, "{said}");
    let places: Vec<_> = errors.problems().iter().map(ConfigProblem::file).collect();
    assert_eq!(places, ["own.yaml", "folder, translated"], "{said}");
    assert!(
        said.contains("folder, translated:9:11: there are two policies"),
        "{said}"
    );
    assert!(said.contains("the first is on line 3"), "{said}");
    assert!(said.contains("    9 |   - name: edge\n"), "{said}");
}

#[test]
fn a_configuration_that_cannot_be_read_says_so_as_ever() {
    let errors = beside("listen: [").unwrap_err();
    assert!(errors.to_string().starts_with("own.yaml:"), "{errors}");
    let errors = beside("").unwrap_err();
    assert!(errors.to_string().contains("says nothing"), "{errors}");
}

#[test]
fn a_keeper_whose_key_says_nothing_was_translated_to_one_without_a_key() {
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
