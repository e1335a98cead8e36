//! Sources that hold rules of `FluxGate`, or documents of ours where rules could be: how they are written.

use std::time::Duration;
use tidegate_policy::config::NoEnvironment;
use tidegate_policy::import::fluxgate_rules;
use tidegate_policy::source::{
    DocumentStoreSettings, NamedText, PolicyOrigin, PolicySource, ShelfPlace, SourcePart,
};
use tidegate_policy::{Config, ConfigErrors};

fn sources(text: &str) -> Result<Vec<PolicySource>, ConfigErrors> {
    let own = NamedText {
        name: "own.yaml",
        text,
    };
    Config::sources_of(own, &NoEnvironment)
}

#[test]
fn rule_sets_are_named_by_what_their_keys_begin_with() {
    let text = "
store: { url: 'redis://db' }
sources:
  - redis: { rulesets: fluxgate }
  - { name: other, redis: { url: 'redis://elsewhere', rulesets: 'shop:', channel: told, refresh: 1s } }
";
    let sources = sources(text).expect("it is right");
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
    let text = "sources: [{ mongodb: { url: 'mongodb://ann:hunter2@db', database: fluxgate } }]";
    let sources = sources(text).expect("it is right");
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
fn documents_of_ours_are_told_from_rules_and_can_be_written_to() {
    let text = "sources: [{ mongodb: { url: 'mongodb://ann:hunter2@db', database: limits, documents: ours } },
                          { name: b, mongodb: { url: 'mongodb://db', database: c, documents: d, writable: false, refresh: 1s } }]";
    let sources = sources(text).expect("it is right");
    let PolicyOrigin::Shelf(DocumentStoreSettings {
        place: ShelfPlace::MongoDb(place),
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
fn what_is_wrong_is_told_with_what_would_be_right() {
    for (text, expected) in [
        (
            "sources: [{ redis: { url: 'redis://a', channel: b } }]",
            "`channel` is for rule sets",
        ),
        (
            "sources: [{ redis: { url: 'redis://a', rulesets: b, key: c } }]",
            "`key` is not for rule sets",
        ),
        (
            "sources: [{ redis: { url: 'redis://a', rulesets: b, writable: true } }]",
            "`writable` is not for rule sets",
        ),
        ("sources: [{ redis: { rulesets: b } }]", "there is no Redis"),
        (
            "sources: [{ redis: { url: 'redis://a', ruleset: b } }]",
            "did you mean `rulesets`?",
        ),
        (
            "sources: [{ mongodb: { url: 'http://ann:hunter2@a', database: b } }]",
            "this is not the URL of a MongoDB",
        ),
        (
            "sources: [{ mongodb: { url: 'mongodb://a' } }]",
            "needs `database`",
        ),
        ("sources: [{ mongodb: { database: b } }]", "needs `url`"),
        (
            "sources: [{ mongodb: { url: 'mongodb://a', database: b, documents: c, collection: d } }]",
            "`collection` and `documents` are both there",
        ),
        (
            "sources: [{ mongodb: { url: 'mongodb://a', database: b, writable: true } }]",
            "`writable` is for documents of ours",
        ),
        (
            "sources: [{ mongodb: { url: 'mongodb://a', database: b, documents: '' } }]",
            "there is nothing here; expected a collection, for example `tidegate_policies`",
        ),
    ] {
        let errors = sources(text).expect_err(text).to_string();
        assert!(errors.contains(expected), "{text}: {errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn a_rule_set_that_is_called_as_a_policy_of_the_file_is_told_with_both_places() {
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
        "there are two policies with the name `web`",
        "the first is on line 1 of own.yaml",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    // One that is merely written like it has a name of its own.
    let composed = compose(&["shop", "web ", "Web!"]).expect("no two are called the same");
    assert_eq!(composed.config.policies.len(), 4);
}
