//! Tunnels over pipes in memory with paused time, so that nothing waits; over loopback if a connection has to
//! be reset.

use super::pipe::{Pipe, ROOM};
use super::{Side, TunnelEnd, TunnelReport, tunnel};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// The data that fits into a tunnel whose client takes nothing: at either end, and between.
const LAST_WORDS: [u8; 3 << 10] = [7; 3 << 10];

const IDLE: Duration = Duration::from_mins(1);

/// Runs `play` with the far ends of a tunnel, the client's and the upstream's.
async fn play(play: impl AsyncFnOnce(DuplexStream, DuplexStream)) -> TunnelReport {
    let (client, near_client) = duplex(1 << 10);
    let (upstream, near_upstream) = duplex(1 << 10);
    let tunnel = tunnel(near_client, near_upstream, IDLE);
    tokio::join!(tunnel, play(client, upstream)).0
}

async fn rest(stream: &mut DuplexStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test(start_paused = true)]
async fn bytes_flow_both_ways_and_sides_finish_independently() {
    let large: Vec<u8> = (0..=250).cycle().take(200_000).collect();
    let ended = play(async |mut client, mut upstream| {
        let ask = async {
            client.write_all(&large).await.unwrap();
            client.shutdown().await.unwrap();
        };
        tokio::join!(ask, async {
            assert!(rest(&mut upstream).await == large);
        });
        upstream.write_all(b"all of it came").await.unwrap();
        upstream.shutdown().await.unwrap();
        assert_eq!(rest(&mut client).await, b"all of it came");
    })
    .await;
    assert_eq!(
        ended,
        TunnelReport {
            to_upstream: 200_000,
            to_client: 14,
            why: TunnelEnd::Closed
        }
    );
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_finishes_first_still_receives_client_data() {
    let ended = play(async |mut client, mut upstream| {
        upstream.shutdown().await.unwrap();
        assert!(rest(&mut client).await.is_empty());
        client.write_all(b"still here").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut upstream).await, b"still here");
    })
    .await;
    assert_eq!(ended.why, TunnelEnd::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_side_that_does_not_read_applies_backpressure() {
    let ended = play(async |mut client, _upstream| {
        let mut written = 0;
        let write = async {
            loop {
                written += client.write(&[0; 100]).await.unwrap();
            }
        };
        assert!(timeout(IDLE / 2, write).await.is_err());
        // The tunnel's buffer, and the data in transit at either end.
        assert!(written <= ROOM + (2 << 10), "{written} bytes were taken");
        client.read_u8().await.unwrap_err();
    })
    .await;
    assert_eq!(ended.why, TunnelEnd::Idle);
}

#[tokio::test(start_paused = true)]
async fn an_idle_tunnel_times_out() {
    let ended = play(async |mut client, mut upstream| {
        for _ in 0..5 {
            client.write_u8(1).await.unwrap();
            assert_eq!(upstream.read_u8().await.unwrap(), 1);
            assert!(timeout(IDLE / 2, client.read_u8()).await.is_err());
            upstream.write_u8(2).await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), 2);
            assert!(timeout(IDLE / 2, client.read_u8()).await.is_err());
        }
        let begin = Instant::now();
        assert!(rest(&mut client).await.is_empty());
        assert!(rest(&mut upstream).await.is_empty());
        assert!(begin.elapsed() <= IDLE, "it took {:?}", begin.elapsed());
    })
    .await;
    assert_eq!((ended.to_upstream, ended.to_client), (5, 5));
    assert_eq!(ended.why, TunnelEnd::Idle);
}

#[tokio::test(start_paused = true)]
async fn no_idle_time_is_too_long() {
    let (client, near_client) = duplex(64);
    let (upstream, near_upstream) = duplex(64);
    drop((client, upstream));
    let ended = tunnel(near_client, near_upstream, Duration::MAX).await;
    assert_eq!(ended.why, TunnelEnd::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_last_bytes_of_a_disconnected_upstream_arrive() {
    let ended = play(async |mut client, mut upstream| {
        // Enough that some of it is not yet read when the upstream disconnects.
        upstream.write_all(&LAST_WORDS).await.unwrap();
        drop(upstream);
        client.write_all(b"very much").await.unwrap();
        assert_eq!(rest(&mut client).await, LAST_WORDS);
    })
    .await;
    let side = Side::Upstream;
    let kind = ErrorKind::BrokenPipe;
    assert_eq!(ended.why, TunnelEnd::Broke { side, kind });
    assert_eq!((ended.to_upstream, ended.to_client), (0, 3 << 10));
}

#[tokio::test(start_paused = true)]
async fn unread_last_bytes_get_only_a_short_timeout() {
    let (mut client, near_client) = duplex(1 << 10);
    let (mut upstream, near_upstream) = duplex(1 << 10);
    let play = async {
        upstream.write_all(&LAST_WORDS).await.unwrap();
        drop(upstream);
        client.write_all(b"very much").await.unwrap();
    };
    let tunnel = timeout(IDLE / 10, tunnel(near_client, near_upstream, IDLE));
    let (ended, ()) = tokio::join!(tunnel, play);
    let side = Side::Upstream;
    let kind = ErrorKind::BrokenPipe;
    assert_eq!(ended.unwrap().why, TunnelEnd::Broke { side, kind });
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_client_is_not_awaited() {
    let begin = Instant::now();
    let ended = play(async |client, mut upstream| {
        drop(client);
        upstream.write_all(b"anybody there?").await.unwrap();
        assert!(rest(&mut upstream).await.is_empty());
    })
    .await;
    let side = Side::Client;
    let kind = ErrorKind::BrokenPipe;
    assert_eq!(ended.why, TunnelEnd::Broke { side, kind });
    assert!(begin.elapsed() < IDLE / 5);
}

#[tokio::test]
async fn bytes_sent_before_a_reset_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let accepted = timeout(IDLE, listener.accept()).await;
    let (near_client, _) = accepted.expect("a connection").unwrap();
    let (mut upstream, near_upstream) = duplex(64);
    let play = async {
        client.write_all(b"farewell").await.unwrap();
        let mut heard = [0; 8];
        upstream.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"farewell");
        client.set_zero_linger().unwrap();
        drop(client);
        assert!(rest(&mut upstream).await.is_empty());
    };
    let (ended, ()) = tokio::join!(tunnel(near_client, near_upstream, IDLE), play);
    let side = Side::Client;
    let kind = ErrorKind::ConnectionReset;
    assert_eq!(ended.why, TunnelEnd::Broke { side, kind });
    assert_eq!(ended.to_upstream, 8);
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_is_dropped_closes_both() {
    let (mut client, near_client) = duplex(64);
    let (mut upstream, near_upstream) = duplex(64);
    client.write_all(b"hello").await.unwrap();
    let tunnel = tunnel(near_client, near_upstream, IDLE);
    assert!(timeout(IDLE / 2, tunnel).await.is_err());
    assert_eq!(rest(&mut upstream).await, b"hello");
    assert!(rest(&mut client).await.is_empty());
}

#[tokio::test]
async fn a_pipe_that_is_silent_holds_no_memory() {
    let (mut speaker, mut near_speaker) = duplex(64);
    let (mut hearer, mut near_hearer) = duplex(64);
    let mut pipe = Pipe::default();
    for _ in 0..3 {
        speaker.write_all(b"word").await.unwrap();
        poll_fn(|context| {
            pipe.poll_copy(context, &mut near_speaker, &mut near_hearer);
            Poll::Ready(())
        })
        .await;
        assert_eq!(
            hearer.read_u32().await.unwrap(),
            u32::from_be_bytes(*b"word")
        );
        assert_eq!(pipe.room_taken(), 0);
    }
}
