//! Log lines about single requests.

use crate::kit::process::{run, tidegate};
use crate::kit::{Client, Gate, Upstream};
use serde_json::Value;
use tokio::net::TcpListener;

fn config(upstream: &Upstream, logs: &str) -> String {
    format!(
        "{logs}routes: [{{ name: all, upstreams: ['http://{}'], policy: api }}]\n\
         policies: [{{ name: api, limits: [{{ name: per-key, key: api-key, rate: 1/h }}] }}]\n\
         client: {{ api_key: {{ header: x-api-key }} }}\n",
        upstream.address
    )
}

const ASKED: &str = "GET /secret-path HTTP/1.1\r\nhost: a\r\nx-api-key: sk-hunter2-hunter2\r\n\
                     x-correlation-id: abc-123\r\n\
                     traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n\r\n";

async fn refused_twice(gate: &Gate) {
    let mut client = Client::connect(gate.gateway.unwrap()).await;
    for status in [200, 429, 429] {
        assert_eq!(client.ask(ASKED).await.status, status);
    }
}

/// Returns the log lines once the program has ended.
async fn ended(gate: Gate) -> String {
    gate.process.signal("TERM").await;
    let ended = gate.process.ended().await;
    assert!(ended.status.success(), "{}", ended.stderr);
    ended.stderr
}

#[tokio::test]
async fn a_refusal_is_logged_with_the_correlation_id_of_its_client() {
    let upstream = Upstream::start().await;
    let gate = Gate::start(&config(&upstream, "logs: { refusals: 100% }\n")).await;
    refused_twice(&gate).await;
    let log = ended(gate).await;
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let refused: Vec<Value> = lines
        .filter(|line: &Value| line["message"] == "request refused")
        .collect();
    assert_eq!(refused.len(), 2, "{log}");
    let line = &refused[0];
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["correlation"], "abc-123");
    assert_eq!(line["trace"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(
        (&line["policy"], &line["limit"]),
        (&"api".into(), &"per-key".into())
    );
    assert_eq!(line["decided_by"], "store");
    assert!(line["retry_after_ms"].as_u64().unwrap() > 0);
    for secret in ["hunter2", "secret-path"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[tokio::test]
async fn refusals_of_checks_and_lists_of_checks_were_not_logged() {
    let policies = "policies: [{ name: api, limits: [{ name: all, key: ip, rate: 1/h }] }]\n";
    for (mode, message) in [
        ("", "request refused"),
        ("mode: shadow\n", "shadow mode: request would be refused"),
    ] {
        let gate = Gate::start(&format!("{mode}logs: {{ refusals: 100% }}\n{policies}")).await;
        let mut client = Client::connect(gate.http).await;
        client.post(r#"{"ip": "192.0.2.1"}"#).await;
        client.post(r#"{"ip": "192.0.2.1"}"#).await;
        let list = r#"[{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}, {"ip": "192.0.2.1"}]"#;
        client.post(list).await;
        let log = ended(gate).await;
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        let refused: Vec<Value> = lines
            .filter(|line: &Value| line["message"] == message)
            .collect();
        assert_eq!(refused.len(), 3, "{log}");
        let line = &refused[0];
        assert_eq!(
            (&line["limit"], &line["reason"]),
            (&"all".into(), &"limited".into())
        );
        assert!(
            line["correlation"].is_null(),
            "no correlation id was sent: {line}"
        );
    }
}

#[tokio::test]
async fn refusals_are_not_logged_by_default() {
    let upstream = Upstream::start().await;
    for logs in ["", "logs: { refusals: 0% }\n"] {
        let gate = Gate::start(&config(&upstream, logs)).await;
        refused_twice(&gate).await;
        let log = ended(gate).await;
        assert!(!log.contains("request refused"), "{log}");
    }
}

#[tokio::test]
async fn the_log_follows_its_format_and_level_settings() {
    // Every command accepts it, including those with other formats.
    let simulate = [
        "simulate",
        "--config",
        "a",
        "--trace",
        "b",
        "--log-format=xml",
    ];
    let refused = run(tidegate(&simulate)).await;
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("auto, text, json"),
        "{}",
        refused.stderr
    );

    let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]\n";
    let gate = Gate::with(policies, &["--log-format", "json"]).await;
    let log = ended(gate).await;
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");

    // The port is in use, so the program logs its config and exits.
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let flags = ["serve", "--http", &address, "--log-format", "text"];
    let log = run(tidegate(&flags)).await.stderr;
    assert!(
        log.contains(" INFO starting tidegate event=\"server_starting\" version="),
        "{log}"
    );
    assert!(!log.contains('\u{1b}'), "colours are for terminals: {log}");
}
