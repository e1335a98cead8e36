//! `POST /json` and `GET /healthcheck`, as in envoyproxy/ratelimit.

use crate::kit::{EDGE, Server, about, ask, codes, get, post_text};

const CALL: &str =
    r#"{"domain":"shop/http","descriptors":[{"entries":[{"key":"path","value":"/slow"}]}]}"#;

#[tokio::test]
async fn json_requests_decide_like_calls_with_the_same_buckets() {
    let server = Server::start(EDGE).await;
    let http = server.http.unwrap();
    let (status, body) = post_text(http, "/json", CALL).await;
    assert_eq!(status, 200);
    let reset = body.split("\"durationUntilReset\":\"").nth(1).unwrap();
    let (reset, after) = reset.split_once('"').unwrap();
    assert!(reset.ends_with('s') && after == "}]}", "{body}");
    assert_eq!(
        body.replace(reset, "N"),
        r#"{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"per-path","requestsPerUnit":1,"unit":"DAY"},"durationUntilReset":"N"}]}"#
    );
    let (status, body) = post_text(http, "/json", CALL).await;
    assert_eq!(status, 429);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["overallCode"], "OVER_LIMIT");
    assert!(body["rawBody"].is_string() && body["responseHeadersToAdd"].is_array());

    let response = ask(&mut server.client().await, about(&[&[("path", "/slow")]])).await;
    assert_eq!(codes(&response), ["OVER_LIMIT", "OVER_LIMIT"]);
}

#[tokio::test]
async fn an_invalid_request_is_400_with_the_reason() {
    let server = Server::start(EDGE).await;
    let http = server.http.unwrap();
    for (body, reason) in [
        ("", "expected an object"),
        (r#"{"domain":"shop/http","descriptor":[]}"#, "unknown field"),
        (
            r#"{"domain":"shop/http"}"#,
            "rate limit descriptor list must not be empty",
        ),
        (
            r#"{"descriptors":[{}]}"#,
            "rate limit domain must not be empty",
        ),
    ] {
        let (status, text) = post_text(http, "/json", body).await;
        assert_eq!(status, 400, "{body}");
        assert!(text.contains(reason), "{body}: {text}");
    }
    assert_eq!(get(http, "/json").await.0, 405);
}

#[tokio::test]
async fn an_unknown_domain_passes_over_json() {
    let server = Server::start(EDGE).await;
    let body = r#"{"domain":"nobody","descriptors":[{"entries":[{"key":"a"}]}]}"#;
    let (status, body) = post_text(server.http.unwrap(), "/json", body).await;
    assert_eq!(status, 200);
    assert_eq!(body, r#"{"overallCode":"OK","statuses":[{"code":"OK"}]}"#);
}

#[tokio::test]
async fn health_is_ok_while_serving() {
    let server = Server::start(EDGE).await;
    let (status, body) = get(server.http.unwrap(), "/healthcheck").await;
    assert_eq!((status, body.as_str()), (200, "OK"));
}
