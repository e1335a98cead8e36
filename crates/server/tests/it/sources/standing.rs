//! Reports about a source with problems.

use super::admin::{admin, administrate};
use super::double::Double;
use super::kit::{AWAY, BACK, Program, REFUSED, SERVED, policies};
use crate::kit::get;
use serde_json::{Value, json};

/// The fallback of a keeper.
const FALLBACK: &str =
    r#", fallback: '{"limits": [{"rules": [{"urlpathpattern": "/**"}], "limit": 3}]}'"#;

fn config(keeper: &Double, more: &str) -> String {
    let address = keeper.address;
    let keeper = format!("url: 'http://{address}', key: limits{more}");
    format!(
        "sources: [{{ keeper: {{ {keeper} }}, refresh: 100ms }}]\n{}",
        admin()
    )
}

fn say(keeper: &Double, version: u64, limit: i64) {
    let rules = json!([{ "urlpathpattern": "/**" }]);
    let limits = json!({ "limits": [{ "rules": rules, "limit": limit }] }).to_string();
    let document = json!({ "value": limits, "version": version, "mod_revision": version });
    keeper.say(None, &document.to_string());
}

/// Returns parts of `/status`: the overall status, the reasons, and the source.
async fn seen(program: &Program) -> (Value, Value, Value) {
    loop {
        let reply = get(program.admin, "/status").await;
        let mut status = reply.json();
        // This listener opens a moment before the others.
        if status["phase"] == "starting" {
            continue;
        }
        // Requests are decided all the time.
        assert_eq!(reply.status, 200, "{status}");
        return (
            status["status"].take(),
            status["reasons"].take(),
            status["sources"][1]["status"].take(),
        );
    }
}

/// Returns the source as the admin API shows it.
async fn status_of(program: &Program) -> Value {
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
async fn the_status_of_rejected_and_unreachable_sources_has_a_reason() {
    let keeper = Double::unreachable().await;
    say(&keeper, 1, 5);
    let mut program = Program::start(&config(&keeper, "")).await;
    assert_eq!(seen(&program).await, well());
    assert_eq!(status_of(&program).await["error"], Value::Null);

    say(&keeper, 2, -1);
    program.process.logs(REFUSED, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, degraded("REJECTED"));
    let refused = status_of(&program).await;
    assert_eq!(refused["status"], "REJECTED", "{refused}");
    let why = refused["error"].as_str().unwrap();
    assert!(why.contains("`limit`") && why.contains("-1"), "{why}");
    // The previous version is still served.
    assert_eq!(refused["version"], "1/1", "{refused}");
    say(&keeper, 3, 6);
    program.serves("keeper", "3/3").await;
    assert_eq!(seen(&program).await, well());
    assert_eq!(status_of(&program).await["error"], Value::Null);

    keeper.fail(503);
    program.process.logs(AWAY, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, degraded("STALE"));
    let away = status_of(&program).await;
    assert_eq!(away["status"], "STALE", "{away}");
    assert!(away["error"].as_str().unwrap().contains("503"), "{away}");
    say(&keeper, 3, 6);
    program.process.logs(BACK, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, well());
    assert_eq!(status_of(&program).await["error"], Value::Null);
}

#[tokio::test]
async fn a_source_served_by_its_fallback_was_reported_as_stale() {
    let keeper = Double::unreachable().await;
    let mut program = Program::start(&config(&keeper, FALLBACK)).await;
    assert_eq!(seen(&program).await, degraded("FALLBACK"));
    let away = status_of(&program).await;
    assert_eq!(away["status"], "FALLBACK", "{away}");
    assert!(!away["error"].as_str().unwrap().is_empty(), "{away}");
    say(&keeper, 1, 5);
    program.serves("keeper", "1/1").await;
    program.process.logs(BACK, ("source", "keeper")).await;
    assert_eq!(seen(&program).await, well());
}

#[tokio::test]
async fn a_fallback_was_reported_as_its_source_after_another_rejection() {
    let (keeper, other) = (Double::unreachable().await, Double::unreachable().await);
    other.say(None, &policies("web", "fast"));
    let text = format!(
        "sources:
  - keeper: {{ url: 'http://{}', key: limits{FALLBACK} }}
    refresh: 100ms
  - {{ name: other, required: false, http: {{ url: 'http://{}/' }}, refresh: 100ms }}
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
    let word = |nth: usize| &said["sources"][nth]["status"];
    assert_eq!(word(1), "FALLBACK", "{said}");
    // The other source has no fallback.
    assert_eq!(word(2), "REJECTED", "{said}");
    assert_eq!(program.loads("keeper", "applied").await, 0);
    // A fallback is not reported as the source's own version.
    say(&keeper, 1, 5);
    program.serves("keeper", "1/1").await;
    other.say(None, &policies("web", "2/s"));
    program.process.logs(SERVED, ("source", "other")).await;
    assert_eq!(seen(&program).await, well());
}

#[tokio::test]
async fn the_age_of_a_source_grows_only_while_it_is_unreachable() {
    let keeper = Double::unreachable().await;
    say(&keeper, 1, 5);
    let mut program = Program::start(&config(&keeper, "")).await;
    let age = async |program: &Program| {
        let age = program.sample("tidegate_source_age_seconds{source=\"keeper\"}");
        age.await.unwrap()
    };
    keeper.hang_up();
    program.process.logs(AWAY, ("source", "keeper")).await;
    let at_first = age(&program).await;
    // The source is loaded again after half a second at the earliest, and then after twice as long.
    keeper.asked(2).await;
    let later = age(&program).await;
    assert!(later > at_first, "{at_first} s, then {later} s");
    say(&keeper, 1, 5);
    program.process.logs(BACK, ("source", "keeper")).await;
    assert!(age(&program).await < later, "it has answered since");
}
