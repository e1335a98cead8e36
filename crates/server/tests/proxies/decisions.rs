//! Allowed and refused requests.

use crate::kit::{FailureMode, Reply, Setup, Site};

/// Three requests of a client pass, the fourth is refused, another client's is not.
fn the_fourth_is_refused(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    for remaining in ["2", "1", "0"] {
        let reply = site.get(2, "/cart?item=1", &[]);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.body, "application: GET /cart?item=1");
        assert_eq!(reply.header("retry-after"), None);
        if setup.informs() {
            assert_eq!(reply.header("x-ratelimit-limit"), Some("3"));
            assert_eq!(reply.header("x-ratelimit-remaining"), Some(remaining));
            assert!(reply.header("x-ratelimit-reset").is_some());
            assert_eq!(
                reply.header("ratelimit-policy"),
                Some(r#""per-client";q=3;w=180"#)
            );
            let expected = format!(r#""per-client";r={remaining};t="#);
            let given = reply.header("ratelimit").unwrap();
            assert!(given.starts_with(&expected), "{given}");
        } else {
            assert_eq!(reply.header("ratelimit"), None);
        }
    }
    site.application.asked();
    for method in ["GET", "POST", "DELETE", "OPTIONS"] {
        is_refusal(&site.ask(2, &format!("{method} /cart?item=1"), &[]));
    }
    assert_eq!(site.application.asked(), [""; 0]);
    assert_eq!(site.get(3, "/", &[]).status, 200);
}

with_all!(the_fourth_is_refused);

/// The whole refusal arrives: status, headers, body.
fn is_refusal(reply: &Reply) {
    assert_eq!(reply.status, 429, "{reply:?}");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(reply.header("x-ratelimit-limit"), Some("3"));
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
    assert!(reply.header("x-ratelimit-reset").is_some());
    assert_eq!(
        reply.header("ratelimit"),
        Some(format!(r#""per-client";r=0;t={wait}"#).as_str())
    );
    assert_eq!(
        reply.header("ratelimit-policy"),
        Some(r#""per-client";q=3;w=180"#)
    );
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-denied-status"), None);
    let body = reply.json();
    assert_eq!(body["status"], 429);
    assert_eq!(body["title"], "Too Many Requests");
    let expected = format!("Rate limit exceeded. Try again in {wait} seconds.");
    assert_eq!(body["detail"], expected);
    assert_eq!(
        body["correlationId"].as_str(),
        reply.header("x-correlation-id")
    );
}

/// Limits may match the path, the method and the API key.
fn limits_see_the_request(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    assert_eq!(site.ask(2, "POST /login", &[]).status, 200);
    assert_eq!(site.ask(2, "POST /login", &[]).status, 429);
    assert_eq!(site.get(2, "/login", &[]).status, 200);
}

with_all!(limits_see_the_request);

/// A client's correlation id is returned.
fn a_correlation_id_is_kept(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    site.use_up(2);
    let reply = site.get(2, "/", &["x-correlation-id: order-4711"]);
    assert_eq!(reply.header("x-correlation-id"), Some("order-4711"));
    assert_eq!(reply.json()["correlationId"], "order-4711");
}

with_all!(a_correlation_id_is_kept);

/// Cookies of the size that browsers and single sign-on send are accepted.
fn a_large_cookie_passes(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Closed) else {
        return;
    };
    let cookie = format!("cookie: session={}", "a".repeat(9_000));
    let reply = site.get(2, "/", &[&cookie]);
    assert_eq!(reply.status, 200, "{reply:?}");
    if setup.informs() {
        assert_eq!(reply.header("x-ratelimit-remaining"), Some("2"));
    }
}

with_all!(a_large_cookie_passes);

/// A refusal with any status refuses the request, and the internal marker is removed.
fn a_refusal_may_have_the_status_of_an_outage(setup: Setup) {
    for status in [404, 502] {
        let site = Site::open_with(setup, FailureMode::Open, |folder| {
            let respond = format!("respond: {{ status: {status} }}\npolicies:");
            folder.change("tidegate.yaml", "policies:", &respond);
        });
        let Some(site) = site else {
            return;
        };
        for expected in [200, 200, 200, status, status] {
            let reply = site.get(2, "/", &[]);
            assert_eq!(reply.status, expected, "{reply:?}");
            assert_eq!(reply.header("x-denied-reason"), None);
        }
        assert_eq!(site.application.asked().len(), 3);
    }
}

with_each!(
    a_refusal_may_have_the_status_of_an_outage: haproxy Haproxy, caddy Caddy,
    traefik_plugin TraefikPlugin
);

/// `HAProxy` has no path for it, and Tidegate requires one.
#[test]
fn haproxy_forwards_requests_without_a_path() {
    let Some(site) = Site::open(Setup::Haproxy, FailureMode::Open) else {
        return;
    };
    for status in [200, 200, 200, 429] {
        assert_eq!(site.ask(2, "OPTIONS *", &[]).status, status);
    }
    assert_eq!(site.application.asked(), ["OPTIONS *"; 3]);
}

/// Caddy forwards all of them, and adds some; Tidegate reads a hundred.
#[test]
fn caddy_forwards_requests_with_many_headers() {
    let Some(site) = Site::open(Setup::Caddy, FailureMode::Open) else {
        return;
    };
    let lines: Vec<String> = (0..120).map(|nth| format!("x-{nth}: a")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(site.get(2, "/", &lines[..88]).status, 200);
    site.application.asked();
    assert_eq!(site.get(2, "/", &lines).status, 431);
    assert_eq!(site.application.asked(), [""; 0]);
}
