//! Responses: headers, bodies, profiles, and contents that must not appear.

use super::{TWO, metrics};
use crate::kit::{CuttableServer, ask};

#[tokio::test]
async fn an_allowed_request_is_200_with_only_limit_headers() {
    let it = CuttableServer::start(TWO).await;
    let reply = ask("/v1/auth").at(it.server.http).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    for (name, value) in [
        ("x-ratelimit-limit", "2"),
        ("x-ratelimit-remaining", "1"),
        ("x-ratelimit-reset", "1700000060"),
        ("ratelimit-policy", "\"per-client\";q=2;w=120"),
        ("ratelimit", "\"per-client\";r=1;t=60"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    // Some proxies copy all headers, so there must be no others.
    let plain = ["content-length", "date"];
    assert_eq!(reply.names().len(), 5 + plain.len(), "{:?}", reply.names());
}

#[tokio::test]
async fn a_refused_request_is_429_with_the_client_response() {
    let it = CuttableServer::start(TWO).await;
    let asked = ask("/v1/auth").header("x-correlation-id", "abc-1");
    for _ in 0..2 {
        assert_eq!(asked.at(it.server.http).await.status, 200);
    }
    let reply = asked.at(it.server.http).await;
    assert_eq!(reply.status, 429);
    for (name, value) in [
        ("content-type", "application/problem+json"),
        ("cache-control", "no-store"),
        ("retry-after", "60"),
        ("x-ratelimit-remaining", "0"),
        ("ratelimit", "\"per-client\";r=0;t=60"),
        ("x-correlation-id", "abc-1"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert_eq!(
        reply.body,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"Rate limit exceeded. Try again in 60 seconds.","correlationId":"abc-1","violated-policies":["per-client"]}"#
    );
    // Another client is not affected.
    let other = ask("/v1/auth").from("192.0.2.2");
    assert_eq!(other.at(it.server.http).await.status, 200);
}

#[tokio::test]
async fn each_policy_answers_by_its_profile() {
    let profile = |name: &str| {
        format!(
            "  - {{ name: {name}, respond: {{ profile: {name} }}, limits: [{{ name: x, key: ip, rate: 1/min }}] }}\n"
        )
    };
    let names = ["gateway", "collector", "traefik-plugin", "adr", "fluxgate"];
    let policies: String = names.into_iter().map(profile).collect();
    let it = CuttableServer::start(&format!("policies:\n{policies}")).await;
    for (name, status, body) in [
        (
            "gateway",
            429,
            r#"{"type":"https://api.gateway/errors/rate-limit-exceeded","title":"Too Many Requests","status":429,"detail":"Rate limit exceeded. Try again in 60 seconds.","correlationId":"abc-1"}"#,
        ),
        (
            "collector",
            402,
            r#"{"code":402,"error":true,"message":"Rate limit exceeded"}"#,
        ),
        (
            "traefik-plugin",
            429,
            r#"{"status_code":429,"message":"Too Many Requests"}"#,
        ),
        (
            "adr",
            429,
            r#"{"error":"Too Many Requests","message":"you have reached the maximum number of requests or actions allowed within a certain time frame","timestamp":"2023-11-14T22:13:20Z"}"#,
        ),
        (
            "fluxgate",
            429,
            r#"{"error":"Rate limit exceeded","retryAfter":60}"#,
        ),
    ] {
        let asked = ask(&format!("/v1/auth/{name}")).header("x-correlation-id", "abc-1");
        let allowed = asked.at(it.server.http).await;
        let has_headers = !matches!(name, "collector" | "traefik-plugin");
        assert_eq!(allowed.status, 200);
        assert_eq!(
            allowed.header("x-ratelimit-remaining").is_some(),
            has_headers,
            "{name}"
        );
        let refused = asked.at(it.server.http).await;
        assert_eq!((refused.status, refused.body.as_str()), (status, body));
        assert_eq!(refused.header("content-type"), Some("application/json"));
    }
    let bad = metrics(&it.server).await;
    assert!(
        !bad.keys()
            .any(|name| name.contains("error_responses_total{")),
        "402 is a decision"
    );
}

/// Regression: a proxy that uses the status alone took some refusals for failures, and let them
/// pass.
#[tokio::test]
async fn refusals_and_store_outages_have_distinct_markers() {
    let statuses = [400, 401, 403, 404, 414, 429, 431, 500, 503, 599];
    let policy = |status: &u16| {
        format!(
            "  - {{ name: s{status}, respond: {{ status: {status} }}, limits: [{{ name: x, key: ip, rate: 1/min }}] }}\n"
        )
    };
    let policies: String = statuses.iter().map(policy).collect();
    let closed = "  - { name: closed, limits: [{ name: x, rate: 1/min, on_failure: deny }] }
  - { name: erring, limits: [{ name: x, rate: 1/min, on_failure: error }] }\n";
    let it = CuttableServer::start(&format!("policies:\n{policies}{closed}")).await;
    let seen = async |target: &str, by: &str| {
        let asked = ask(&format!("/v1/auth/{target}")).header("x-denied-reason", by);
        let reply = asked.at(it.server.http).await;
        let reason = reply.header("x-denied-reason").map(str::to_owned);
        (reply.status, reason)
    };
    let marked = Some("limit".to_owned());
    for status in statuses {
        let policy = format!("s{status}");
        assert_eq!(seen(&policy, "limit").await, (200, None));
        assert_eq!(seen(&policy, "mine").await, (status, marked.clone()));
        let by_403 = seen(&format!("{policy}?deny=403"), "mine").await;
        assert_eq!(by_403, (403, marked.clone()));
    }
    assert_eq!(seen("nobodys", "limit").await, (404, None));
    it.cut();
    let away = Some("unavailable".to_owned());
    assert_eq!(seen("closed", "limit").await, (503, away.clone()));
    assert_eq!(seen("erring", "limit").await, (503, away));
}

#[tokio::test]
async fn a_missing_correlation_id_is_generated() {
    let it =
        CuttableServer::start("policies: [{ name: api, limits: [{ name: x, rate: 1/h }] }]").await;
    ask("/v1/auth").at(it.server.http).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let reply = ask("/v1/auth").at(it.server.http).await;
        let id = reply.header("x-correlation-id").unwrap().to_owned();
        assert_eq!(reply.json()["correlationId"], id.as_str());
        assert!(id.len() == 32 && !seen.contains(&id), "{id}");
        seen.push(id);
    }
}

#[tokio::test]
async fn shadow_limits_are_not_visible() {
    let it = CuttableServer::start(
        "
policies:
  - name: watched
    limits: [{ name: tight, mode: shadow, key: ip, rate: 1/h }]
  - name: both
    limits:
      - { name: tight, mode: shadow, key: ip, rate: 1/h }
      - { name: wide, key: ip, rate: 100/h }
",
    )
    .await;
    for nth in 0..3 {
        let reply = ask("/v1/auth/watched").at(it.server.http).await;
        assert_eq!(
            (reply.status, reply.names()),
            (200, vec!["content-length", "date"])
        );
        let reply = ask("/v1/auth/both").at(it.server.http).await;
        let policy = reply.header("ratelimit-policy");
        assert_eq!(
            (reply.status, policy),
            (200, Some("\"wide\";q=100;w=3600")),
            "{nth}"
        );
    }
}

#[tokio::test]
async fn without_a_store_each_failure_policy_applies_and_none_is_429() {
    let it = CuttableServer::start(
        "
policies:
  - { name: local, limits: [{ name: x, rate: 2/h, on_failure: local }] }
  - { name: allow, limits: [{ name: x, rate: 2/h, on_failure: allow }] }
  - { name: deny, limits: [{ name: x, rate: 2/h, on_failure: deny }], respond: { status: 402 } }
  - { name: error, limits: [{ name: x, rate: 2/h, on_failure: error }] }
",
    )
    .await;
    it.cut();
    for (target, status, remaining) in [
        ("local", 200, Some("0")),
        ("local", 429, Some("0")),
        ("allow", 200, None),
        ("deny", 503, None),
        ("deny?deny=403", 503, None),
        ("error", 503, None),
        ("error?deny=403", 503, None),
    ] {
        let asked = ask(&format!("/v1/auth/{target}")).header("x-correlation-id", "abc-1");
        let reply = asked.at(it.server.http).await;
        assert_eq!(reply.status, status, "{target}");
        assert_eq!(reply.header("x-ratelimit-remaining"), remaining, "{target}");
        if status == 503 {
            assert_eq!(reply.header("retry-after"), Some("1"), "{target}");
            assert_eq!(reply.header("x-denied-status"), None, "{target}");
            let body = reply.json();
            assert_eq!(
                (&body["status"], &body["correlationId"]),
                (&503.into(), &"abc-1".into())
            );
            let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
            assert_eq!(body["type"], kind, "{target}");
        }
    }
    it.mend();
    for policy in ["local", "allow", "deny", "error"] {
        let reply = ask(&format!("/v1/auth/{policy}")).at(it.server.http).await;
        assert_eq!(
            (reply.status, reply.header("x-ratelimit-remaining")),
            (200, Some("1"))
        );
    }
}

#[tokio::test]
async fn a_refusal_never_contains_the_identity() {
    let it = CuttableServer::start(
        "
policies:
  - name: api
    limits: [{ name: x, key: [ip, api-key, 'header:x-tenant', path], rate: 1/h }]
",
    )
    .await;
    let asked = ask("/v1/auth")
        .from("198.51.100.23")
        .uri("/secret-path")
        .header("x-api-key", "k3y-secret")
        .header("x-tenant", "acme-secret");
    asked.at(it.server.http).await;
    let reply = asked.at(it.server.http).await;
    assert_eq!(reply.status, 429);
    let shown = format!("{reply:?}");
    for secret in ["198.51.100.23", "secret", "ip:", "#"] {
        let shown = shown.replace("http-problem-types#", "");
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
