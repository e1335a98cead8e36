//! What a proxy adds to answers of its own: `respond.rls`.

use crate::kit::{EDGE, Server, about, ask, codes};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;

const ANN: &[(&str, &str)] = &[("user", "ann")];

fn header<'a>(response: &'a RateLimitResponse, name: &str) -> Option<&'a str> {
    let mut headers = response.response_headers_to_add.iter();
    headers
        .find(|it| it.key == name)
        .map(|it| it.value.as_str())
}

/// The answers to three calls, of which the last is refused.
async fn three(respond: &str) -> [RateLimitResponse; 3] {
    let server = Server::start(&format!("respond: {respond}\n{EDGE}")).await;
    let mut client = server.client().await;
    let mut next = async || ask(&mut client, about(&[ANN])).await;
    [next().await, next().await, next().await]
}

#[tokio::test]
async fn refusals_carry_the_answer_that_other_doors_give() {
    let [first, _, refused] = three("{ headers: [x-ratelimit, draft-11] }").await;
    assert!(first.response_headers_to_add.is_empty());
    assert_eq!(codes(&refused)[0], "OVER_LIMIT");
    // These Envoy writes itself, if it is told to.
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
    assert_eq!(wait, reset.seconds, "there is one answer to when");
    let body: serde_json::Value = serde_json::from_slice(&refused.raw_body).unwrap();
    assert_eq!(
        (&body["status"], &body["violated-policies"][0]),
        (&429.into(), &"per-user".into())
    );
}

#[tokio::test]
async fn all_answers_carry_headers_where_that_is_wanted() {
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
async fn no_answer_carries_anything_where_that_is_wanted() {
    let [first, _, refused] = three("{ rls: none }").await;
    assert_eq!(codes(&refused)[0], "OVER_LIMIT");
    for response in [first, refused] {
        assert!(response.response_headers_to_add.is_empty() && response.raw_body.is_empty());
    }
}

#[tokio::test]
async fn names_that_are_hidden_are_hidden_here_as_well() {
    let [first, ..] = three("{ names: hidden }").await;
    let limit = first.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!(limit.name, "1");
}
