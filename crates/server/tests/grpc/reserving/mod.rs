//! Kuadrant's `Reserve` and `Commit`: estimates, settled by the actual usage.

/// The messages compared with prost.
mod codec;
/// The messages.
mod messages;
/// Invalid calls.
mod wrong;

use self::messages::{
    CommitRequest, CommitResponse, OK, OVER_LIMIT, ReserveRequest, ReserveResponse,
};
use crate::kit::{
    RawResponse, Server, ask, codes, descriptor, framed, get, metrics, post, post_text, send,
};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::google::protobuf::Duration;
use prost::Message;
use serde_json::{Value, json};

const LLM: &str = "
policies:
  - name: llm
    reserve: { default_ttl: 60s, max_ttl: 10min }
    limits:
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, rate: 1000/h, algorithm: fixed-window, overdraft: 500 }
  - name: plain
    limits:
      - { name: each, match: { descriptor: [user] }, key: descriptor:user, rate: 1000/h, algorithm: fixed-window }
";

fn reserving(amount: u64) -> ReserveRequest {
    ReserveRequest {
        domain: "llm".to_owned(),
        descriptors: vec![descriptor(&[("user", "ann")])],
        amount,
        ttl: None,
    }
}

fn committing(id: &str, actual: u64) -> CommitRequest {
    CommitRequest {
        domain: "llm".to_owned(),
        descriptors: vec![descriptor(&[("user", "ann")])],
        reservation_id: id.to_owned(),
        actual_amount: actual,
    }
}

async fn call(server: &Server, method: &str, message: &impl Message) -> RawResponse {
    let path = format!("/kuadrant.service.ratelimit.v1.RateLimitService/{method}");
    let body = framed(&message.encode_to_vec());
    send(server.grpc, post(server.grpc, &path, body)).await
}

async fn reserve(server: &Server, request: &ReserveRequest) -> ReserveResponse {
    let raw = call(server, "Reserve", request).await;
    assert_eq!(raw.grpc_status(), Some("0"), "{raw:?}");
    ReserveResponse::decode(&raw.body[5..]).unwrap()
}

/// Returns true if the reservation was settled.
async fn commit(server: &Server, request: &CommitRequest) -> bool {
    let raw = call(server, "Commit", request).await;
    assert_eq!(raw.grpc_status(), Some("0"), "{raw:?}");
    let response = CommitResponse::decode(&raw.body[5..]).unwrap();
    response.reservation_released
}

async fn http(server: &Server, path: &str, body: &Value) -> Value {
    let (status, text) = post_text(server.http.unwrap(), path, &body.to_string()).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the equivalent check request for a policy's HTTP API.
fn question(policy: &str, cost: u64) -> Value {
    let entries = json!([{ "key": "user", "value": "ann" }]);
    json!({ "policy": policy, "cost": cost, "descriptors": [{ "entries": entries }] })
}

async fn remaining(server: &Server, policy: &str) -> u64 {
    let answer = http(server, "/v1/check", &question(policy, 0)).await;
    answer["descriptors"][0]["remaining"].as_u64().unwrap()
}

#[tokio::test]
async fn an_estimate_is_reserved_and_settled_once_by_usage() {
    let server = Server::start(LLM).await;
    let reserved = reserve(&server, &reserving(800)).await;
    assert_eq!(reserved.code, OK);
    assert!(!reserved.reservation_id.is_empty());
    assert_eq!(remaining(&server, "llm").await, 200);
    let refused = reserve(&server, &reserving(800)).await;
    let expected = ReserveResponse {
        code: OVER_LIMIT,
        reservation_id: String::new(),
    };
    assert_eq!(refused, expected);
    let id = &reserved.reservation_id;
    for actual in [150, 150, 900] {
        assert!(commit(&server, &committing(id, actual)).await);
        assert_eq!(remaining(&server, "llm").await, 850);
    }
    // Envoy's service charges the same buckets.
    let request = RateLimitRequest {
        domain: "llm".to_owned(),
        descriptors: vec![descriptor(&[("user", "ann")])],
        hits_addend: 851,
    };
    let over = ask(&mut server.client().await, request).await;
    assert_eq!(codes(&over), ["OVER_LIMIT", "OVER_LIMIT"]);
}

const UNITS: &str = "
policies:
  - name: tokens-only
    reserve: 60s
    limits:
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 1000/h, algorithm: fixed-window }
  - name: llm
    reserve: 60s
    limits:
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 1000/h, algorithm: fixed-window }
      - { name: money, match: { descriptor: [user] }, key: descriptor:user, unit: microusd, rate: 1000/h, algorithm: fixed-window }
      - { name: calls, match: { descriptor: [user] }, key: descriptor:user, rate: 10/h, algorithm: fixed-window }
";

#[tokio::test]
async fn a_number_is_reserved_and_settled_in_the_only_unit_or_in_requests() {
    let server = Server::start(UNITS).await;
    for (domain, amount, actual, left) in [("tokens-only", 800, 150, 850), ("llm", 5, 2, 8)] {
        let asked = ReserveRequest {
            domain: domain.to_owned(),
            ..reserving(amount)
        };
        let id = reserve(&server, &asked).await.reservation_id;
        let settled = CommitRequest {
            domain: domain.to_owned(),
            ..committing(&id, actual)
        };
        assert!(commit(&server, &settled).await);
        assert_eq!(remaining(&server, domain).await, left);
        // Without a reservation it is a report, of the same unit.
        let reported = CommitRequest {
            reservation_id: String::new(),
            ..settled
        };
        assert!(!commit(&server, &reported).await);
        assert_eq!(remaining(&server, domain).await, left - actual);
    }
}

#[tokio::test]
async fn a_number_that_could_be_of_several_units_is_an_invalid_argument() {
    let server = Server::start(UNITS).await;
    let mut question = question("llm", 0);
    question["cost"] = json!({ "tokens": 8, "microusd": 3 });
    let reserved = http(&server, "/v1/reserve", &question).await;
    let id = reserved["reservation"].as_str().unwrap();
    let raw = call(&server, "Commit", &committing(id, 2)).await;
    assert_eq!(raw.grpc_status(), Some("3"), "{raw:?}");
}

#[tokio::test]
async fn usage_beyond_the_estimate_is_charged_and_zero_usage_refunded() {
    let server = Server::start(LLM).await;
    let more = reserve(&server, &reserving(100)).await.reservation_id;
    let none = reserve(&server, &reserving(500)).await.reservation_id;
    assert!(commit(&server, &committing(&more, 300)).await);
    assert!(commit(&server, &committing(&none, 0)).await);
    assert_eq!(remaining(&server, "llm").await, 700);
}

#[tokio::test]
async fn a_reservation_is_valid_across_frontends() {
    let server = Server::start(LLM).await;
    let here = reserve(&server, &reserving(400)).await.reservation_id;
    let there = http(&server, "/v1/reserve", &question("llm", 300)).await;
    assert_eq!(there["remaining"], 300);
    let there = there["reservation"].as_str().unwrap();
    let body = json!({ "reservation": here, "actual": 100 });
    let settled = http(&server, "/v1/commit", &body).await;
    assert_eq!(
        settled,
        json!({ "state": "settled", "estimate": 400, "actual": 100 })
    );
    // The id is enough; no other field is needed.
    let bare = CommitRequest {
        reservation_id: there.to_owned(),
        ..CommitRequest::default()
    };
    assert!(commit(&server, &bare).await);
    assert_eq!(remaining(&server, "llm").await, 900);
    let page = metrics(&server).await;
    for line in [
        r#"tidegate_reservations_total{policy="llm",outcome="allowed"} 2"#,
        r#"tidegate_settlements_total{policy="llm",state="settled"} 2"#,
    ] {
        assert!(page.contains(line), "{page}");
    }
}

#[tokio::test]
async fn an_estimate_of_zero_tests_if_anything_is_left() {
    let server = Server::start(LLM).await;
    assert_eq!(reserve(&server, &reserving(0)).await.code, OK);
    assert_eq!(remaining(&server, "llm").await, 1_000);
    assert_eq!(reserve(&server, &reserving(1_000)).await.code, OK);
    assert_eq!(reserve(&server, &reserving(0)).await.code, OVER_LIMIT);
}

#[tokio::test]
async fn a_commit_of_an_unknown_reservation_is_a_report() {
    let server = Server::start(LLM).await;
    assert!(!commit(&server, &committing("", 300)).await);
    assert_eq!(remaining(&server, "llm").await, 700);
    assert!(!commit(&server, &committing("r1made-up", 200)).await);
    assert_eq!(remaining(&server, "llm").await, 500);
    assert!(!commit(&server, &committing("", 0)).await);
    assert_eq!(remaining(&server, "llm").await, 500);
    // Usage without a reservation is charged even beyond the limit. Only later requests are
    // refused.
    assert!(!commit(&server, &committing("", 900)).await);
    assert_eq!(reserve(&server, &reserving(1)).await.code, OVER_LIMIT);
    // Even if the policy accepts no reservations.
    let plain = CommitRequest {
        domain: "plain".to_owned(),
        ..committing("", 10)
    };
    assert!(!commit(&server, &plain).await);
    assert_eq!(remaining(&server, "plain").await, 990);
}

#[tokio::test]
async fn an_expired_reservation_keeps_its_estimate_charged() {
    let server = Server::start(LLM).await;
    let request = ReserveRequest {
        ttl: Some(Duration {
            seconds: 0,
            nanos: 1_000,
        }),
        ..reserving(400)
    };
    let id = reserve(&server, &request).await.reservation_id;
    assert!(!commit(&server, &committing(&id, 100)).await);
    assert_eq!(remaining(&server, "llm").await, 600);
    let page = metrics(&server).await;
    let line = r#"tidegate_settlements_total{policy="llm",state="expired"} 1"#;
    assert!(page.contains(line), "{page}");
}

#[tokio::test]
async fn an_unknown_domain_passes_without_a_reservation() {
    let server = Server::start(LLM).await;
    let elsewhere = ReserveRequest {
        domain: "elsewhere".to_owned(),
        ..reserving(1)
    };
    let passed = reserve(&server, &elsewhere).await;
    let expected = ReserveResponse {
        code: OK,
        reservation_id: String::new(),
    };
    assert_eq!(passed, expected);
    let told = CommitRequest {
        domain: "elsewhere".to_owned(),
        ..committing("", 1)
    };
    assert!(!commit(&server, &told).await);
    let (_, page) = get(server.admin, "/metrics").await;
    assert!(
        page.contains("tidegate_rls_unknown_domain_total 2"),
        "{page}"
    );
}
