//! Limits of the Traefik plugin from a keeper.

use super::double::Double;
use super::kit::{Program, REFUSED};
use crate::kit::post;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// The time after which a startup counts as failed.
const PATIENCE: Duration = Duration::from_mins(1);

const FALLBACK: &str = r#"{"limits": [{"rules": [{"urlpathpattern": "/**"}], "limit": 3}]}"#;

fn config(address: impl std::fmt::Display) -> String {
    format!("sources: [{{ keeper: {{ url: 'http://{address}', key: limits }}, refresh: 100ms }}]")
}

fn say(keeper: &Double, version: u64, text: &str) {
    let document = json!({ "value": text, "version": version, "mod_revision": version });
    keeper.say(None, &document.to_string());
}

async fn ask(program: &Program, path: &str) -> Value {
    let question = json!({ "policy": "traefik", "path": path }).to_string();
    let reply = post(program.http, &question).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[tokio::test]
async fn an_empty_list_lifts_limits_until_the_next_document() {
    let limited = r#"{"limits": [{"rules": [{"urlpathpattern": "/pay"}], "limit": 5}]}"#;
    let keeper = Double::unreachable().await;
    say(&keeper, 1, limited);
    let mut program = Program::start(&config(keeper.address)).await;
    assert_eq!(ask(&program, "/pay").await["band"], "5/s");
    say(&keeper, 2, r#"{"limits": []}"#);
    program.serves("keeper", "2/2").await;
    for _ in 0..10 {
        let free = ask(&program, "/pay").await;
        assert_eq!(
            (&free["allowed"], &free["limit"]),
            (&true.into(), &Value::Null),
            "{free}"
        );
    }
    say(&keeper, 3, limited);
    program.serves("keeper", "3/3").await;
    assert_eq!(ask(&program, "/pay").await["band"], "5/s");
}

#[tokio::test]
async fn a_document_was_partly_served_before_it_was_read_completely() {
    let document = |first: u64, second: i64| {
        let rule = |path: &str| json!([{ "urlpathpattern": path }]);
        json!({ "limits": [
            { "rules": rule("/first"), "limit": first },
            { "rules": rule("/second"), "limit": second },
        ]})
        .to_string()
    };
    let keeper = Double::unreachable().await;
    say(&keeper, 1, &document(5, 6));
    let mut program = Program::start(&config(keeper.address)).await;
    say(&keeper, 2, &document(50, -1));
    program.process.logs(REFUSED, ("source", "keeper")).await;
    assert_eq!(ask(&program, "/first").await["band"], "5/s");
    assert_eq!(ask(&program, "/second").await["band"], "6/s");
    say(&keeper, 3, &document(50, 60));
    program.serves("keeper", "3/3").await;
    assert_eq!(ask(&program, "/first").await["band"], "50/s");
    assert_eq!(ask(&program, "/second").await["band"], "60/s");
}

#[tokio::test]
async fn document_warnings_are_logged_for_every_version() {
    let odd = r#"{"limits": [
        {"rules": [{"urlpathpattern": "/pay", "headerkey": "tier"}], "limit": 5},
        {"rules": [{"urlpathpattern": "/pay"}, {"urlpathpattern": "/other"},], "limit": 6}
    ]}"#;
    let notes = [
        "`headerkey` is skipped: it needs `headerval`",
        "trailing comma before a closing bracket is ignored; it is not valid JSON",
        "skipped: this rule repeats the one on line 2",
    ];
    let keeper = Double::unreachable().await;
    say(&keeper, 1, FALLBACK);
    let mut program = Program::start(&config(keeper.address)).await;
    say(&keeper, 2, odd);
    program.serves("keeper", "2/2").await;
    assert_eq!(ask(&program, "/pay").await["band"], "5/s");
    assert_eq!(ask(&program, "/other").await["band"], "6/s");
    // Also at startup.
    let other = Program::start(&config(keeper.address)).await;
    for logged in [&program.process.logged, &other.process.logged] {
        for note in notes {
            let told = logged.iter().filter(|line| line.contains(note)).count();
            assert_eq!(told, 1, "{note}: {logged:#?}");
        }
    }
}

#[tokio::test]
async fn a_silent_keeper_with_a_fallback_does_not_delay_startup() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let text = config(address).replace("refresh: 100ms", "refresh: 100ms, timeout: 10min");
    let text = text.replace(
        "key: limits",
        &format!("key: limits, fallback: '{FALLBACK}'"),
    );
    let (started, connected) = tokio::join!(
        timeout(PATIENCE, Program::start(&text)),
        timeout(PATIENCE, silent.accept())
    );
    let program = started.expect("it starts without a response from the keeper");
    // An existing client stays connected.
    let _connected = connected.unwrap().unwrap();
    assert_eq!(ask(&program, "/pay").await["band"], "3/s");
    assert!(program.is_stale("keeper").await);
}
