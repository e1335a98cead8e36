//! Data that passes unchanged.

use super::super::relay_end::RelayEnd;
use super::super::{Gate, MessageAdmission, relay};
use super::frames::{sent, written};
use super::kit::*;
use crate::tunnel::Side;
use proptest::prelude::*;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidegate_policy::route::MessageBounds;
use tokio::io::{AsyncWriteExt, duplex, split};

#[tokio::test(start_paused = true)]
async fn frames_pass_as_they_are_and_messages_are_counted_at_their_first() {
    let stream = [
        says("whole"),
        frame(Side::Client, FIN | PING, b"before"),
        frame(Side::Client, BINARY | 0x40, b"in"),
        frame(Side::Client, FIN | PING, b"within"),
        frame(Side::Client, CONTINUATION, b""),
        frame(Side::Client, FIN | PONG, b""),
        frame(Side::Client, FIN | CONTINUATION, b"parts"),
        frame(Side::Client, FIN | BINARY, &vec![1; 70_000]),
        frame(Side::Client, FIN | CLOSE, &[0x03, 0xe8]),
    ]
    .concat();
    let ended = play(Allowance(3), never(), async |mut client, mut upstream| {
        let send = async {
            client.write_all(&stream).await.unwrap();
            client.shutdown().await.unwrap();
        };
        tokio::join!(send, async {
            assert!(rest(&mut upstream).await == stream);
        });
        let closes = frame(Side::Upstream, FIN | CLOSE, &[0x03, 0xe8]);
        upstream.write_all(&closes).await.unwrap();
        drop(upstream);
        assert_eq!(rest(&mut client).await, closes);
    })
    .await;
    assert_eq!(ended.why, RelayEnd::Closed);
    assert_eq!(ended.messages, 3);
    assert_eq!(ended.to_upstream, u64::try_from(stream.len()).unwrap());
    assert_eq!(ended.to_client, 4);
}

#[tokio::test(start_paused = true)]
async fn a_finished_client_still_receives_upstream_data() {
    let ended = play(Allowance(9), never(), async |mut client, mut upstream| {
        client.write_all(&says("and that was all")).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut upstream).await, says("and that was all"));
        upstream.write_all(&answers("good")).await.unwrap();
        expect(&mut client, &answers("good")).await;
        upstream.shutdown().await.unwrap();
        assert!(rest(&mut client).await.is_empty());
    })
    .await;
    assert_eq!(ended.why, RelayEnd::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_finished_upstream_still_receives_client_data() {
    let ended = play(Allowance(9), never(), async |mut client, mut upstream| {
        upstream.shutdown().await.unwrap();
        assert!(rest(&mut client).await.is_empty());
        client.write_all(&says("still here")).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut upstream).await, says("still here"));
    })
    .await;
    assert_eq!((ended.why, ended.messages), (RelayEnd::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn the_last_bytes_of_a_disconnected_upstream_arrive() {
    let ended = play(Allowance(9), never(), async |mut client, mut upstream| {
        let last = frame(Side::Upstream, FIN | CLOSE, &[0x03, 0xf1]);
        upstream.write_all(&last).await.unwrap();
        drop(upstream);
        client.write_all(&says("hello")).await.unwrap();
        assert_eq!(rest(&mut client).await, last);
    })
    .await;
    let kind = ErrorKind::BrokenPipe;
    let side = Side::Upstream;
    assert_eq!(ended.why, RelayEnd::Broke { side, kind });
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_messages_does_not_starve_the_upstream() {
    const FLOOD: usize = 10_000;
    let asked = AtomicUsize::new(0);
    let flood = says("").repeat(FLOOD);
    let (mut client, near_client) = duplex(flood.len());
    let (mut upstream, near_upstream) = duplex(flood.len());
    client.write_all(&flood).await.unwrap();
    let play = async {
        expect(&mut upstream, &says("")).await;
        upstream.write_all(&answers("stop!")).await.unwrap();
        expect(&mut client, &answers("stop!")).await;
        assert!(asked.load(Relaxed) < FLOOD, "all of it went first");
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut upstream).await, says("").repeat(FLOOD - 1));
        drop(upstream);
    };
    let gate = CountingGate(&asked);
    let relay = relay(
        near_client,
        near_upstream,
        (gate, MessageBounds::default()),
        IDLE,
        never(),
    );
    let (ended, ()) = tokio::join!(relay, play);
    assert_eq!((ended.why, asked.load(Relaxed)), (RelayEnd::Closed, FLOOD));
}

/// A gate that admits and counts everything.
struct CountingGate<'a>(&'a AtomicUsize);

impl Gate for CountingGate<'_> {
    async fn admit(&mut self) -> MessageAdmission {
        self.0.fetch_add(1, Relaxed);
        MessageAdmission::Pass
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_valid_stream_arrives(
        up in sent(), down in sent(), room in 1..5000_usize, pieces in 1..5000_usize,
    ) {
        let says = written(Side::Client, &up).concat();
        let answers = written(Side::Upstream, &down).concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let (ended, heard, answered) = runtime.unwrap().block_on(async {
            let (client, near_client) = duplex(room);
            let (upstream, near_upstream) = duplex(room);
            let relay = relay(near_client, near_upstream, (Allowance(up.len()), MessageBounds::default()), IDLE, never());
            let (ended, answered, heard) = tokio::join!(
                relay,
                exchange(client, &says, pieces),
                exchange(upstream, &answers, pieces),
            );
            (ended, heard, answered)
        });
        prop_assert_eq!(ended.why, RelayEnd::Closed);
        prop_assert_eq!(ended.messages, u64::try_from(up.len()).unwrap());
        prop_assert!(heard == says);
        prop_assert!(answered == answers);
    }
}

/// Sends `bytes` in pieces, and returns the received bytes.
async fn exchange(stream: tokio::io::DuplexStream, bytes: &[u8], pieces: usize) -> Vec<u8> {
    let (mut reader, mut writer) = split(stream);
    let send = async {
        for piece in bytes.chunks(pieces) {
            writer.write_all(piece).await.unwrap();
        }
        writer.shutdown().await.unwrap();
    };
    let mut came = Vec::new();
    let receive = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut came);
    tokio::join!(send, receive).1.unwrap();
    came
}
