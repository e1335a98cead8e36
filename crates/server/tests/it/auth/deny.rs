//! `?deny=403`, and queries that have no effect.

use super::TWO;
use crate::kit::{CuttableServer, ask};

#[tokio::test]
async fn an_operator_may_have_refusals_by_403() {
    let it = CuttableServer::start(TWO).await;
    let nginx = ask("/v1/auth?deny=403")
        .without("x-forwarded-uri")
        .header("x-original-uri", "/");
    for _ in 0..2 {
        let reply = nginx.at(it.server.http).await;
        assert_eq!((reply.status, reply.header("x-denied-status")), (200, None));
    }
    let reply = nginx.at(it.server.http).await;
    assert_eq!(
        (reply.status, reply.header("x-denied-status")),
        (403, Some("429"))
    );
    // Everything else of the refusal is unchanged.
    assert_eq!(reply.header("retry-after"), Some("60"));
    assert_eq!(reply.header("ratelimit"), Some("\"per-client\";r=0;t=60"));
    assert_eq!(reply.json()["status"], 429);
    for other in [
        "deny=404",
        "deny",
        "Deny=403",
        "x=1&deny=403",
        "deny%3D403",
        "policy=routes",
    ] {
        let reply = ask(&format!("/v1/auth?{other}")).at(it.server.http).await;
        assert_eq!(
            (reply.status, reply.header("x-denied-status")),
            (429, None),
            "{other}"
        );
    }
}

#[tokio::test]
async fn queries_that_a_proxy_appends_have_no_effect() {
    let it = CuttableServer::start(TWO).await;
    // Caddy appends the client's query.
    for _ in 0..2 {
        let reply = ask("/v1/auth/api?cost=0&policy=routes").uri("/?cost=0&policy=routes");
        assert_eq!(reply.at(it.server.http).await.status, 200);
    }
    for (target, uri, status) in [
        ("/v1/auth/api?page=2", "/?page=2", 429),
        ("/v1/auth/api?deny=403&page=2", "/?page=2", 403),
        ("/v1/auth/api?deny=403", "/", 403),
        ("/v1/auth/api?deny=403&deny=403", "/?deny=403", 403),
    ] {
        let reply = ask(target).uri(uri).at(it.server.http).await;
        assert_eq!(reply.status, status, "{target} {uri}");
    }
}
