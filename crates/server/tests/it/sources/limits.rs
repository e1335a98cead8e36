//! Limits of the Traefik plugin, as a keeper tells them.

use super::double::Double;
use super::kit::{Program, REFUSED};
use crate::kit::post;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// How long a start may take before it counts as none.
const PATIENCE: Duration = Duration::from_mins(1);

const FALLBACK: &str = r#"{"limits": [{"rules": [{"urlpathpattern": "/**"}], "limit": 3}]}"#;

fn config(address: impl std::fmt::Display) -> String {
    format!("sources: [{{ keeper: {{ url: 'http://{address}', key: limits, refresh: 100ms }} }}]")
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
async fn limits_are_lifted_by_a_list_of_none_and_come_back_with_the_next() {
    let limited = r#"{"limits": [{"rules": [{"urlpathpattern": "/pay"}], "limit": 5}]}"#;
    let keeper = Double::away().await;
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
async fn what_is_right_of_a_document_was_served_before_the_rest_of_it_was_read() {
    let document = |first: u64, second: i64| {
        let rule = |path: &str| json!([{ "urlpathpattern": path }]);
        json!({ "limits": [
            { "rules": rule("/first"), "limit": first },
            { "rules": rule("/second"), "limit": second },
        ]})
        .to_string()
    };
    let keeper = Double::away().await;
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
async fn what_is_odd_about_a_document_is_told_whenever_it_comes() {
    let odd = r#"{"limits": [
        {"rules": [{"urlpathpattern": "/pay", "headerkey": "tier"}], "limit": 5},
        {"rules": [{"urlpathpattern": "/pay"}, {"urlpathpattern": "/other"},], "limit": 6}
    ]}"#;
    let notes = [
        "`headerkey` without `headerval` says nothing, and is left out",
        "a comma stands before a closing bracket, which is not JSON: it is passed over",
        "this rule is the same as the one on line 2, which comes first: it is left out",
    ];
    let keeper = Double::away().await;
    say(&keeper, 1, FALLBACK);
    let mut program = Program::start(&config(keeper.address)).await;
    say(&keeper, 2, odd);
    program.serves("keeper", "2/2").await;
    assert_eq!(ask(&program, "/pay").await["band"], "5/s");
    assert_eq!(ask(&program, "/other").await["band"], "6/s");
    // At the start as well.
    let other = Program::start(&config(keeper.address)).await;
    for logged in [&program.process.logged, &other.process.logged] {
        for note in notes {
            let told = logged.iter().filter(|line| line.contains(note)).count();
            assert_eq!(told, 1, "{note}: {logged:#?}");
        }
    }
}

#[tokio::test]
async fn a_keeper_that_never_says_a_word_is_not_waited_for_where_there_is_a_fallback() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let fallback = format!("refresh: 100ms, timeout: 10min, fallback: '{FALLBACK}'");
    let text = config(address).replace("refresh: 100ms", &fallback);
    let (started, connected) = tokio::join!(
        timeout(PATIENCE, Program::start(&text)),
        timeout(PATIENCE, silent.accept())
    );
    let program = started.expect("it starts without a word of the keeper");
    // Whoever asked is connected still, and not turned away.
    let _connected = connected.unwrap().unwrap();
    assert_eq!(ask(&program, "/pay").await["band"], "3/s");
    assert!(program.is_stale("keeper").await);
}
