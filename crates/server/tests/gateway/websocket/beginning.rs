//! The handshake of a WebSocket.

use super::{Echo, connect, talk, try_connect};
use crate::kit::certificates::Certificates;
use crate::kit::modern::acceptor;
use crate::kit::{Answer, Client, Upstream, gate, request};
use tokio_tungstenite::tungstenite::Error;

/// HTTP/2 has another handshake, which upstreams seldom support.
#[tokio::test]
async fn an_upstream_preferring_http2_gets_websockets_over_http1() {
    let certificates = Certificates::make();
    let echo = Echo::behind(Some(acceptor(&certificates, &["h2", "http/1.1"]))).await;
    let ca = certificates.path("ca.pem");
    let url = format!("https://localhost:{}", echo.address.port());
    let gate = gate::open(url, &format!(", tls: {{ ca: '{ca}' }}")).await;
    let mut socket = connect(&gate).await;
    talk(&mut socket, "hello").await;
}

#[tokio::test]
async fn a_route_without_upgrades_forwards_only_the_request() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), ", upgrades: []").await;
    let Err(Error::Http(answered)) = try_connect(&gate).await else {
        panic!("upgraded");
    };
    assert_eq!(answered.status(), 200);
    let head = upstream.saw().head;
    assert_eq!((head.get("upgrade"), head.get("connection")), (None, None));
    assert_eq!(head.get("sec-websocket-version"), Some("13"));
}

#[tokio::test]
async fn the_handshake_is_forwarded_completely() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    upstream.answers(
        Answer::of(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: abc\r\nSec-WebSocket-Protocol: chat\r\nX-Session: 1\r\n\r\nahead",
        )
        .repeating(),
    );
    let lines = [
        "connection: Upgrade",
        "upgrade: WebSocket",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version: 13",
        "sec-websocket-protocol: chat, superchat",
        "sec-websocket-extensions: permessage-deflate",
        "origin: http://shop.example",
    ];
    let mut client = Client::connect(gate.address).await;
    let reply = client.ask(request("GET", "/talk", &lines)).await;
    assert_eq!(reply.status(), 101);
    let told = [
        "upgrade",
        "connection",
        "sec-websocket-accept",
        "sec-websocket-protocol",
        "x-session",
    ];
    let told = told.map(|name| reply.head.get(name).unwrap().to_ascii_lowercase());
    assert_eq!(told, ["websocket", "upgrade", "abc", "chat", "1"]);
    let head = upstream.saw().head;
    assert_eq!(head.get("upgrade"), Some("WebSocket"));
    for line in &lines[2..] {
        let (name, value) = line.split_once(": ").unwrap();
        assert_eq!(head.get(name), Some(value));
    }
}

/// The protocol would change for one side only.
#[tokio::test]
async fn an_unrequested_upgrade_is_an_upstream_error() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let agreed =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    upstream.answers(Answer::of(agreed).repeating());
    let mut client = Client::connect(gate.address).await;
    let reply = client.get("/", &[]).await;
    assert_eq!(reply.status(), 502, "{reply:?}");
}
