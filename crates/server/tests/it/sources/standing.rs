//! What is told of a source that is not as it should be.

use super::admin::{admin, administrate};
use super::double::Double;
use super::kit::{AWAY, BACK, Program, REFUSED, SERVED, policies};
use crate::kit::get;
use serde_json::{Value, json};

/// What stands in for a keeper.
const FALLBACK: &str =
    r#", fallback: '{"limits": [{"rules": [{"urlpathpattern": "/**"}], "limit": 3}]}'"#;

fn config(keeper: &Double, more: &str) -> String {
    let address = keeper.address;
    let keeper = format!("url: 'http://{address}', key: limits, refresh: 100ms{more}");
    format!("sources: [{{ keeper: {{ {keeper} }} }}]\n{}", admin())
}

fn say(keeper: &Double, version: u64, limit: i64) {
    let rules = json!([{ "urlpathpattern": "/**" }]);
    let limits = json!({ "limits": [{ "rules": rules, "limit": limit }] }).to_string();
    let document = json!({ "value": limits, "version": version, "mod_revision": version });
    keeper.say(None, &document.to_string());
}

/// What `/status` says: of all of it, why, and of the source.
async fn seen(program: &Program) -> (Value, Value, Value) {
    loop {
        let reply = get(program.admin, "/status").await;
        let mut status = reply.json();
        // The door is open a moment before the others are.
        if status["phase"] == "starting" {
            continue;
        }
        // Requests are answered all the while.
        assert_eq!(reply.status, 200, "{status}");
        return (
            status["status"].take(),
            status["reasons"].take(),
            status["sources"][1]["status"].take(),
        );
    }
}

/// What the admin API says of the source.
async fn told(program: &Program) -> Value {
    let (status, mut said) = administrate(program, "GET", "/status", &Value::Null).await;
    assert_eq!(status, 200, "{said}");
    said["sources"][1].take()
}

fn well() -> (Value, Value, Value) {
    (json!("UP"), json!([]), json!("UP"))
}

fn degraded(word: &str) -> (Value, Value, Value) {
    (json!("DEGRADED"), json!(["source keeper"]), json!(word))
}

#[tokio::test]
async fn of_a_source_that_is_refused_or_away_it_is_told_what_it_is_and_why() {
    let keeper = Double::away().await;
    say(&keeper, 1, 5);
    let mut program = Program::start(&config(&keeper, "")).await;
    assert_eq!(seen(&program).await, well());
    assert_eq!(told(&program).await["trouble"], Value::Null);

    say(&keeper, 2, -1);
    program.process.logs(REFUSED, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, degraded("REFUSED"));
    let refused = told(&program).await;
    let flags = ["refused", "stale", "fallback"].map(|flag| refused[flag] == true);
    assert_eq!(flags, [true, false, false], "{refused}");
    let why = refused["trouble"].as_str().unwrap();
    assert!(why.contains("`limit`") && why.contains("-1"), "{why}");
    // What is served is what it said before.
    assert_eq!(refused["version"], "1/1", "{refused}");
    say(&keeper, 3, 6);
    program.serves("keeper", "3/3").await;
    assert_eq!(seen(&program).await, well());
    assert_eq!(told(&program).await["trouble"], Value::Null);

    keeper.fail(503);
    program.process.logs(AWAY, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, degraded("STALE"));
    let away = told(&program).await;
    let flags = ["refused", "stale", "fallback"].map(|flag| away[flag] == true);
    assert_eq!(flags, [false, true, false], "{away}");
    assert!(away["trouble"].as_str().unwrap().contains("503"), "{away}");
    say(&keeper, 3, 6);
    program.process.logs(BACK, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, well());
    assert_eq!(told(&program).await["trouble"], Value::Null);
}

#[tokio::test]
async fn a_source_that_its_fallback_stands_in_for_was_told_as_one_that_is_only_old() {
    let keeper = Double::away().await;
    let mut program = Program::start(&config(&keeper, FALLBACK)).await;
    assert_eq!(seen(&program).await, degraded("FALLBACK"));
    let away = told(&program).await;
    let flags = ["refused", "stale", "fallback"].map(|flag| away[flag] == true);
    assert_eq!(flags, [false, true, true], "{away}");
    assert!(!away["trouble"].as_str().unwrap().is_empty(), "{away}");
    say(&keeper, 1, 5);
    program.serves("keeper", "1/1").await;
    program.process.logs(BACK, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, well());
}

#[tokio::test]
async fn a_fallback_was_told_as_its_sources_own_word_where_another_was_refused_at_first() {
    let (keeper, other) = (Double::away().await, Double::away().await);
    other.say(None, &policies("web", "fast"));
    let text = format!(
        "sources:
  - keeper: {{ url: 'http://{}', key: limits, refresh: 100ms{FALLBACK} }}
  - {{ name: other, required: false, http: {{ url: 'http://{}/', refresh: 100ms }} }}
{}",
        keeper.address,
        other.address,
        admin()
    );
    let mut program = Program::start(&text).await;
    let (_, reasons, word) = seen(&program).await;
    assert_eq!(reasons, json!(["source keeper", "source other"]));
    assert_eq!(word, "FALLBACK");
    let (_, said) = administrate(&program, "GET", "/status", &Value::Null).await;
    let flags = |nth: usize| {
        let source = &said["sources"][nth];
        ["refused", "stale", "fallback"].map(|flag| source[flag] == true)
    };
    assert_eq!(flags(1), [false, true, true], "{said}");
    // Nothing stands in for the other.
    assert_eq!(flags(2), [true, false, false], "{said}");
    assert_eq!(program.loads("keeper", "applied").await, 0);
    // It is not what anybody said, wherever its own word is looked for.
    say(&keeper, 1, 5);
    program.serves("keeper", "1/1").await;
    other.say(None, &policies("web", "2/s"));
    program.process.logs(SERVED, ("source", "other")).await;
    assert_eq!(seen(&program).await, well());
}

#[tokio::test]
async fn the_age_of_a_source_grows_while_it_is_away_and_only_then() {
    let keeper = Double::away().await;
    say(&keeper, 1, 5);
    let mut program = Program::start(&config(&keeper, "")).await;
    let age = async |program: &Program| {
        let age = program.sample("tidegate_source_age_seconds{source=\"keeper\"}");
        age.await.unwrap()
    };
    keeper.hang_up();
    program.process.logs(AWAY, ("source", "keeper")).await;
    let at_first = age(&program).await;
    // It is asked again after half a second at the soonest, and then after twice as long.
    keeper.asked(2).await;
    let later = age(&program).await;
    assert!(later > at_first, "{at_first} s, then {later} s");
    say(&keeper, 1, 5);
    program.process.logs(BACK, ("source", "keeper")).await;
    assert!(age(&program).await < later, "it has answered since");
}
