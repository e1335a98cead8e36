//! Sources with rules of `FluxGate`, or with Tidegate's documents in their place.

use std::time::Duration;
use tidegate_config::NoEnvironment;
use tidegate_config::compose::{NamedText, SourcePart};
use tidegate_config::source::{PolicyOrigin, PolicySource};
use tidegate_config::{Config, ConfigErrors};
use tidegate_import::fluxgate_rules;
use tidegate_policy::documents::{DocumentLocation, DocumentStoreSettings};

fn sources(text: &str) -> Result<Vec<PolicySource>, ConfigErrors> {
    let own = NamedText {
        name: "own.yaml",
        text,
    };
    Config::sources_of(own, &NoEnvironment)
}

#[test]
fn rule_sets_are_named_by_their_key_prefix() {
    let text = "
store: { url: 'redis://db' }
sources:
  - redis: { rulesets: fluxgate }
  - { name: other, redis: { url: 'redis://elsewhere', rulesets: 'shop:', channel: told }, refresh: 1s }
";
    let sources = sources(text).expect("a valid config");
    let origin = |at: usize| match &sources[at].origin {
        PolicyOrigin::RuleSets(it) => (
            it.redis.target.to_string(),
            it.prefix.clone(),
            it.channel.clone(),
        ),
        other => panic!("{other:?}"),
    };
    let said = |redis: &str, prefix: &str, channel: &str| {
        (redis.to_owned(), prefix.to_owned(), channel.to_owned())
    };
    assert_eq!(
        origin(0),
        said("redis://db:6379", "fluxgate", "fluxgate:rule-reload")
    );
    assert_eq!(origin(1), said("redis://elsewhere:6379", "shop", "told"));
    assert_eq!(
        (sources[0].name.as_str(), sources[0].kind()),
        ("redis", "redis")
    );
    let refreshes = [sources[0].refresh, sources[1].refresh];
    assert_eq!(refreshes, [Duration::from_secs(5), Duration::from_secs(1)]);
    assert!(sources.iter().all(|it| !it.is_writable()));
}

#[test]
fn a_collection_is_named_by_its_database() {
    let text = "sources: [{ mongodb: { url: 'mongodb://ann:hunter2@db', database: fluxgate, format: fluxgate } }]";
    let sources = sources(text).expect("a valid config");
    let PolicyOrigin::MongoDb(rules) = &sources[0].origin else {
        panic!("{sources:?}");
    };
    assert_eq!(
        (rules.database.as_str(), rules.collection.as_str()),
        ("fluxgate", "rate_limit_rules")
    );
    assert_eq!(
        (sources[0].name.as_str(), sources[0].is_writable()),
        ("mongodb", false)
    );
    assert!(!format!("{sources:?}").contains("hunter2"), "{sources:?}");
}

#[test]
fn tidegate_documents_are_distinguished_from_rules_and_writable() {
    let text = "sources: [{ mongodb: { url: 'mongodb://ann:hunter2@db', database: limits, collection: ours } },
                          { name: b, mongodb: { url: 'mongodb://db', database: c, collection: d, writable: false }, refresh: 1s }]";
    let sources = sources(text).expect("a valid config");
    let PolicyOrigin::Shelf(DocumentStoreSettings {
        place: DocumentLocation::MongoDb(place),
        ..
    }) = &sources[0].origin
    else {
        panic!("{sources:?}");
    };
    let named = (place.database.as_str(), place.collection.as_str());
    assert_eq!(named, ("limits", "ours"));
    assert_eq!(
        (sources[0].kind(), sources[0].is_writable()),
        ("mongodb", true)
    );
    assert_eq!(
        (sources[1].kind(), sources[1].is_writable()),
        ("mongodb", false)
    );
    let refreshes = [sources[0].refresh, sources[1].refresh];
    assert_eq!(refreshes, [Duration::from_secs(5), Duration::from_secs(1)]);
    assert!(!format!("{sources:?}").contains("hunter2"), "{sources:?}");
}

#[test]
fn errors_name_the_valid_values() {
    for (text, expected) in [
        (
            "sources: [{ redis: { url: 'redis://a', channel: b } }]",
            "`channel` is only for `rulesets`",
        ),
        (
            "sources: [{ redis: { url: 'redis://a', rulesets: b, key: c } }]",
            "`key` conflicts with `rulesets`",
        ),
        (
            "sources: [{ redis: { url: 'redis://a', rulesets: b, writable: true } }]",
            "`writable` conflicts with `rulesets`",
        ),
        (
            "sources: [{ redis: { rulesets: b } }]",
            "the store is not Redis",
        ),
        (
            "sources: [{ redis: { url: 'redis://a', ruleset: b } }]",
            "did you mean `rulesets`?",
        ),
        (
            "sources: [{ mongodb: { url: 'http://ann:hunter2@a', database: b } }]",
            "this is not a MongoDB URL",
        ),
        (
            "sources: [{ mongodb: { url: 'mongodb://a' } }]",
            "needs `database`",
        ),
        ("sources: [{ mongodb: { database: b } }]", "needs `url`"),
        (
            "sources: [{ mongodb: { url: 'mongodb://a', database: b, format: traefik-plugin } }]",
            "use `tidegate` or `fluxgate`",
        ),
        (
            "sources: [{ mongodb: { url: 'mongodb://a', database: b, format: fluxgate, writable: true } }]",
            "`writable` is only for `format: tidegate`",
        ),
        (
            "sources: [{ mongodb: { url: 'mongodb://a', database: b, collection: '' } }]",
            "this is empty; expected a collection, for example `tidegate_policies`",
        ),
    ] {
        let errors = sources(text).expect_err(text).to_string();
        assert!(errors.contains(expected), "{text}: {errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn a_rule_set_named_like_a_policy_is_reported_with_both_positions() {
    let rule = |set: &str| {
        format!(
            r#"{{ "ruleSetId": "{set}", "id": "a", "bands": [{{ "windowSeconds": 1, "capacity": 5 }}] }}"#
        )
    };
    let own = NamedText {
        name: "own.yaml",
        text: "policies: [{ name: web, limits: [{ name: all, rate: 1/s }] }]",
    };
    let compose = |sets: &[&str]| {
        let rules: Vec<String> = sets.iter().map(|set| rule(set)).collect();
        let rules = fluxgate_rules("redis", &rules.join("\n")).expect("they are right");
        let part = SourcePart {
            named: NamedText {
                name: "redis, translated",
                text: &rules.to_part(),
            },
            is_translated: true,
            is_separable: false,
            is_trusted: false,
        };
        Config::compose(own, &[part], &NoEnvironment)
    };
    let told = compose(&["shop", "web"]).expect_err("two are called `web`");
    let told = told.to_string();
    for said in [
        "redis, translated:",
        "two policies are named `web`",
        "the first is on line 1 of own.yaml",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    // A similar id gets a different name.
    let composed = compose(&["shop", "web ", "Web!"]).expect("no two are called the same");
    assert_eq!(composed.config.policies.len(), 4);
}
