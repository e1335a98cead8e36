//! Upstreams that speak HTTP/2 or TLS or both, and trailers in both directions.

use crate::kit::certificates::Certificates;
use crate::kit::modern::{H2, Http2Upstream, UpstreamProtocol, body};
use crate::kit::{Client, Gate, gate, get, request};
use http::{Request, Version};

/// Returns a gateway in front of an upstream with this protocol.
async fn before(
    upstream: &Http2Upstream,
    speaks: UpstreamProtocol,
    certificates: &Certificates,
) -> Gate {
    let port = upstream.address.port();
    let (scheme, host) = match speaks {
        UpstreamProtocol::H2c => ("h2c", "127.0.0.1"),
        UpstreamProtocol::Tls(_) => ("https", "localhost"),
    };
    let ca = certificates.path("ca.pem");
    let tls = match speaks {
        UpstreamProtocol::H2c => String::new(),
        UpstreamProtocol::Tls(_) => format!(", tls: {{ ca: '{ca}' }}"),
    };
    gate::open(format!("{scheme}://{host}:{port}"), &tls).await
}

/// Sends a request with trailers over HTTP/2, and one over HTTP/1.1, to an upstream with this
/// protocol.
async fn echo_over(speaks: UpstreamProtocol, version: Version) {
    let certificates = Certificates::make();
    let upstream = Http2Upstream::start(speaks, &certificates).await;
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
        Version::HTTP_2 if speaks == UpstreamProtocol::H2c => "http://shop.example/a?b=c",
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
    echo_over(UpstreamProtocol::H2c, Version::HTTP_2).await;
}

#[tokio::test]
async fn an_upstream_that_speaks_http2_by_tls() {
    echo_over(UpstreamProtocol::Tls(&["h2"]), Version::HTTP_2).await;
}

#[tokio::test]
async fn an_upstream_that_speaks_both_chooses() {
    echo_over(UpstreamProtocol::Tls(&["h2", "http/1.1"]), Version::HTTP_2).await;
    echo_over(UpstreamProtocol::Tls(&["http/1.1", "h2"]), Version::HTTP_11).await;
}

#[tokio::test]
async fn an_upstream_that_speaks_http1_by_tls() {
    echo_over(UpstreamProtocol::Tls(&["http/1.1"]), Version::HTTP_11).await;
}

#[tokio::test]
async fn an_upstream_without_alpn_gets_http1() {
    echo_over(UpstreamProtocol::Tls(&[]), Version::HTTP_11).await;
}

#[tokio::test]
async fn an_upstream_with_an_untrusted_certificate_gets_no_data() {
    let [theirs, others] = [Certificates::make(), Certificates::make()];
    let speaks = UpstreamProtocol::Tls(&["h2", "http/1.1"]);
    let upstream = Http2Upstream::start(speaks, &theirs).await;
    let gate = before(&upstream, speaks, &others).await;
    let reply = get(gate.address, "/", &[]).await;
    assert_eq!(reply.status(), 502);
    assert_eq!(
        reply.head.get("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(upstream.count(), 0);
    // Its certificate has another name than the route.
    let ca = theirs.path("ca.pem");
    let url = format!("https://localhost:{}", upstream.address.port());
    let tls = format!(", tls: {{ ca: '{ca}', server_name: other.example }}");
    let gate = gate::open(url, &tls).await;
    assert_eq!(get(gate.address, "/", &[]).await.status(), 502);
    assert_eq!(upstream.count(), 0);
}
