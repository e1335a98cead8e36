//! Units at Envoy's and Kuadrant's services, where all costs are numbers: of the only unit that a policy
//! counts, or of requests.

use crate::kit::{Server, about, ask, codes, post_text};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::google::protobuf::UInt64Value;
use serde_json::{Value, json};

const UNITS: &str = "
policies:
  - name: llm
    limits:
      - { name: calls, match: { descriptor: [user] }, key: descriptor:user, rate: 10/h, algorithm: fixed-window }
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 1000/h, algorithm: fixed-window }
  - name: tokens-only
    limits:
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 1000/h, algorithm: fixed-window }
";

const ANN: &[(&str, &str)] = &[("user", "ann")];

async fn remaining(server: &Server, policy: &str, unit: &str) -> u64 {
    let entries = json!([{ "key": "user", "value": "ann" }]);
    let mut hits = json!({});
    if policy == "llm" {
        hits["requests"] = json!(0);
    }
    hits[unit] = json!(1);
    let question =
        json!({ "policy": policy, "descriptors": [{ "entries": entries, "hits": hits }] });
    let (_, text) = post_text(server.http.unwrap(), "/v1/check", &question.to_string()).await;
    let decision: Value = serde_json::from_str(&text).unwrap();
    // This check has taken one.
    decision["descriptors"][0]["remaining"].as_u64().unwrap() + 1
}

#[tokio::test]
async fn hits_of_envoy_are_of_the_only_unit_or_of_requests() {
    let server = Server::start(UNITS).await;
    let mut client = server.client().await;
    let call = |domain: &str, hits| RateLimitRequest {
        domain: domain.to_owned(),
        hits_addend: hits,
        ..about(&[ANN])
    };
    let several = ask(&mut client, call("llm", 4)).await;
    assert_eq!(codes(&several), ["OK", "OK"]);
    assert_eq!(remaining(&server, "llm", "requests").await, 6);
    assert_eq!(remaining(&server, "llm", "tokens").await, 1_000);
    let only = ask(&mut client, call("tokens-only", 400)).await;
    assert_eq!(only.statuses[0].limit_remaining, 600);
    // No hits: one request, and no token.
    ask(&mut client, call("tokens-only", 0)).await;
    assert_eq!(remaining(&server, "tokens-only", "tokens").await, 600);
    // The hits of a descriptor are a number too.
    let mut own = call("tokens-only", 0);
    own.descriptors[0].hits_addend = Some(UInt64Value { value: 300 });
    ask(&mut client, own).await;
    assert_eq!(remaining(&server, "tokens-only", "tokens").await, 299);
}

#[tokio::test]
async fn huge_hits_are_over_the_limit_and_charge_nothing() {
    let server = Server::start(UNITS).await;
    let mut client = server.client().await;
    for value in [1_001, u64::MAX] {
        let mut call = RateLimitRequest {
            domain: "tokens-only".to_owned(),
            ..about(&[ANN])
        };
        call.descriptors[0].hits_addend = Some(UInt64Value { value });
        assert_eq!(
            codes(&ask(&mut client, call).await),
            ["OVER_LIMIT", "OVER_LIMIT"]
        );
    }
    assert_eq!(remaining(&server, "tokens-only", "tokens").await, 1_000);
}
