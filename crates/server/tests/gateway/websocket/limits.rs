//! Limits on connections and messages.

use super::{Echo, connect, limiting, receive, talk, try_connect};
use crate::kit::{Gate, gate};
use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_before_the_upgrade() {
    let echo = Echo::start().await;
    let gate = gate::limited(echo.url(), "rate: 1/h burst 2").await;
    let mut sockets = [connect(&gate).await, connect(&gate).await];
    let Err(Error::Http(refused)) = try_connect(&gate).await else {
        panic!("not refused");
    };
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    // A connection counts as one request, for any number of messages.
    for socket in &mut sockets {
        for _ in 0..10 {
            talk(socket, "hello").await;
        }
    }
}

#[tokio::test]
async fn a_message_beyond_the_limit_closes_the_connection() {
    let echo = Echo::start().await;
    let gate = limiting(echo.url(), "rate: 1/h burst 3").await;
    let mut socket = connect(&gate).await;
    for nth in 0..3 {
        talk(&mut socket, &nth.to_string()).await;
    }
    // Control frames cost nothing.
    socket.send(Message::Ping("a".into())).await.unwrap();
    assert_eq!(receive(&mut socket).await, Some(Message::Pong("a".into())));
    socket.send(Message::text("beyond")).await.unwrap();
    let Some(Message::Close(Some(close))) = receive(&mut socket).await else {
        panic!("not closed");
    };
    assert_eq!(close.code, CloseCode::Policy);
    assert_eq!(
        close.reason.as_str(),
        "rate limit exceeded; retry after 3600 s"
    );
    assert_eq!(receive(&mut socket).await, None);
    let heard = echo.received();
    assert!(!heard.contains(&Message::text("beyond")), "{heard:?}");
    // Another connection of the same client shares the limit.
    let mut socket = connect(&gate).await;
    socket.send(Message::text("beyond")).await.unwrap();
    let closed = receive(&mut socket).await;
    assert!(
        matches!(&closed, Some(Message::Close(Some(close))) if close.code == CloseCode::Policy),
        "{closed:?}"
    );
}

#[tokio::test]
async fn pings_and_message_sizes_are_bounded_regardless_of_the_policy() {
    let echo = Echo::start().await;
    let url = echo.url();
    let messages = "{ policy: api, message_bytes: 1KiB, frames: 1/h burst 2 }";
    let route =
        format!("{{ name: all, upstreams: ['{url}'], policy: none, messages: {messages} }}");
    let gate = Gate::start(&gate::config(&route, "rate: 1000/s")).await;
    let mut socket = connect(&gate).await;
    for _ in 0..2 {
        socket.send(Message::Ping("a".into())).await.unwrap();
        assert_eq!(receive(&mut socket).await, Some(Message::Pong("a".into())));
    }
    socket.send(Message::Ping("beyond".into())).await.unwrap();
    let Some(Message::Close(Some(close))) = receive(&mut socket).await else {
        panic!("not closed");
    };
    assert_eq!(close.code, CloseCode::Policy);
    let mut socket = connect(&gate).await;
    talk(&mut socket, &"a".repeat(1024)).await;
    let large = Message::text("a".repeat(1025));
    socket.send(large.clone()).await.unwrap();
    let Some(Message::Close(Some(close))) = receive(&mut socket).await else {
        panic!("not closed");
    };
    assert_eq!(close.code, CloseCode::Size);
    let heard = echo.received();
    assert!(!heard.contains(&large), "{}", heard.len());
    assert!(!heard.contains(&Message::Ping("beyond".into())));
}

#[tokio::test]
async fn without_message_limits_a_websocket_is_unbounded() {
    let echo = Echo::start().await;
    let gate = gate::open(echo.url(), "").await;
    let mut socket = connect(&gate).await;
    talk(&mut socket, &"a".repeat(11 << 20)).await;
}
