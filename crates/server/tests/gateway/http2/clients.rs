//! HTTP/2 clients, where HTTP/2 differs from HTTP/1.1.

use super::secured;
use crate::kit::certificates::Certificates;
use crate::kit::modern::{H2, body, secure};
use crate::kit::{Client, Upstream, gate};
use http::Request;

/// Two programs could read two different hosts (RFC 9113, 8.3.1).
#[tokio::test]
async fn a_host_that_differs_from_the_authority_is_rejected() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let mut client = H2::connect(gate.address).await;
    for (host, status) in [("shop.example", 200), ("bank.example", 400)] {
        let request = Request::get("http://shop.example/").header("host", host);
        let answered = client.ask(request.body(body("", &[])).unwrap()).await;
        assert_eq!(answered.head.status, status, "{host}");
    }
    assert_eq!(upstream.saw().head.get("host"), Some("shop.example"));
}

/// HTTP/2 may split cookies for better compression; HTTP/1.1 has one header.
#[tokio::test]
async fn cookies_of_http2_are_one_in_http1() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let mut client = H2::connect(gate.address).await;
    let request = Request::get("http://shop.example/")
        .header("cookie", "a=1")
        .header("cookie", "b=2; c=3")
        .body(body("", &[]));
    assert_eq!(client.ask(request.unwrap()).await.head.status, 200);
    assert_eq!(upstream.saw().head.get("cookie"), Some("a=1; b=2; c=3"));
}

#[tokio::test]
async fn a_tls_client_without_http2_gets_http1() {
    let certificates = Certificates::make();
    let upstream = Upstream::start().await;
    let gate = secured(&upstream, &certificates).await;
    for protocols in [&["http/1.1"][..], &[]] {
        let stream = secure(gate.address, &certificates, protocols).await;
        let mut client = Client::over(stream);
        assert_eq!(client.get("/", &[]).await.text(), "GET /");
    }
    let stream = secure(gate.address, &certificates, &["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}
