//! Clients that forge identities or targets.

use crate::kit::{FailureMode, Setup, Site};

/// Forged headers that must have no effect.
const CLAIMS: [&[&str]; 16] = [
    &["x-forwarded-for: 203.0.113.1"],
    &[
        "x-forwarded-for: 203.0.113.1",
        "x-forwarded-for: 203.0.113.2",
    ],
    &["x-forwarded-for: 127.0.0.1"],
    &["x-forwarded-for: unknown"],
    &[
        "x-forwarded-for: 203.0.113.1",
        "connection: x-forwarded-for",
    ],
    &["forwarded: for=203.0.113.1"],
    &["x-real-ip: 203.0.113.1"],
    &["x-forwarded-uri: /elsewhere"],
    &["x-original-uri: /elsewhere"],
    &["x-original-url: http://shop.example/elsewhere"],
    &["x-forwarded-uri: /elsewhere?deny=403", "x-forwarded-uri: /"],
    &["x-forwarded-method: GET"],
    &["x-original-method: GET"],
    &[
        "x-forwarded-method: GET",
        "x-forwarded-uri: /",
        "connection: x-forwarded-uri, x-forwarded-method",
    ],
    &["x-forwarded-host: elsewhere.example"],
    &["x-denied-status: 200"],
];

/// A client without units left has none under another identity either.
fn forged_identity_headers_do_not_evade_a_limit(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    site.use_up(2);
    for claim in CLAIMS {
        let status = site.get(2, "/", claim).status;
        // 400 if the proxy forwards contradictory headers.
        assert!(matches!(status, 400 | 429), "{claim:?}: {status}");
    }
    assert_eq!(site.application.asked(), [""; 0]);
}

with_all!(forged_identity_headers_do_not_evade_a_limit);

/// No client can use up another client's units.
fn forged_identity_headers_do_not_affect_other_clients(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    for claim in [
        "x-forwarded-for: 127.0.0.3",
        "forwarded: for=127.0.0.3",
        "x-real-ip: 127.0.0.3",
    ] {
        for _ in 0..3 {
            site.get(2, "/", &[claim]);
        }
    }
    assert_eq!(site.get(2, "/", &[]).status, 429, "its own requests");
    site.use_up(3);
}

with_all!(forged_identity_headers_do_not_affect_other_clients);

/// The limit on `POST /login` applies to every notation that reaches the application, regardless of
/// other headers.
fn another_path_notation_does_not_evade_a_limit(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    assert_eq!(site.ask(2, "POST /login", &[]).status, 200);
    for claim in CLAIMS {
        let status = site.ask(2, "POST /login", claim).status;
        assert!(matches!(status, 400 | 429), "{claim:?}: {status}");
    }
    for target in [
        "/login",
        "/login?",
        "/login?x=/",
        "/login?deny=403",
        "/%6Cogin",
        "/./login",
        "//login",
        "/a/../login",
        "/login/",
        "http://shop.example/login",
        "http://elsewhere.example/login?deny=403",
    ] {
        let status = site.ask(2, &format!("POST {target}"), &[]).status;
        assert!(!matches!(status, 200 | 403), "{target}: {status}");
    }
    let asked = site.application.asked();
    assert_eq!(asked, ["POST /login"]);
}

with_all!(another_path_notation_does_not_evade_a_limit);

/// Refusals keep their status for any query of the client.
fn a_client_cannot_choose_its_deny_status(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    site.use_up(2);
    for query in [
        "deny=403",
        "deny=403&x=1",
        "x=1&deny=403",
        "deny=403&deny=403",
    ] {
        let reply = site.get(2, &format!("/?{query}"), &[]);
        assert_eq!(reply.status, 429, "{query}");
        assert_eq!(reply.header("x-denied-status"), None);
        assert_eq!(reply.json()["status"], 429);
    }
}

with_all!(a_client_cannot_choose_its_deny_status);

/// A request head that Tidegate would reject does not bypass it.
fn large_heads_do_not_evade_a_limit(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    site.use_up(2);
    for kilobytes in [4, 6, 8, 12, 14, 15, 16, 17, 20, 32, 64, 512] {
        for head in large_heads(kilobytes) {
            does_not_help(&site, &head);
        }
    }
    // Tidegate's response races with its close: a client that is still sending may see either.
    let [_, head, ..] = large_heads(29);
    for _ in 0..100 {
        does_not_help(&site, &head);
    }
    assert_eq!(site.application.asked(), [""; 0]);
}

with_all!(large_heads_do_not_evade_a_limit);

fn large_heads(kilobytes: usize) -> [String; 5] {
    let much = "a".repeat(kilobytes << 10);
    let hops = "x-forwarded-for: 203.0.113.1\r\n".repeat(kilobytes * 32);
    let keys = "x-api-key: a\r\n".repeat(kilobytes * 16);
    [
        format!("GET /{much} HTTP/1.1\r\nhost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\nx-api-key: {much}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {much}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{hops}\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{keys}\r\n"),
    ]
}

fn does_not_help(site: &Site, head: &str) {
    // Some proxies close without a response.
    if let Some(reply) = site.try_send(2, head) {
        assert!(reply.status >= 400, "{} bytes: {reply:?}", head.len());
    }
}
