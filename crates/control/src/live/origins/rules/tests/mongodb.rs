//! Rules in a collection of a double that speaks a minimal part of the protocol.

use crate::live::origins::rules::MongoSource;
use crate::live::source::{LoadResult, PolicyFetcher, Revision, SourceError};
use crate::mongo::double::{Double, StoredCollections};
use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use std::time::Duration;
use tidegate_config::source::MongoRules;
use tidegate_policy::text::Secret;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(20);

const COLLECTION: &str = "rate_limit_rules";

fn source(url: &str) -> MongoSource {
    patient(url, Duration::from_secs(5))
}

fn patient(url: &str, time_max: Duration) -> MongoSource {
    let rules = MongoRules {
        url: Secret::new(url),
        database: "fluxgate".to_owned(),
        collection: COLLECTION.to_owned(),
    };
    MongoSource::new("mongodb", &rules, time_max, Duration::from_millis(100))
}

/// Returns a rule as the system stores it.
fn rule(set: &str, id: &str, capacity: impl Into<Bson>) -> Document {
    doc! {
        "_id": ObjectId::new(), "_class": "org.fluxgate.Rule",
        "id": id, "ruleSetId": set, "enabled": true, "scope": "PER_IP", "keyStrategyId": "clientIp",
        "onLimitExceedPolicy": "REJECT_REQUEST",
        "bands": [{ "windowSeconds": 60_i64, "capacity": capacity, "label": "per-minute" }],
        "attributes": {},
    }
}

async fn double(rules: Vec<Document>) -> Double {
    Double::start(StoredCollections::from([(COLLECTION, rules)])).await
}

async fn ask(source: &MongoSource, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
    timeout(LONG, source.load(seen)).await.expect("it answers")
}

async fn load(source: &MongoSource) -> (String, Revision) {
    match ask(source, None).await {
        Ok(LoadResult::Part(part)) => (part.text, part.version),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rules_with_any_number_width_are_read_completely_and_ordered() {
    let mut rules = vec![
        rule("b", "z", 10_i32),
        rule("b", "a", 20_i64),
        rule("a", "only", 30.0),
    ];
    let mut nameless = rule("", "nameless", 40_i32);
    nameless.remove("ruleSetId");
    rules.push(nameless);
    // Enough for several batches.
    rules.extend((0..250).map(|nth| rule("many", &format!("r{nth:03}"), 5_i32)));
    let double = double(rules).await;
    let (text, _) = load(&source(&double.url())).await;
    let at = |said: &str| text.find(said).unwrap_or_else(|| panic!("{said}: {text}"));
    let order = [
        "- name: a\n",
        "30/min",
        "- name: b\n",
        "20/min",
        "10/min",
        "- name: default\n",
        "40/min",
        "r000",
        "r249",
    ];
    for pair in order.windows(2) {
        assert!(at(pair[0]) < at(pair[1]), "{pair:?}: {text}");
    }
}

#[tokio::test]
async fn unchanged_rules_are_reported_as_unchanged() {
    let double = double(vec![rule("a", "one", 1_i32), rule("a", "two", 2_i32)]).await;
    let source = source(&double.url());
    let (_, first) = load(&source).await;
    let again = ask(&source, Some(&first)).await;
    assert!(matches!(again, Ok(LoadResult::Unchanged)), "{again:?}");
    double.store(COLLECTION, vec![rule("a", "one", 3_i32)]);
    timeout(LONG, source.changed())
        .await
        .expect("the interval passes");
    let Ok(LoadResult::Part(part)) = ask(&source, Some(&first)).await else {
        panic!("it has changed");
    };
    assert!(
        part.text.contains("3/min") && !part.text.contains("two"),
        "{}",
        part.text
    );
}

#[tokio::test]
async fn an_invalid_rule_keeps_its_set_and_other_sets_change() {
    let double = double(vec![rule("a", "one", 1_i32), rule("b", "two", 2_i32)]).await;
    let source = source(&double.url());
    load(&source).await;
    let wrong = rule("a", "other", "many");
    double.store(
        COLLECTION,
        vec![rule("a", "one", 9_i32), wrong, rule("b", "two", 4_i32)],
    );
    let (text, _) = load(&source).await;
    assert!(text.contains("1/min") && text.contains("4/min"), "{text}");
    assert!(
        !text.contains("9/min"),
        "a set changes whole or not at all: {text}"
    );
}

#[tokio::test]
async fn a_moved_rule_leaves_one_set_and_joins_the_other() {
    let of = |set: &str| {
        vec![
            rule("a", "one", 1_i32),
            rule(set, "two", 2_i32),
            rule("b", "three", 3_i32),
        ]
    };
    let double = double(of("a")).await;
    let source = source(&double.url());
    let halves = |text: &str| {
        let (a, b) = text.split_once("- name: b\n").expect("two rule sets");
        [a, b]
            .map(|set| ["one", "two", "three"].map(|rule| set.contains(&format!("name: {rule}\n"))))
    };
    let (text, first) = load(&source).await;
    assert_eq!(
        halves(&text),
        [[true, true, false], [false, false, true]],
        "{text}"
    );
    double.store(COLLECTION, of("b"));
    let Ok(LoadResult::Part(part)) = ask(&source, Some(&first)).await else {
        panic!("both have changed");
    };
    assert_eq!(part.flaw, None);
    let text = part.text;
    assert_eq!(
        halves(&text),
        [[true, false, false], [false, true, true]],
        "{text}"
    );
}

#[tokio::test]
async fn errors_for_unreadable_collections_hide_the_password() {
    let other = Double::start(StoredCollections::from([("others", Vec::new())])).await;
    let Err(SourceError(why)) = ask(&source(&other.url()), None).await else {
        panic!("it may not be read");
    };
    assert!(
        why.contains(COLLECTION) && why.contains("not authorized"),
        "{why}"
    );
    let url =
        "mongodb://ann:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=200&directConnection=true";
    let Err(SourceError(why)) = ask(&source(url), None).await else {
        panic!("nobody is there");
    };
    assert!(!why.contains("hunter2"), "{why}");
}

#[tokio::test]
async fn a_server_that_never_replied_was_awaited_forever() {
    // More than one batch, so that both commands are sent.
    let rules = (0..250).map(|nth| rule("many", &format!("r{nth:03}"), 5_i32));
    let double = double(rules.collect()).await;
    for command in ["find", "getMore"] {
        double.ignore_command(command);
        let source = patient(&double.url(), Duration::from_millis(500));
        let Err(SourceError(why)) = ask(&source, None).await else {
            panic!("nothing is said to `{command}`");
        };
        assert!(
            why.contains(COLLECTION) && why.contains("no response within 500ms"),
            "{command}: {why}"
        );
        let asked = double.asked();
        assert!(
            asked.iter().any(|it| it.contains_key(command)),
            "{command} was heard"
        );
    }
}
