//! Clients that speak HTTP/2 (RFC 8441), by hyper.

use super::{Echo, limiting, receive_from};
use crate::kit::modern::{Body, H2, body};
use crate::kit::{Answer, Gate, Upstream, gate, in_time};
use futures_util::SinkExt;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tidegate_server::program::ServeEnd;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

fn request(method: Method) -> Request<Body> {
    let request = Request::builder().method(method);
    let request = request.uri("http://shop.example/talk");
    let request = request.header("sec-websocket-version", "13");
    request.body(body("", &[])).unwrap()
}

/// Returns a client that knows the gateway's settings, which come before its first response.
async fn client(gate: &Gate) -> H2 {
    let mut client = H2::connect(gate.address).await;
    let mut first = request(Method::GET);
    *first.uri_mut() = "http://shop.example/".parse().unwrap();
    client.ask(first).await;
    client
}

/// Requests a stream with `protocol`.
async fn ask(client: &mut H2, protocol: &'static str) -> Response<Incoming> {
    let mut request = request(Method::CONNECT);
    let extensions = request.extensions_mut();
    extensions.insert(Protocol::from_static(protocol));
    client.send(request).await
}

async fn connect(client: &mut H2) -> Socket {
    let response = ask(client, "websocket").await;
    assert_eq!(response.status(), 200, "{response:?}");
    for name in ["upgrade", "connection", "sec-websocket-accept"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let upgraded = in_time("a stream", hyper::upgrade::on(response)).await;
    let stream = TokioIo::new(upgraded.unwrap());
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

async fn talk(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
    assert_eq!(receive_from(socket).await, Some(Message::text(text)));
}

#[tokio::test]
async fn websockets_and_requests_share_one_http2_connection() {
    let echo = Echo::start().await;
    let gate = gate::open(echo.url(), "").await;
    let mut client = client(&gate).await;
    let mut sockets = [connect(&mut client).await, connect(&mut client).await];
    for nth in 0..3 {
        for socket in &mut sockets {
            talk(socket, &format!("message {nth}")).await;
        }
        client.ask(request(Method::GET)).await;
    }
    let large = "a".repeat(1 << 20);
    talk(&mut sockets[0], &large).await;
    sockets[0].send(Message::text("go away")).await.unwrap();
    let Some(Message::Close(Some(close))) = receive_from(&mut sockets[0]).await else {
        panic!("not closed");
    };
    assert_eq!(close.code, CloseCode::Library(4002));
    talk(&mut sockets[1], "still there").await;
}

#[tokio::test]
async fn messages_are_limited_as_over_http1() {
    let echo = Echo::start().await;
    let gate = limiting(echo.url(), "rate: 1/h burst 2").await;
    let mut client = client(&gate).await;
    let mut socket = connect(&mut client).await;
    talk(&mut socket, "one").await;
    talk(&mut socket, "two").await;
    socket.send(Message::text("beyond")).await.unwrap();
    let Some(Message::Close(Some(close))) = receive_from(&mut socket).await else {
        panic!("not closed");
    };
    assert_eq!(close.code, CloseCode::Policy);
    assert!(!echo.received().contains(&Message::text("beyond")));
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    let echo = Echo::start().await;
    // One for the first request, two for WebSockets.
    let gate = gate::limited(echo.url(), "rate: 1/h burst 3").await;
    let mut client = client(&gate).await;
    let mut sockets = [connect(&mut client).await, connect(&mut client).await];
    let refused = ask(&mut client, "websocket").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    for socket in &mut sockets {
        talk(socket, "hello").await;
    }
}

#[tokio::test]
async fn a_stopping_gateway_sends_close_frames() {
    let echo = Echo::start().await;
    let gate = gate::open(echo.url(), "").await;
    let mut client = client(&gate).await;
    let mut socket = connect(&mut client).await;
    talk(&mut socket, "hello").await;
    let stopping = gate.stop();
    let Some(Message::Close(Some(close))) = receive_from(&mut socket).await else {
        panic!("not closed");
    };
    assert_eq!(close.code, CloseCode::Away);
    assert_eq!(receive_from(&mut socket).await, None);
    drop((socket, client));
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn unsupported_upgrades_over_http2_are_rejected() {
    let echo = Echo::start().await;
    let gate = gate::open(echo.url(), "").await;
    let mut one = client(&gate).await;
    assert_eq!(ask(&mut one, "connect-udp").await.status(), 405);
    let gate = gate::open(echo.url(), ", upgrades: []").await;
    let mut other = client(&gate).await;
    let refused = ask(&mut other, "websocket").await;
    assert_eq!(refused.status(), StatusCode::NOT_IMPLEMENTED);
}

/// The client would take it for a WebSocket.
#[tokio::test]
async fn an_unanswered_handshake_is_an_upstream_error() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let mut client = client(&gate).await;
    upstream.saw();
    assert_eq!(ask(&mut client, "websocket").await.status(), 502, "200");
    let head = upstream.saw().head;
    assert_eq!(head.get("upgrade"), Some("websocket"));
    assert_eq!(head.get("sec-websocket-version"), Some("13"));
    assert_eq!(head.get("sec-websocket-key").map(str::len), Some(24));
    let wrong = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: abc\r\n\r\n";
    upstream.answers(Answer::of(wrong).repeating());
    assert_eq!(ask(&mut client, "websocket").await.status(), 502);
    let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    upstream.answers(Answer::of(refused).repeating());
    assert_eq!(ask(&mut client, "websocket").await.status(), 403);
}
