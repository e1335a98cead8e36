//! Trusted proxies, and the metrics of untrusted ones.

use super::metrics;
use crate::kit::{CuttableServer, Server, TWO_A_MINUTE, ask, get, post};

#[tokio::test]
async fn only_trusted_proxies_are_accepted_and_others_counted() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
client: { trusted_proxies: [127.0.0.1] }
policies:
  - name: api
    limits: [{ name: per-client, key: ip, rate: 1/min burst 1 }]
",
    )
    .await;
    for _ in 0..2 {
        let reply = ask("/v1/auth").at_from(server.http, "127.0.0.2").await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (
                403,
                r#"{"type":"about:blank","title":"Forbidden","status":403,"detail":"only trusted proxies may call this endpoint"}"#
            )
        );
        assert_eq!(reply.header("x-ratelimit-limit"), None);
        // With this header a proxy can tell it from a refusal.
        assert_eq!(reply.header("x-denied-reason"), Some("untrusted-proxy"));
    }
    // Untrusted clients do not learn which policies exist.
    let unknown = ask("/v1/auth/nope").at_from(server.http, "127.0.0.2").await;
    assert_eq!(unknown.status, 403);
    let samples = metrics(&server).await;
    assert_eq!(
        samples.get("tidegate_auth_untrusted_requests_total"),
        Some(&3.0)
    );
    // The client that they named was not charged.
    assert_eq!(ask("/v1/auth").at(server.http).await.status, 200);
}

#[tokio::test]
async fn decisions_are_counted_as_decisions_and_only_the_rest_as_bad() {
    let server = Server::start(TWO_A_MINUTE).await;
    for _ in 0..4 {
        ask("/v1/auth?deny=403").at(server.http).await;
    }
    ask("/v1/auth/nope").at(server.http).await;
    ask("/v1/auth")
        .header("x-forwarded-uri", "/")
        .at(server.http)
        .await;
    let samples = metrics(&server).await;
    let refused = "tidegate_decisions_total{policy=\"api\",limit=\"per-client\",outcome=\"refused\",decided_by=\"store\",reason=\"limited\"}";
    assert_eq!(samples.get(refused), Some(&2.0));
    let hits = |result: &str| {
        let labels =
            format!("policy=\"api\",limit=\"per-client\",mode=\"enforce\",outcome=\"{result}\"");
        samples
            .get(&format!("tidegate_limit_hits_total{{{labels}}}"))
            .copied()
    };
    assert_eq!([hits("allowed"), hits("refused")], [Some(2.0); 2]);
    let bad = |status: u16| {
        let name =
            format!("tidegate_error_responses_total{{listener=\"http\",status=\"{status}\"}}");
        samples.get(&name).copied()
    };
    assert_eq!([bad(400), bad(404)], [Some(1.0), Some(1.0)]);
    assert_eq!(
        [bad(403), bad(429)],
        [None, None],
        "refusals are not errors"
    );
    let timed = samples.get("tidegate_request_duration_seconds_count");
    assert_eq!(timed, Some(&6.0));
}

#[tokio::test]
async fn the_listener_token_is_not_required_for_forward_auth() {
    let server = Server::start(
        "
listen:
  http: { address: '127.0.0.1:0', token: hunter2 }
  admin: '127.0.0.1:0'
policies:
  - { name: api, limits: [{ name: per-client, key: ip, rate: 10/s }] }
",
    )
    .await;
    for asked in [
        ask("/v1/auth"),
        ask("/v1/auth/api").header("authorization", "Bearer of-the-client"),
    ] {
        assert_eq!(asked.at(server.http).await.status, 200);
    }
    assert_eq!(post(server.http, "{}").await.status, 401);
    assert_eq!(get(server.http, "/v1/authority").await.status, 401);
}

/// `{"azp":"acme"}`, signed with the secret below; and the same, expired in 2023.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJhenAiOiJhY21lIn0.sMvSUDoNM2covltHIO0pJTkTq87xGhKrf-wH_FICcj8";
const EXPIRED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJhenAiOiJhY21lIiwiZXhwIjoxNzAwMDAwMDAwfQ.qw0CSGZr0FJ5gG0dxYgWv7dVn-P4mCCviLLFa26IXhI";

#[tokio::test]
async fn a_rejected_token_is_counted_with_the_reason() {
    let it = CuttableServer::start(
        "
client:
  consumer: { claim: azp }
  jwt: { secret: 0123456789abcdef0123456789abcdef }
policies:
  - name: api
    limits: [{ name: x, key: consumer, missing: refuse, rate: 10/h }]
",
    )
    .await;
    let forged = TOKEN.replace(".sMv", ".sMx");
    for (token, status) in [
        (TOKEN, 200),
        (EXPIRED, 429),
        (&forged, 429),
        (&forged, 429),
        ("nonsense", 429),
    ] {
        let asked = ask("/v1/auth").header("authorization", &format!("Bearer {token}"));
        assert_eq!(asked.at(it.server.http).await.status, status, "{token}");
    }
    let samples = metrics(&it.server).await;
    for (reason, count) in [("expired", 1.0), ("signature", 2.0), ("malformed", 1.0)] {
        let name = format!("tidegate_tokens_rejected_total{{reason=\"{reason}\"}}");
        assert_eq!(samples.get(&name), Some(&count), "{name}");
    }
}
