//! Headers for the proxy to add: `respond.rls`.

use crate::kit::{EDGE, Server, about, ask, codes};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;

const ANN: &[(&str, &str)] = &[("user", "ann")];

fn header<'a>(response: &'a RateLimitResponse, name: &str) -> Option<&'a str> {
    let mut headers = response.response_headers_to_add.iter();
    headers
        .find(|it| it.key == name)
        .map(|it| it.value.as_str())
}

/// Returns the responses to three calls, the last of which is refused.
async fn three(respond: &str) -> [RateLimitResponse; 3] {
    let server = Server::start(&format!("respond: {respond}\n{EDGE}")).await;
    let mut client = server.client().await;
    let mut next = async || ask(&mut client, about(&[ANN])).await;
    [next().await, next().await, next().await]
}

#[tokio::test]
async fn refusals_carry_the_response_of_other_frontends() {
    let [first, _, refused] = three("{ headers: [x-ratelimit, draft-11] }").await;
    assert!(first.response_headers_to_add.is_empty());
    assert_eq!(codes(&refused)[0], "OVER_LIMIT");
    // Envoy can write these itself.
    assert_eq!(header(&refused, "x-ratelimit-limit"), None);
    assert_eq!(
        header(&refused, "ratelimit-policy"),
        Some("\"per-user\";q=2;w=3600")
    );
    assert_eq!(
        header(&refused, "content-type"),
        Some("application/problem+json")
    );
    let wait: i64 = header(&refused, "retry-after").unwrap().parse().unwrap();
    let reset = refused.statuses[0].duration_until_reset.as_ref().unwrap();
    assert_eq!(wait, reset.seconds, "a single header has the wait");
    let body: serde_json::Value = serde_json::from_slice(&refused.raw_body).unwrap();
    assert_eq!(
        (&body["status"], &body["violated-policies"][0]),
        (&429.into(), &"per-user".into())
    );
}

#[tokio::test]
async fn all_responses_carry_headers_if_enabled() {
    let [first, _, refused] = three("{ headers: [x-ratelimit, draft-03], rls: always }").await;
    assert_eq!(header(&first, "ratelimit-remaining"), Some("1"));
    assert_eq!(header(&first, "retry-after"), None);
    assert!(first.raw_body.is_empty());
    assert_eq!(header(&first, "x-ratelimit-remaining"), Some("1"));
    assert_eq!(header(&refused, "ratelimit-remaining"), Some("0"));
    assert_eq!(header(&refused, "x-ratelimit-limit"), Some("2"));
    assert!(header(&refused, "retry-after").is_some());
}

#[tokio::test]
async fn no_response_carries_headers_if_disabled() {
    let [first, _, refused] = three("{ rls: none }").await;
    assert_eq!(codes(&refused)[0], "OVER_LIMIT");
    for response in [first, refused] {
        assert!(response.response_headers_to_add.is_empty() && response.raw_body.is_empty());
    }
}

#[tokio::test]
async fn hidden_names_are_hidden_over_grpc() {
    let [first, ..] = three("{ names: hidden }").await;
    let limit = first.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!(limit.name, "1");
}
