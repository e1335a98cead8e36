//! Attempts to control the response.

use super::ONCE;
use crate::kit::{CuttableServer, ask};

/// Attack: a correlation id closes its JSON string, and adds fields to the body, or headers to the
/// response.
#[tokio::test]
async fn a_correlation_id_cannot_inject_headers() {
    let it = CuttableServer::start(ONCE).await;
    ask("/v1/auth/ip").at(it.server.http).await;
    let long = "a".repeat(129);
    for forged in [
        r#"x","status":200,"y":"z"#,
        r#"x"}"#,
        "x\\",
        "<script>alert(1)</script>",
        "x y",
        "x\ty",
        "%0d%0aset-cookie:a=b",
        "\u{2028}",
        "{detail}",
        &long,
        "",
    ] {
        let asked = ask("/v1/auth/ip").header("x-correlation-id", forged);
        let reply = asked.at(it.server.http).await;
        let id = reply.header("x-correlation-id").unwrap();
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{id}"
        );
        let body = reply.json();
        assert_eq!(
            (reply.status, &body["status"]),
            (429, &429.into()),
            "{forged}"
        );
        assert_eq!(body["correlationId"], id);
        assert_eq!(body.as_object().unwrap().len(), 6, "{body}");
    }
    let twice = ask("/v1/auth/ip")
        .header("x-correlation-id", "a")
        .header("x-correlation-id", "b");
    let reply = twice.at(it.server.http).await;
    assert_eq!(reply.header("x-correlation-id").map(str::len), Some(32));
}

/// Attack: a client of Caddy, which appends queries, chooses the status of its refusal, and so what
/// its application and its operators' dashboards count.
#[tokio::test]
async fn a_client_cannot_choose_403() {
    let it = CuttableServer::start(ONCE).await;
    ask("/v1/auth/ip").at(it.server.http).await;
    for (target, uri) in [
        ("/v1/auth/ip?deny=403", "/?deny=403"),
        ("/v1/auth/ip?deny=403&x=1", "/?deny=403&x=1"),
        ("/v1/auth/ip?x=1&deny=403", "/?x=1&deny=403"),
        ("/v1/auth/ip?deny=403&deny=403", "/?deny=403&deny=403"),
        ("/v1/auth/ip", "/?deny=403"),
        ("/v1/auth/ip?deny=403", "http://app.test/?deny=403"),
    ] {
        let reply = ask(target).uri(uri).at(it.server.http).await;
        assert_eq!(
            (reply.status, reply.header("x-denied-status")),
            (429, None),
            "{target} {uri}"
        );
    }
}

/// Attack: a client turns the 403 that nginx needs into a 429, which nginx makes a 500.
#[tokio::test]
async fn a_client_of_nginx_cannot_undo_403() {
    let it = CuttableServer::start(ONCE).await;
    ask("/v1/auth/ip").at(it.server.http).await;
    let nginx = ask("/v1/auth/ip?deny=403").without("x-forwarded-uri");
    for uri in ["/", "/?deny=403", "/?deny=404", "/?deny=403&deny=403"] {
        let reply = nginx
            .clone()
            .header("x-original-uri", uri)
            .at(it.server.http)
            .await;
        assert_eq!(reply.status, 403, "{uri}");
    }
}

/// Attack: request data appears in the response.
#[tokio::test]
async fn client_headers_are_not_reflected() {
    let it = CuttableServer::start(ONCE).await;
    let asked = ask("/v1/auth/ip")
        .header("x-ratelimit-remaining", "999")
        .header("retry-after", "0")
        .header("x-denied-status", "200");
    asked.at(it.server.http).await;
    let reply = asked.at(it.server.http).await;
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(reply.header("retry-after"), Some("3600"));
    assert_eq!(reply.header("x-denied-status"), None);
}
