//! Check requests of proxies.

use super::{TWO, metrics};
use crate::kit::{Client, CuttableServer, ask};

#[tokio::test]
async fn the_path_selects_the_policy_for_the_forwarded_request() {
    let it = CuttableServer::start(TWO).await;
    let order = ask("/v1/auth/routes")
        .uri("/orders?page=2")
        .with("x-forwarded-method", "POST")
        .with("x-forwarded-host", "Shop.test:8443")
        .header("x-tier", "free");
    let first = order.at(it.server.http).await;
    assert_eq!(
        (first.status, first.header("x-ratelimit-limit")),
        (200, Some("1"))
    );
    assert_eq!(order.at(it.server.http).await.status, 429);
    // Any difference makes another request, to which the limit does not apply.
    for other in [
        order.clone().uri("/carts"),
        order.clone().with("x-forwarded-method", "GET"),
        order.clone().with("x-forwarded-host", "blog.test"),
        order.clone().with("x-tier", "gold"),
    ] {
        let reply = other.at(it.server.http).await;
        assert_eq!(
            (reply.status, reply.names()),
            (200, vec!["content-length", "date"])
        );
    }
    // The same with nginx's header names.
    let nginx = ask("/v1/auth/routes")
        .without("x-forwarded-uri")
        .without("x-forwarded-method")
        .without("x-forwarded-host")
        .header("x-original-url", "https://shop.test/orders")
        .header("x-original-method", "POST")
        .header("x-tier", "free");
    assert_eq!(nginx.at(it.server.http).await.status, 429);
}

#[tokio::test]
async fn an_unknown_policy_is_404_without_listing_others() {
    let it = CuttableServer::start(TWO).await;
    for target in [
        "/v1/auth/nope",
        "/v1/auth/",
        "/v1/auth/api/x",
        "/v1/auth/a%70i",
    ] {
        let reply = ask(target).at(it.server.http).await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (
                404,
                r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"unknown policy"}"#
            ),
            "{target}"
        );
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json")
        );
    }
    let elsewhere = ask("/v1/authority").at(it.server.http).await;
    assert_eq!(elsewhere.status, 404);
    assert!(
        elsewhere.body.contains("does not exist"),
        "{}",
        elsewhere.body
    );
}

#[tokio::test]
async fn a_proxy_without_forwarding_headers_gets_the_missing_names() {
    let it = CuttableServer::start(TWO).await;
    let routes = ask("/v1/auth/routes");
    for (asked, detail) in [
        (
            routes.clone().without("x-forwarded-uri"),
            "X-Forwarded-Uri or X-Original-URI is required for the path",
        ),
        (
            routes.clone().uri(""),
            "X-Forwarded-Uri or X-Original-URI is required for the path",
        ),
        (
            routes.clone().header("x-original-uri", "/other"),
            "X-Forwarded-Uri and X-Original-URI differ",
        ),
        (
            routes.clone().header("x-forwarded-method", "GET"),
            "duplicate X-Forwarded-Method",
        ),
        (
            routes.clone().with("x-forwarded-method", "GET /"),
            "X-Forwarded-Method is not a method",
        ),
        (
            routes.clone().with("x-forwarded-host", "a.test, b.test"),
            "X-Forwarded-Host is not one host",
        ),
    ] {
        let reply = asked.at(it.server.http).await;
        assert_eq!(reply.status, 400, "{detail}");
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(reply.json()["detail"], detail);
        assert_eq!(reply.json()["status"], 400);
    }
    // If no limit matches paths, the path may be missing.
    let silent = ask("/v1/auth/api").without("x-forwarded-uri");
    assert_eq!(silent.at(it.server.http).await.status, 200);
}

#[tokio::test]
async fn any_method_is_accepted_and_a_body_is_ignored() {
    let it = CuttableServer::start(TWO).await;
    let mut client = Client::connect(it.server.http).await;
    let large = "x".repeat(60_000);
    let bodies = [
        ("POST", "a=1"),
        ("PUT", &large),
        ("DELETE", ""),
        ("OPTIONS", ""),
        ("BREW", "{"),
    ];
    for (nth, (method, body)) in bodies.into_iter().enumerate() {
        let asked = ask("/v1/auth")
            .from(&format!("192.0.2.{nth}"))
            .method(method, body);
        let reply = client.ask(&asked.text()).await;
        assert_eq!(
            (reply.status, reply.header("connection")),
            (200, None),
            "{method}"
        );
    }
    // Several pipelined requests, with bodies that look like requests.
    let inner = ask("/v1/auth").from("192.0.2.99").text();
    let outer = ask("/v1/auth").from("192.0.2.77").method("POST", &inner);
    client.send(&outer.text().repeat(3)).await;
    for status in [200, 200, 429] {
        assert_eq!(client.reply().await.status, status);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_costs_the_connection_and_not_the_decision() {
    let it = CuttableServer::start(TWO).await;
    let mut client = Client::connect(it.server.http).await;
    let head = ask("/v1/auth").method("POST", "x").text();
    let head = head.replace(
        "content-length: 1\r\n\r\nx",
        "content-length: 1000000\r\n\r\n",
    );
    let reply = client.ask(&head).await;
    assert_eq!(
        (reply.status, reply.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("1"));
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn head_is_answered_without_a_body() {
    let it = CuttableServer::start(TWO).await;
    let asked = ask("/v1/auth")
        .method("HEAD", "")
        .header("connection", "close");
    for (status, field) in [
        (200, "x-ratelimit-remaining: 1\r\n"),
        (200, "x-ratelimit-remaining: 0\r\n"),
        // As for a GET.
        (429, "content-length: 2"),
    ] {
        let mut client = Client::connect(it.server.http).await;
        client.send(&asked.text()).await;
        let reply = client.rest().await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.contains(field), "{reply}");
        assert!(reply.ends_with("\r\n\r\n"), "{reply}");
    }
}

#[tokio::test]
async fn one_connection_serves_many_questions() {
    let it = CuttableServer::start(TWO).await;
    let mut client = Client::connect(it.server.http).await;
    for nth in 0..500 {
        let address = format!("10.0.{}.{}", nth / 250, nth % 250);
        let reply = client.ask(&ask("/v1/auth").from(&address).text()).await;
        assert_eq!(
            (reply.status, reply.header("x-ratelimit-remaining")),
            (200, Some("1"))
        );
    }
    let connections = metrics(&it.server).await;
    assert_eq!(
        connections.get("tidegate_connections_accepted_total{listener=\"http\"}"),
        Some(&1.0)
    );
}
