//! A key of a keeper.

use super::double::Double;
use super::kit::{AWAY, BACK, Program, REFUSED, nth_rate, under_load};
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use serde_json::json;

/// Returns a keeper's response: its own document within another.
fn document(limit: u64, version: u64, revision: u64) -> String {
    let limits = json!({ "limits": [{ "rules": [{ "urlpathpattern": "/**" }], "limit": limit }] });
    json!({ "value": limits.to_string(), "version": version, "mod_revision": revision }).to_string()
}

fn config(keeper: &Double, more: &str) -> String {
    format!(
        "sources: [{{ keeper: {{ url: 'http://{}', key: rate/limits, password: 'Pas$w0rd'{more} }}, refresh: 100ms, timeout: 5s }}]",
        keeper.address
    )
}

const FALLBACK: &str =
    r#", fallback: '{"limits": [{"rules": [{"urlpathpattern": "/**"}], "limit": 3}]}'"#;

async fn band(program: &Program) -> String {
    let question = r#"{"policy": "traefik", "path": "/pay"}"#;
    let json = crate::kit::post(program.http, question).await.json();
    json["band"]
        .as_str()
        .unwrap_or_else(|| panic!("{json}"))
        .to_owned()
}

#[tokio::test]
async fn a_keeper_is_fetched_with_its_settings_and_served() {
    let keeper = Double::unreachable().await;
    keeper.say(None, &document(40, 1, 7));
    let program = Program::start(&config(&keeper, "")).await;
    assert_eq!(band(&program).await, "40/s");
    let asked = keeper.last();
    assert!(
        asked.starts_with("GET /admin/get/rate%2Flimits HTTP/1.1\r\n"),
        "{asked}"
    );
    // The user `admin`, and the password.
    assert!(
        asked.contains("authorization: Basic YWRtaW46UGFzJHcwcmQ=\r\n"),
        "{asked}"
    );
    assert_eq!(
        program
            .sample("tidegate_source_version_info{source=\"keeper\",version=\"1/7\"}")
            .await,
        Some(1.0)
    );
}

#[tokio::test]
async fn an_unchanged_version_is_not_applied_again() {
    let keeper = Double::unreachable().await;
    keeper.say(None, &document(40, 1, 7));
    let mut program = Program::start(&config(&keeper, "")).await;
    keeper.say(None, &document(41, 1, 7));
    keeper.asked(3).await;
    assert_eq!(band(&program).await, "40/s");
    assert_eq!(program.loads("keeper", "applied").await, 1);
    assert!(program.loads("keeper", "unchanged").await > 0);
    keeper.say(None, &document(41, 1, 8));
    program.serves("keeper", "1/8").await;
    assert_eq!(band(&program).await, "41/s");
}

#[tokio::test]
async fn an_unreachable_keeper_is_replaced_by_its_fallback_at_startup() {
    let keeper = Double::unreachable().await;
    let mut program = Program::start(&config(&keeper, FALLBACK)).await;
    assert_eq!(band(&program).await, "3/s");
    assert!(program.is_stale("keeper").await);
    keeper.say(None, &document(50, 1, 1));
    program.serves("keeper", "1/1").await;
    program.process.logs(BACK, ("source", "keeper")).await;
    assert_eq!(band(&program).await, "50/s");
    assert!(!program.is_stale("keeper").await);
}

#[tokio::test]
async fn without_a_fallback_startup_waits_for_the_keeper() {
    let keeper = Double::unreachable().await;
    let folder = Folder::make();
    let text = config(&keeper, "").replace("timeout: 5s", "timeout: 300ms");
    let file = folder.write("tidegate.yaml", text);
    let ended = run(tidegate(&["serve", "--config", &file])).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the config source `keeper`"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("w0rd"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_keeper_outage_keeps_the_config_and_is_reported() {
    let keeper = Double::unreachable().await;
    keeper.say(None, &document(40, 1, 1));
    let mut program = Program::start(&config(&keeper, "")).await;
    keeper.hang_up();
    program.process.logs(AWAY, ("source", "keeper")).await;
    assert_eq!(band(&program).await, "40/s");
    assert!(program.is_stale("keeper").await);
    keeper.say(None, &document(60, 2, 2));
    program.serves("keeper", "2/2").await;
    assert_eq!(band(&program).await, "60/s");
    assert!(!program.is_stale("keeper").await);
}

#[tokio::test]
async fn a_response_that_is_no_document_is_an_error_and_no_change() {
    let keeper = Double::unreachable().await;
    keeper.say(None, &document(40, 1, 1));
    let mut program = Program::start(&config(&keeper, "")).await;
    let empty = json!({ "value": "", "version": 0, "mod_revision": 9 }).to_string();
    for (nth, says) in [None, Some("not json"), Some(empty.as_str())]
        .into_iter()
        .enumerate()
    {
        match says {
            None => keeper.fail(503),
            Some(text) => keeper.say(None, text),
        }
        program.process.logs(AWAY, ("source", "keeper")).await;
        assert_eq!(band(&program).await, "40/s");
        keeper.say(None, &document(40, 1, 1));
        program.process.logs(BACK, ("source", "keeper")).await;
        assert!(program.loads("keeper", "failed").await > 0, "{nth}");
    }
    assert_eq!(program.loads("keeper", "applied").await, 1);
}

/// Returns the levels of log lines that contain this text.
fn levels(program: &Program, text: &str) -> Vec<String> {
    let told = program.process.logged.iter().filter(|it| it.contains(text));
    let level = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["level"].as_str().unwrap().to_owned()
    };
    told.map(level).collect()
}

#[tokio::test]
async fn document_warnings_were_logged_as_info() {
    let keeper = Double::unreachable().await;
    keeper.say(None, &document(40, 1, 1));
    let mut program = Program::start(&config(&keeper, "")).await;
    let limits = r#"{ "limits": [{ "rules": [
        { "urlpathpattern": "/pay", "headerkey": "tier" },
        { "urlpathpattern": "/pay" },
    ], "limit": 41 }] }"#;
    let document = json!({ "value": limits, "version": 1, "mod_revision": 2 });
    keeper.say(None, &document.to_string());
    program.serves("keeper", "1/2").await;
    assert_eq!(band(&program).await, "41/s");
    for text in [
        "warning: trailing comma before a closing bracket",
        "is skipped: it needs `headerval`",
        "skipped: this rule repeats the one on line 2",
    ] {
        assert_eq!(levels(&program, text), ["WARN"], "{text}");
    }
}

#[tokio::test]
async fn harmless_differences_are_no_warnings() {
    let keeper = Double::unreachable().await;
    let rules = json!([
        { "id": "a", "name": "all", "scope": "GLOBAL", "bands": [{ "windowSeconds": 1, "capacity": 5 }] },
        { "id": "b", "scope": "GLOBAL", "bands": [] }
    ]);
    keeper.say(None, &json!({ "value": rules.to_string() }).to_string());
    let program = Program::start(&config(&keeper, ", format: fluxgate")).await;
    assert_eq!(levels(&program, "`name` is skipped"), ["INFO"]);
    assert_eq!(levels(&program, "rule `b` is skipped"), ["WARN"]);
}

#[tokio::test]
async fn a_keeper_with_an_empty_document_lifted_every_limit() {
    let keeper = Double::unreachable().await;
    let say = |text: &str| {
        // Without a version number, a keeper's document is identified by its content.
        keeper.say(None, &json!({ "value": text }).to_string());
    };
    say(&super::kit::policies("api", "5/s"));
    let mut program = Program::start(&config(&keeper, ", format: tidegate")).await;
    say("{}");
    program.process.logs(REFUSED, ("source", "keeper")).await;
    assert_eq!(program.band("api").await, "5/s");
    say(&super::kit::policies("api", "6/s"));
    program
        .process
        .logs(super::kit::SERVED, ("source", "keeper"))
        .await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn an_invalid_document_changes_nothing_and_is_logged_once() {
    let keeper = Double::unreachable().await;
    keeper.say(None, &document(40, 1, 1));
    let mut program = Program::start(&config(&keeper, "")).await;
    let wrong = json!({ "value": r#"{"limits": [{"rules": [], "limit": -1}]}"#, "version": 2, "mod_revision": 2 });
    keeper.say(None, &wrong.to_string());
    program.process.logs(REFUSED, ("source", "keeper")).await;
    keeper.asked(3).await;
    assert_eq!(band(&program).await, "40/s");
    assert_eq!(program.loads("keeper", "rejected").await, 1);
    assert_eq!(
        program
            .sample("tidegate_source_rejected{source=\"keeper\"}")
            .await,
        Some(1.0)
    );
    keeper.say(None, &document(42, 3, 3));
    program.serves("keeper", "3/3").await;
    assert_eq!(band(&program).await, "42/s");
    assert_eq!(
        program
            .sample("tidegate_source_rejected{source=\"keeper\"}")
            .await,
        Some(0.0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_question_is_answered_while_a_keeper_changes() {
    let keeper = Double::unreachable().await;
    let limits = |nth: u64| document(1_000_000 + nth, nth + 1, nth + 1);
    keeper.say(None, &limits(0));
    let mut program = Program::start(&config(&keeper, "")).await;
    assert_eq!(program.band("traefik").await, nth_rate(0));
    under_load(&mut program, "traefik", async |program, nth, _| {
        keeper.say(None, &limits(nth));
        program.serves("keeper", &format!("{0}/{0}", nth + 1)).await;
    })
    .await;
}
