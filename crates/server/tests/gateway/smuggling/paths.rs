//! Paths: their route, and their meaning to the application.

use super::{Part, raw, refuse};
use crate::kit::modern::{H2, body};
use crate::kit::{Client, Gate, Upstream, gate};
use http::Request;

/// Paths that some programs read as `/admin`, and others do not.
const TWO_WAYS: [&str; 28] = [
    "/admin;x",
    "/admin;",
    "/;/admin",
    "/.;/admin",
    "/x;/..;/admin",
    "/admin%3bx",
    "/admin%2f",
    "/%2fadmin",
    "/%2Fadmin",
    "/x%2f..%2fadmin",
    "/%252fadmin",
    "/\\admin",
    "/admin\\",
    "/%5cadmin",
    "/%255cadmin",
    "/admin%00",
    "/admin%00.html",
    "/admin%0a",
    "/admin%7f",
    "/admin%3f",
    "/admin%23",
    "/%2e/admin",
    "/x/%2e%2e/admin",
    "/%252e/admin",
    "/%2561dmin",
    "/%252561dmin",
    "/%c0%afadmin",
    "/%zz/admin",
];

/// Returns a gateway with a separate route for `/admin`.
async fn guarded(admin: &Upstream, rest: &Upstream) -> Gate {
    let [admin, rest] = [admin, rest].map(|it| it.address);
    let routes = format!(
        "{{ name: admin, match: {{ path: /admin }}, upstreams: ['http://{admin}'] }}, \
         {{ name: rest, upstreams: ['http://{rest}'] }}"
    );
    Gate::start(&gate::config(&routes, "rate: 1000000/s")).await
}

#[tokio::test]
async fn an_ambiguous_path_matches_no_route() {
    let [admin, rest] = [Upstream::start().await, Upstream::start().await];
    let gate = guarded(&admin, &rest).await;
    for path in TWO_WAYS {
        let mut client = Client::connect(gate.address).await;
        let reply = client.get(path, &[]).await;
        assert_eq!((reply.status(), reply.closes()), (400, true), "{path}");
        assert_eq!((admin.begun().len(), rest.begun().len()), (0, 0), "{path}");
    }
    // Paths with one meaning take its route.
    for path in [
        "/admin",
        "/%61dmin",
        "//admin",
        "/x/../admin",
        "/./admin/",
        "/admin?a;b%2f\\",
    ] {
        let mut client = Client::connect(gate.address).await;
        assert_eq!(client.get(path, &[]).await.status(), 200, "{path}");
        assert_eq!((admin.seen().len(), rest.seen().len()), (1, 0), "{path}");
    }
}

#[tokio::test]
async fn a_rejected_path_hides_no_other_request() {
    let line = |path: &&str| {
        raw(&format!(
            "GET {path} HTTP/1.1\r\nhost: shop.example\r\n\r\n"
        ))
    };
    let corpus: Vec<_> = TWO_WAYS.iter().map(|path| (*path, line(path))).collect();
    refuse(Part::Head, &corpus).await;
}

#[tokio::test]
async fn the_refusal_of_a_path_names_the_setting_that_accepts_it() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let reply = crate::kit::get(gate.address, "/cars;color=red/1", &[]).await;
    assert!(
        reply
            .text()
            .contains("`paths: lenient` in `listen.gateway`"),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn paths_are_read_the_same_over_http2() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    for path in TWO_WAYS {
        let mut client = H2::connect(gate.address).await;
        let request = Request::get(format!("http://shop.example{path}"));
        let answered = client.ask(request.body(body("", &[])).unwrap()).await;
        assert_eq!(answered.head.status, 400, "{path}");
        assert_eq!(upstream.begun().len(), 0, "{path}");
    }
}

#[tokio::test]
async fn lenient_paths_reach_the_upstream_as_they_were_sent() {
    let upstream = Upstream::start().await;
    let gate = gate::lenient(format!("http://{}", upstream.address), "").await;
    for path in [
        "/cars;color=red/1",
        "/projects/a%2Fb",
        "/a\\b",
        "/a%00",
        "/%zz",
        "/a%3f",
    ] {
        assert_eq!(
            crate::kit::get(gate.address, path, &[]).await.status(),
            200,
            "{path}"
        );
        assert_eq!(upstream.saw().head.line, format!("GET {path} HTTP/1.1"));
    }
}
