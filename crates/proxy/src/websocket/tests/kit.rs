//! Frames to send, test gates, and a relay between two pipes.

use super::super::relay_end::RelayReport;
use super::super::{Gate, MessageAdmission, relay};
use crate::tunnel::Side;
use std::time::Duration;
use tidegate_policy::route::MessageBounds;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::sync::oneshot;

pub(super) const FIN: u8 = 0x80;
pub(super) const CONTINUATION: u8 = 0x0;
pub(super) const TEXT: u8 = 0x1;
pub(super) const BINARY: u8 = 0x2;
pub(super) const CLOSE: u8 = 0x8;
pub(super) const PING: u8 = 0x9;
pub(super) const PONG: u8 = 0xA;

pub(super) const IDLE: Duration = Duration::from_mins(1);

/// Encodes a frame of `side` with this first byte.
pub(super) fn frame(side: Side, first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = if side == Side::Client { 0x80 } else { 0 };
    let length = payload.len();
    let mut frame = vec![first];
    match length {
        0..126 => frame.push(mask | u8::try_from(length).unwrap()),
        126..0x1_0000 => {
            frame.push(mask | 0x7e);
            frame.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            frame.push(mask | 0x7f);
            frame.extend(u64::try_from(length).unwrap().to_be_bytes());
        }
    }
    let key: &[u8] = if mask == 0 { &[0] } else { b"key!" };
    if mask != 0 {
        frame.extend(key);
    }
    let masked = payload.iter().zip(key.iter().cycle()).map(|(a, b)| a ^ b);
    frame.extend(masked);
    frame
}

/// Encodes a whole text message of the client.
pub(super) fn says(text: &str) -> Vec<u8> {
    frame(Side::Client, FIN | TEXT, text.as_bytes())
}

/// Encodes a whole text message of the upstream.
pub(super) fn answers(text: &str) -> Vec<u8> {
    frame(Side::Upstream, FIN | TEXT, text.as_bytes())
}

/// Returns the Close frame that the client is to get.
pub(super) fn told_client(code: u16, reason: &str) -> Vec<u8> {
    let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
    frame(Side::Upstream, FIN | CLOSE, &payload)
}

/// Returns the Close frame that the upstream is to get.
pub(super) fn told_upstream(code: u16, reason: &str) -> Vec<u8> {
    let length = 2 + u8::try_from(reason.len()).unwrap();
    let head = [FIN | CLOSE, 0x80 | length, 0, 0, 0, 0];
    [&head[..], &code.to_be_bytes(), reason.as_bytes()].concat()
}

/// Reads the next bytes and asserts that they are `expected`.
pub(super) async fn expect(stream: &mut DuplexStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).await.unwrap();
    assert!(bytes == expected, "{bytes:02x?} is not {expected:02x?}");
}

/// Reads everything up to the end.
pub(super) async fn rest(stream: &mut DuplexStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// A gate that admits this many messages.
#[derive(Debug)]
pub(super) struct Allowance(pub(super) usize);

impl Gate for Allowance {
    async fn admit(&mut self) -> MessageAdmission {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                MessageAdmission::Pass
            }
            None => MessageAdmission::Refuse {
                retry_after: Some(Duration::from_millis(2500)),
            },
        }
    }
}

/// A gate that decides as prepared, and never decides on further messages.
#[derive(Debug)]
pub(super) struct ScriptedGate(pub(super) Vec<oneshot::Receiver<MessageAdmission>>);

impl Gate for ScriptedGate {
    async fn admit(&mut self) -> MessageAdmission {
        match self.0.pop() {
            Some(told) => told.await.unwrap(),
            None => std::future::pending().await,
        }
    }
}

/// A gate that takes its time.
#[derive(Debug)]
pub(super) struct SlowGate(pub(super) Duration);

impl Gate for SlowGate {
    async fn admit(&mut self) -> MessageAdmission {
        tokio::time::sleep(self.0).await;
        MessageAdmission::Pass
    }
}

/// Runs `play` with the far ends of a relay, the client's and the upstream's.
pub(super) async fn play<G, P>(
    gate: G,
    going_away: impl Future<Output = ()>,
    play: P,
) -> RelayReport
where
    G: Gate,
    P: AsyncFnOnce(DuplexStream, DuplexStream),
{
    play_within(&MessageBounds::default(), gate, going_away, play).await
}

/// Does the same with bounds.
pub(super) async fn play_within<G, P>(
    bounds: &MessageBounds,
    gate: G,
    going_away: impl Future<Output = ()>,
    play: P,
) -> RelayReport
where
    G: Gate,
    P: AsyncFnOnce(DuplexStream, DuplexStream),
{
    let (client, near_client) = duplex(1 << 10);
    let (upstream, near_upstream) = duplex(1 << 10);
    let relay = relay(
        near_client,
        near_upstream,
        (gate, *bounds),
        IDLE,
        going_away,
    );
    tokio::join!(relay, play(client, upstream)).0
}

/// Returns a future for a relay that is never to end.
pub(super) fn never() -> impl Future<Output = ()> {
    std::future::pending()
}
