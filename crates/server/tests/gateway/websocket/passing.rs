//! Messages in both directions, until one side closes.

use super::{Echo, closing, connect, limiting, receive, talk};
use crate::kit::gate;
use futures_util::SinkExt;
use tidegate_server::program::ServeEnd;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

#[tokio::test]
async fn messages_of_every_size_and_kind_are_echoed() {
    let echo = Echo::start().await;
    for gate in [
        gate::open(echo.url(), "").await,
        limiting(echo.url(), "rate: 1000000/s").await,
    ] {
        let mut socket = connect(&gate).await;
        for size in [0, 1, 125, 126, 0xffff, 0x1_0000, 5 << 20] {
            let text = Message::text("a".repeat(size));
            socket.send(text.clone()).await.unwrap();
            assert!(receive(&mut socket).await == Some(text), "{size} letters");
            let bytes = Message::binary(vec![0xff; size]);
            socket.send(bytes.clone()).await.unwrap();
            assert!(receive(&mut socket).await == Some(bytes), "{size} bytes");
        }
    }
}

#[tokio::test]
async fn a_message_in_many_pieces_with_pings_between_arrives_whole() {
    let echo = Echo::start().await;
    let gate = limiting(echo.url(), "rate: 1/h burst 1").await;
    let mut socket = connect(&gate).await;
    for nth in 0..20 {
        let kind = if nth == 0 {
            Data::Binary
        } else {
            Data::Continue
        };
        let piece = Frame::message(vec![nth; 100_000], OpCode::Data(kind), nth == 19);
        socket.send(Message::Frame(piece)).await.unwrap();
        socket.send(Message::Ping(vec![nth].into())).await.unwrap();
    }
    let mut pongs = 0;
    let whole = loop {
        match receive(&mut socket).await.unwrap() {
            Message::Pong(_) => pongs += 1,
            message => break message,
        }
    };
    let expected: Vec<u8> = (0..20).flat_map(|nth| vec![nth; 100_000]).collect();
    assert!(whole == Message::binary(expected));
    // A later pong replies to all earlier pings.
    assert!(pongs > 0);
}

#[tokio::test]
async fn pings_are_answered_by_the_peer() {
    let echo = Echo::start().await;
    let gate = gate::open(echo.url(), "").await;
    let mut socket = connect(&gate).await;
    socket.send(Message::Ping("there?".into())).await.unwrap();
    assert_eq!(
        receive(&mut socket).await,
        Some(Message::Pong("there?".into()))
    );
    assert_eq!(echo.received(), [Message::Ping("there?".into())]);
}

#[tokio::test]
async fn the_close_reason_of_one_side_reaches_the_other() {
    let echo = Echo::start().await;
    for gate in [
        gate::open(echo.url(), "").await,
        limiting(echo.url(), "rate: 1000000/s").await,
    ] {
        let mut socket = connect(&gate).await;
        let close = closing(CloseCode::Library(4001), "enough");
        socket.close(Some(close.clone())).await.unwrap();
        let answered = Message::Close(Some(close.clone()));
        assert_eq!(receive(&mut socket).await, Some(answered.clone()));
        assert_eq!(receive(&mut socket).await, None);
        assert_eq!(echo.received(), [answered]);

        let mut socket = connect(&gate).await;
        socket.send(Message::text("go away")).await.unwrap();
        let told = closing(CloseCode::Library(4002), "as you wish");
        assert_eq!(receive(&mut socket).await, Some(Message::Close(Some(told))));
        assert_eq!(receive(&mut socket).await, None);
        echo.received();
    }
}

#[tokio::test]
async fn draining_sends_close_frames_to_both_sides() {
    for is_limited in [false, true] {
        let echo = Echo::start().await;
        let gate = if is_limited {
            limiting(echo.url(), "rate: 1000000/s").await
        } else {
            gate::open(echo.url(), "").await
        };
        let mut socket = connect(&gate).await;
        talk(&mut socket, "hello").await;
        let stopping = gate.stop();
        let told = receive(&mut socket).await;
        assert!(
            matches!(&told, Some(Message::Close(Some(close))) if close.code == CloseCode::Away),
            "{told:?}"
        );
        assert_eq!(receive(&mut socket).await, None);
        assert_eq!(stopping.ended().await, ServeEnd::Drained);
        let heard = echo.received();
        let last = heard.last();
        assert!(
            matches!(last, Some(Message::Close(Some(close))) if close.code == CloseCode::Away),
            "{heard:?}"
        );
    }
}

#[tokio::test]
async fn a_lost_side_closes_the_other_one() {
    let echo = Echo::start().await;
    let gate = gate::open(echo.url(), "").await;
    let mut socket = connect(&gate).await;
    talk(&mut socket, "hello").await;
    drop(socket);
    // No request is pending.
    assert_eq!(gate.stop().ended().await, ServeEnd::Drained);
}
