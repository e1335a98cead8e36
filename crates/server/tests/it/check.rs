//! `POST /v1/check`: decisions.

use crate::kit::client::question;
use crate::kit::{Client, Server, TWO_A_MINUTE, post};
use tidegate_config::Config;

const ANN: &str = r#"{"ip": "192.0.2.1"}"#;

#[tokio::test]
async fn allowed_then_refused_with_the_same_status() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let first = client.post(ANN).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(
        first.body,
        r#"{"allowed":true,"limit":"per-client","band":"1/min burst 2","remaining":1,"retry_after_ms":0,"reset_ms":60000}"#
    );
    assert!(client.post(ANN).await.is_allowed());
    let refused = client.post(ANN).await;
    assert_eq!(refused.status, 200);
    let refused = refused.json();
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["remaining"], 0);
    assert!((1..=60_000).contains(&refused["retry_after_ms"].as_u64().unwrap()));
}

#[tokio::test]
async fn addresses_have_separate_buckets() {
    let server = Server::start(TWO_A_MINUTE).await;
    for _ in 0..2 {
        assert!(post(server.http, ANN).await.is_allowed());
    }
    assert!(!post(server.http, ANN).await.is_allowed());
    assert!(
        post(server.http, r#"{"ip": "192.0.2.2"}"#)
            .await
            .is_allowed()
    );
}

#[tokio::test]
async fn a_list_is_decided_in_order_and_separately() {
    let server = Server::start(TWO_A_MINUTE).await;
    let reply = post(
        server.http,
        &format!("[{ANN},{ANN},{ANN},{{\"ip\":\"::1\"}}]"),
    )
    .await;
    let decisions = reply.json();
    let allowed: Vec<bool> = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|decision| decision["allowed"].as_bool().unwrap())
        .collect();
    assert_eq!(allowed, [true, true, false, true]);
}

/// The first may queue at `slow`; the second matches no limit with a queue. Both match `all`.
#[tokio::test]
async fn a_later_item_of_a_list_overtook_a_waiting_one() {
    let server = Server::start(
        "policies:
  - name: api
    limits:
      - { name: slow, match: [{ path: /a }], rate: 10/s, on_refusal: wait, max_wait: 2s }
      - { name: all, rate: 1/h }
",
    )
    .await;
    let reply = post(server.http, r#"[{"path": "/a"}, {"path": "/b"}]"#).await;
    let decisions = reply.json();
    assert_eq!(decisions[0]["allowed"], true, "{decisions}");
    assert_eq!(decisions[1]["allowed"], false, "{decisions}");
}

#[tokio::test]
async fn an_empty_list_has_an_empty_answer() {
    let server = Server::start(TWO_A_MINUTE).await;
    assert_eq!(post(server.http, "[]").await.body, "[]");
}

#[tokio::test]
async fn a_list_with_an_invalid_item_charges_nothing() {
    let server = Server::start(TWO_A_MINUTE).await;
    for bad in [
        r#"{"policy": "nope"}"#,
        r#"{"cost": -1}"#,
        r#"{"cost": {"tokens": 1}}"#,
    ] {
        let reply = post(server.http, &format!("[{ANN},{ANN},{bad}]")).await;
        assert_eq!(reply.status, 400);
    }
    assert!(post(server.http, ANN).await.is_allowed());
    assert!(post(server.http, ANN).await.is_allowed());
}

#[tokio::test]
async fn a_read_costs_nothing() {
    let server = Server::start(TWO_A_MINUTE).await;
    for _ in 0..5 {
        let reply = post(server.http, r#"{"ip": "192.0.2.1", "cost": 0}"#).await;
        assert_eq!(
            (reply.is_allowed(), &reply.json()["remaining"]),
            (true, &2.into())
        );
    }
}

#[tokio::test]
async fn the_built_in_policy_allows_five_and_refuses_the_sixth() {
    let built_in = format!(
        "listen: {{http: '127.0.0.1:0', admin: '127.0.0.1:0'}}\n{}",
        Config::BUILT_IN
    );
    let server = Server::start(&built_in).await;
    let six = post(server.http, &format!("[{}]", [ANN; 6].join(",")))
        .await
        .json();
    for nth in 0..6 {
        assert_eq!(six[nth]["allowed"], nth < 5, "{nth}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    client.send(&question(ANN).repeat(3)).await;
    assert!(client.reply().await.is_allowed());
    assert!(client.reply().await.is_allowed());
    assert!(!client.reply().await.is_allowed());
}

/// Regression: hyper's `pipeline_flush` drops its buffer when it closes with unread requests.
#[tokio::test]
async fn a_last_response_is_flushed_with_pipelined_requests_pending() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let last = question(ANN).replacen("\r\n", "\r\nconnection: close\r\n", 1);
    client
        .send(&format!("{}{last}{}", question(ANN), question(ANN)))
        .await;
    assert!(client.reply().await.is_allowed());
    assert!(client.reply().await.is_allowed());
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_body_in_pieces_is_assembled() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    for piece in [
        head,
        "8\r\n{\"ip\": \"\r\n",
        "b\r\n192.0.2.1\"}\r\n",
        "0\r\n\r\n",
    ] {
        client.send(piece).await;
    }
    assert!(client.reply().await.is_allowed());
    let mut whole = question(ANN);
    let last = whole.split_off(whole.len() - 3);
    client.send(&whole).await;
    client.send(&last).await;
    assert!(client.reply().await.is_allowed());
}

#[tokio::test]
async fn a_client_that_waits_for_continue_gets_it() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let request = question(ANN).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(client.ask(&format!("{head}\r\n\r\n")).await.status, 100);
    assert!(client.ask(body).await.is_allowed());
}

#[tokio::test]
async fn headers_and_path_supply_missing_fields() {
    let config = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
client:
  user: { header: X-User-Id }
  attributes: { project: { segment: 2 } }
  cost: { header: X-Cost, max: 5 }
policies:
  - name: api
    evaluate: first
    limits:
      - { name: per-user, key: user, missing: skip, rate: 10/h }
      - { name: per-project, key: attr:project, missing: skip, rate: 10/h }
      - { name: per-key, key: api-key, missing: skip, rate: 10/h }
      - { name: per-address, key: ip, rate: 10/h }
";
    let server = Server::start(config).await;
    for (question, limit, remaining) in [
        (
            r#"{"headers": {"X-User-Id": "ann", "X-Cost": "3"}}"#,
            "per-user",
            7,
        ),
        (
            r#"{"user": "ann", "headers": {"X-User-Id": "bob", "X-Cost": "99"}}"#,
            "per-user",
            2,
        ),
        (r#"{"user": "bob", "cost": 1}"#, "per-user", 9),
        (
            r#"{"headers": {"X-User-Id": ["ann", "ann"]}, "path": "/p/apollo"}"#,
            "per-project",
            9,
        ),
        (r#"{"attributes": {"project": "apollo"}}"#, "per-project", 8),
        (r#"{"headers": {"X-API-Key": "k"}}"#, "per-key", 9),
        (r#"{"api_key": "k"}"#, "per-key", 8),
        (
            r#"{"ip": "127.0.0.1", "headers": {"X-Forwarded-For": "192.0.2.1"}}"#,
            "per-address",
            9,
        ),
        (r#"{"ip": "127.0.0.1"}"#, "per-address", 8),
    ] {
        // Once alone and once in a list, as a read, so that both paths are tested.
        let decision = post(server.http, question).await.json();
        assert_eq!(decision["limit"], limit, "{question}");
        assert_eq!(decision["remaining"], remaining, "{question}");
        let look = question
            .replacen('{', r#"{"cost": 0, "#, 1)
            .replace(r#", "cost": 1"#, "");
        let looked = post(server.http, &format!("[{look}]")).await.json();
        assert_eq!(looked[0]["limit"], limit, "{question}");
        assert_eq!(looked[0]["remaining"], remaining, "{question}");
    }
}
