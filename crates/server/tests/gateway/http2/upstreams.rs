//! Upstreams that speak HTTP/2 or TLS or both, and trailers there and back.

use crate::kit::certificates::Certificates;
use crate::kit::modern::{H2, Modern, Speaks, body};
use crate::kit::{Client, Gate, gate, get, request};
use http::{Request, Version};

/// A gateway before an upstream that speaks so, as routes name it.
async fn before(upstream: &Modern, speaks: Speaks, certificates: &Certificates) -> Gate {
    let port = upstream.address.port();
    let (scheme, host) = match speaks {
        Speaks::H2c => ("h2c", "127.0.0.1"),
        Speaks::Tls(_) => ("https", "localhost"),
    };
    let ca = certificates.path("ca.pem");
    let tls = match speaks {
        Speaks::H2c => String::new(),
        Speaks::Tls(_) => format!(", tls: {{ ca: '{ca}' }}"),
    };
    gate::open(format!("{scheme}://{host}:{port}"), &tls).await
}

/// Sends a request with trailers by HTTP/2, and one by HTTP/1.1, to an upstream that speaks so.
async fn there_and_back(speaks: Speaks, version: Version) {
    let certificates = Certificates::make();
    let upstream = Modern::start(speaks, &certificates).await;
    let gate = before(&upstream, speaks, &certificates).await;
    let large = vec![7; 3 << 20];
    let mut client = H2::connect(gate.address).await;
    let asked = Request::put("http://shop.example/a?b=c")
        .header("te", "trailers")
        .header("trailer", "x-sum")
        .header("x-a", "1")
        .body(body(large.clone(), &[("x-sum", "3")]));
    let answered = client.ask(asked.unwrap()).await;
    assert_eq!(answered.head.status, 200);
    assert!(answered.body == large, "{} bytes", answered.body.len());
    assert_eq!(answered.trailers.unwrap()["x-back"], "yes");
    let seen = upstream.saw();
    assert_eq!(seen.version, version);
    let target = match version {
        Version::HTTP_2 if speaks == Speaks::H2c => "http://shop.example/a?b=c",
        Version::HTTP_2 => "https://shop.example/a?b=c",
        _ => "/a?b=c",
    };
    assert_eq!(seen.line, format!("PUT {target}"));
    assert_eq!(seen.headers["x-a"], "1");
    assert_eq!(seen.headers["te"], "trailers");
    assert!(seen.body == large);
    assert_eq!(seen.trailers.unwrap()["x-sum"], "3");

    let mut client = Client::connect(gate.address).await;
    let lines = [
        "transfer-encoding: chunked",
        "trailer: x-sum",
        "te: trailers",
    ];
    let asked = request("PUT", "/a", &lines) + "5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n";
    let reply = client.ask(asked).await;
    assert_eq!((reply.status(), reply.text()), (200, "hello"));
    assert_eq!(
        reply.content.trailers,
        [("x-back".to_owned(), "yes".to_owned())]
    );
    let seen = upstream.saw();
    assert_eq!(seen.trailers.unwrap()["x-sum"], "1");
    assert_eq!(
        seen.headers.get("transfer-encoding").is_some(),
        version == Version::HTTP_11
    );

    let reply = client.get("/b", &[]).await;
    assert_eq!((reply.status(), reply.text()), (200, ""));
    assert_eq!(upstream.saw().body.len(), 0);
}

#[tokio::test]
async fn an_upstream_that_speaks_http2_without_tls() {
    there_and_back(Speaks::H2c, Version::HTTP_2).await;
}

#[tokio::test]
async fn an_upstream_that_speaks_http2_by_tls() {
    there_and_back(Speaks::Tls(&["h2"]), Version::HTTP_2).await;
}

#[tokio::test]
async fn an_upstream_that_speaks_both_chooses() {
    there_and_back(Speaks::Tls(&["h2", "http/1.1"]), Version::HTTP_2).await;
    there_and_back(Speaks::Tls(&["http/1.1", "h2"]), Version::HTTP_11).await;
}

#[tokio::test]
async fn an_upstream_that_speaks_http1_by_tls() {
    there_and_back(Speaks::Tls(&["http/1.1"]), Version::HTTP_11).await;
}

#[tokio::test]
async fn an_upstream_that_agrees_on_nothing_is_spoken_to_by_http1() {
    there_and_back(Speaks::Tls(&[]), Version::HTTP_11).await;
}

#[tokio::test]
async fn an_upstream_whose_certificate_nobody_vouches_for_is_told_nothing() {
    let [theirs, others] = [Certificates::make(), Certificates::make()];
    let speaks = Speaks::Tls(&["h2", "http/1.1"]);
    let upstream = Modern::start(speaks, &theirs).await;
    let gate = before(&upstream, speaks, &others).await;
    let reply = get(gate.address, "/", &[]).await;
    assert_eq!(reply.status(), 502);
    assert_eq!(
        reply.head.get("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(upstream.count(), 0);
    // For it has another name than the route says.
    let ca = theirs.path("ca.pem");
    let url = format!("https://localhost:{}", upstream.address.port());
    let tls = format!(", tls: {{ ca: '{ca}', server_name: other.example }}");
    let gate = gate::open(url, &tls).await;
    assert_eq!(get(gate.address, "/", &[]).await.status(), 502);
    assert_eq!(upstream.count(), 0);
}
