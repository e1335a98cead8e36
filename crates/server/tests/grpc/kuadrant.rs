//! Kuadrant's service: the same messages, for a check before and a report afterwards.

use crate::kit::{EDGE, Server, about, codes, framed, post, send};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use prost::Message;

async fn call(server: &Server, method: &str, hits: u32) -> RateLimitResponse {
    let request = RateLimitRequest {
        hits_addend: hits,
        ..about(&[&[("user", "ann")]])
    };
    let path = format!("/kuadrant.service.ratelimit.v1.RateLimitService/{method}");
    let body = framed(&request.encode_to_vec());
    let raw = send(server.grpc, post(server.grpc, &path, body)).await;
    assert_eq!(raw.grpc_status(), Some("0"), "{raw:?}");
    RateLimitResponse::decode(&raw.body[5..]).unwrap()
}

#[tokio::test]
async fn a_kuadrant_check_takes_nothing_and_a_report_is_never_refused() {
    let server = Server::start(EDGE).await;
    for _ in 0..5 {
        let checked = call(&server, "CheckRateLimit", 1).await;
        assert_eq!(codes(&checked), ["OK", "OK"]);
        assert_eq!(checked.statuses[0].limit_remaining, 2);
    }
    assert_eq!(
        codes(&call(&server, "CheckRateLimit", 3).await)[0],
        "OVER_LIMIT"
    );
    assert_eq!(codes(&call(&server, "Report", 2).await), ["OK", "OK"]);
    assert_eq!(
        codes(&call(&server, "CheckRateLimit", 1).await),
        ["OVER_LIMIT", "OVER_LIMIT"]
    );
    assert_eq!(codes(&call(&server, "Report", 2).await), ["OK", "OK"]);
}
