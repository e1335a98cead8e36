//! A relay between a third-party client and server, over loopback, handshake included.

use super::super::relay_end::{RelayEnd, RelayReport};
use super::super::{Gate, MessageAdmission, relay};
use super::kit::{Allowance, IDLE, never};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tidegate_policy::route::MessageBounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

/// Bound of a test.
const PATIENCE: Duration = Duration::from_mins(1);

type Socket = WebSocketStream<TcpStream>;

/// Forwards the headers of a message, which ends with an empty line.
async fn pass_head(from: &mut TcpStream, to: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(from.read_u8().await.unwrap());
    }
    to.write_all(&head).await.unwrap();
}

/// Runs a client and a server with a relay between them.
async fn play<G: Gate>(
    gate: G,
    going_away: impl Future<Output = ()>,
    client: impl AsyncFnOnce(Socket),
    server: impl AsyncFnOnce(Socket),
) -> RelayReport {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream_address = upstream.local_addr().unwrap();
    let relay = async {
        let (mut near_client, _) = listener.accept().await.unwrap();
        let mut near_upstream = TcpStream::connect(upstream_address).await.unwrap();
        pass_head(&mut near_client, &mut near_upstream).await;
        pass_head(&mut near_upstream, &mut near_client).await;
        relay(
            near_client,
            near_upstream,
            (gate, MessageBounds::default()),
            IDLE,
            going_away,
        )
        .await
    };
    let client = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (socket, _) = client_async("ws://upstream.test/", stream).await.unwrap();
        client(socket).await;
    };
    let server = async {
        let (stream, _) = upstream.accept().await.unwrap();
        server(accept_async(stream).await.unwrap()).await;
    };
    let all = async { tokio::join!(relay, client, server).0 };
    timeout(PATIENCE, all).await.expect("all of them end")
}

/// Echoes every message, and returns the client's Close code.
async fn echo(mut socket: Socket) -> Option<CloseCode> {
    let mut code = None;
    while let Some(message) = socket.next().await {
        match message.unwrap() {
            Message::Close(close) => code = close.map(|close| close.code),
            message @ (Message::Text(_) | Message::Binary(_)) => {
                // A message after the Close frame cannot be echoed.
                if let Err(error) = socket.send(message).await {
                    assert!(matches!(
                        error,
                        Error::Protocol(_) | Error::ConnectionClosed
                    ));
                }
            }
            _ => {}
        }
    }
    code
}

/// Returns the next message that is not a pong.
async fn receive(socket: &mut Socket) -> Message {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Pong(_) => {}
            message => return message,
        }
    }
}

#[tokio::test]
async fn messages_of_every_size_are_echoed() {
    let sizes = [0, 1, 125, 126, 0xffff, 0x1_0000, 300_000];
    let client = async |mut socket: Socket| {
        for size in sizes {
            let message = Message::binary(vec![7; size]);
            socket.send(Message::Ping("ping".into())).await.unwrap();
            socket.send(message.clone()).await.unwrap();
            assert!(receive(&mut socket).await == message, "{size} bytes");
        }
        socket.close(None).await.unwrap();
        while let Some(message) = socket.next().await {
            message.unwrap();
        }
    };
    let server = async |socket| assert_eq!(echo(socket).await, None);
    let ended = play(Allowance(sizes.len()), never(), client, server).await;
    assert_eq!(ended.why, RelayEnd::Closed);
    assert_eq!(ended.messages, u64::try_from(sizes.len()).unwrap());
}

#[tokio::test]
async fn a_refused_client_reads_why_and_both_close_in_order() {
    let client = async |mut socket: Socket| {
        for _ in 0..3 {
            socket.feed(Message::text("hello")).await.unwrap();
        }
        socket.flush().await.unwrap();
        let mut close = None;
        while let Some(message) = socket.next().await {
            if let Message::Close(frame) = message.unwrap() {
                close = frame;
            }
        }
        let close = close.unwrap();
        assert_eq!(close.code, CloseCode::Policy);
        assert_eq!(
            close.reason.as_str(),
            "rate limit exceeded; retry after 3 s"
        );
    };
    let server = async |socket| assert_eq!(echo(socket).await, Some(CloseCode::Away));
    let ended = play(Allowance(2), never(), client, server).await;
    assert_eq!(ended.messages, 2);
    assert!(matches!(ended.why, RelayEnd::Refused { .. }), "{ended:?}");
}

#[tokio::test]
async fn both_sides_are_closed_when_the_relay_shuts_down() {
    let (go, gone) = tokio::sync::oneshot::channel();
    let client = async |mut socket: Socket| {
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(receive(&mut socket).await, Message::text("hello"));
        go.send(()).unwrap();
        let close = receive(&mut socket).await;
        assert!(matches!(close, Message::Close(Some(close)) if close.code == CloseCode::Away));
        assert!(socket.next().await.is_none());
    };
    let server = async |socket| assert_eq!(echo(socket).await, Some(CloseCode::Away));
    let going_away = async { gone.await.unwrap() };
    let ended = play(Always, going_away, client, server).await;
    assert_eq!(ended.why, RelayEnd::GoingAway);
}

/// A gate that admits everything.
struct Always;

impl Gate for Always {
    async fn admit(&mut self) -> MessageAdmission {
        MessageAdmission::Pass
    }
}
