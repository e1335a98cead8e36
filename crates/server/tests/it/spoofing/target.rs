//! Forged targets, methods and hosts.

use super::{ONCE, statuses};
use crate::kit::{CuttableServer, ask};

/// Attack: behind nginx, which sends the target in another header, a client names a path without
/// limits and requests another.
#[tokio::test]
async fn a_forged_target_is_ignored() {
    let it = CuttableServer::start(ONCE).await;
    let nginx = ask("/v1/auth/login")
        .without("x-forwarded-uri")
        .header("x-original-uri", "/login");
    let asked = [
        nginx.clone(),
        nginx.clone().header("x-forwarded-uri", "/free"),
        nginx
            .clone()
            .header("x-original-url", "http://shop.test/free"),
        nginx.clone().header("x-original-uri", "/free"),
        nginx.clone().header("x-rewrite-url", "/free"),
        nginx.clone().header("x-forwarded-path", "/free"),
        // The nginx header in place, this one is harmless.
        nginx.header("x-forwarded-uri", "/login"),
    ];
    let seen = statuses(&it.server, asked).await;
    assert_eq!(seen, [200, 400, 400, 400, 429, 429, 429]);
    // The other way round, behind Traefik.
    let traefik = ask("/v1/auth/login").uri("/login");
    let asked = [
        traefik.clone().header("x-original-uri", "/free"),
        traefik.clone().header("x-forwarded-uri", "/free"),
        traefik,
    ];
    assert_eq!(statuses(&it.server, asked).await, [400, 400, 429]);
}

/// Attack: the same for methods and hosts.
#[tokio::test]
async fn a_forged_method_or_host_is_ignored() {
    let it = CuttableServer::start(ONCE).await;
    let post = ask("/v1/auth/method").with("x-forwarded-method", "POST");
    let asked = [
        post.clone(),
        post.clone().header("x-original-method", "GET"),
        post.clone().header("x-forwarded-method", "GET"),
        post.clone().header("x-http-method-override", "GET"),
        // The method of the check request itself does not matter.
        post.method("PUT", ""),
    ];
    assert_eq!(statuses(&it.server, asked).await, [200, 400, 400, 429, 429]);
    let shop = ask("/v1/auth/host").with("x-forwarded-host", "shop.test");
    let asked = [
        shop.clone(),
        shop.clone().with("host", "free.test"),
        shop.clone().header("x-original-url", "http://free.test/"),
        shop.clone().header("x-forwarded-host", "free.test"),
        shop.clone().with("x-forwarded-host", "SHOP.test.:8443"),
        shop.clone().with("x-forwarded-host", "free@shop.test"),
        shop.uri("http://free.test/"),
    ];
    assert_eq!(
        statuses(&it.server, asked).await,
        [200, 429, 400, 400, 429, 429, 429]
    );
}

/// Attack: `GET http://shop.test?x`, of which a proxy forwards the query only, has no path for any
/// limit, and is `/` to the application.
#[tokio::test]
async fn a_target_without_a_path_means_the_root() {
    let it = CuttableServer::start(ONCE).await;
    let asked = [
        "/",
        "?x",
        "?",
        "?/x",
        "http://shop.test",
        "http://shop.test?x",
    ];
    let asked = asked.map(|uri| ask("/v1/auth/root").uri(uri));
    let seen = statuses(&it.server, asked).await;
    assert_eq!(seen, [200, 429, 429, 429, 429, 429]);
    let fragments = ["#x", "/free#/../login"].map(|uri| ask("/v1/auth/root").uri(uri));
    assert_eq!(statuses(&it.server, fragments).await, [400, 400]);
}

/// Attack: a proxy that omits a header, or a client that makes it do so, turns a limit off.
#[tokio::test]
async fn headers_used_by_limits_are_required() {
    let it = CuttableServer::start(ONCE).await;
    for (policy, header) in [
        ("login", "x-forwarded-uri"),
        ("method", "x-forwarded-method"),
        ("host", "x-forwarded-host"),
    ] {
        let asked = ask(&format!("/v1/auth/{policy}")).without(header);
        let reply = asked.at(it.server.http).await;
        assert_eq!(reply.status, 400, "{policy}");
        let detail = reply.json()["detail"].to_string().to_lowercase();
        assert!(detail.contains(header), "{detail}");
    }
    // If no limit uses it, it may be missing.
    let bare = ask("/v1/auth/ip")
        .without("x-forwarded-uri")
        .without("x-forwarded-method")
        .without("x-forwarded-host");
    assert_eq!(bare.at(it.server.http).await.status, 200);
}

/// Attack: each notation of a method has a separate bucket.
#[tokio::test]
async fn a_method_in_another_case_is_the_same_method() {
    let it = CuttableServer::start(ONCE).await;
    let asked = ["GET", "get", "Get"];
    let asked = asked.map(|method| ask("/v1/auth/verb").with("x-forwarded-method", method));
    assert_eq!(statuses(&it.server, asked).await, [200, 429, 429]);
}

/// Attack: another notation of the path evades the limit, and the application treats it as the
/// same.
#[tokio::test]
async fn a_path_in_another_notation_is_the_same_path() {
    let it = CuttableServer::start(ONCE).await;
    let spelled = |uri: &str| ask("/v1/auth/login").uri(uri);
    assert_eq!(spelled("/login").at(it.server.http).await.status, 200);
    for uri in [
        "/login/",
        "//login",
        "/./login",
        "/free/../login",
        "/free/%2e%2e/login",
        "/free/%2E./login",
        "/%6cogin",
        "/%6Cogi%6e",
        "/%%36cogin",
        "/login?free",
        "/login?/free",
        "http://shop.test/login",
        "https://free.test:8443//login?x",
        "HTTP://shop.test/%6cogin",
    ] {
        assert_eq!(spelled(uri).at(it.server.http).await.status, 429, "{uri}");
    }
    // A different path stays different.
    for uri in ["/login%2ffree", "/LOGIN", "/loginx", "/free?/login", "/"] {
        assert_eq!(spelled(uri).at(it.server.http).await.status, 200, "{uri}");
    }
}

/// Attack: a check request in absolute form is not found, or gets its policy from elsewhere.
#[tokio::test]
async fn a_request_in_absolute_form_is_the_same_request() {
    let it = CuttableServer::start(ONCE).await;
    let asked = [
        "/v1/auth/ip",
        "http://tidegate.test/v1/auth/ip",
        "http://x@y:1/v1/auth/ip",
    ];
    assert_eq!(statuses(&it.server, asked.map(ask)).await, [200, 429, 429]);
    let inside = ask("/v1/auth/ip/../cost").at(it.server.http).await;
    assert_eq!(inside.status, 404, "a policy's name is not a path to walk");
}
