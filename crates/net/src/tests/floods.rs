//! Floods of HTTP/2 control frames, and clients that only resemble one.

use super::kit::{IDLE, SocketlessServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, split};
use tokio::time::timeout;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
pub(super) const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

pub(super) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Returns the preface, and a request for `path`.
fn begin(path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).unwrap();
    // GET, http, a literal path, and an authority.
    let head = [
        &[0x82, 0x86, 0x04, length],
        path.as_bytes(),
        &[0x41, 1, b'a'],
    ]
    .concat();
    [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[]),
        &frame(HEADERS, 0x5, 1, &head),
    ]
    .concat()
}

/// Reads the next frame: its kind, flags and payload.
pub(super) async fn next(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<(u8, u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head[3], head[4], payload))
}

/// Sends `one` repeatedly until the connection closes, and returns the last frame received.
async fn flood(client: DuplexStream, one: Vec<u8>) -> (u8, u8, Vec<u8>) {
    let (mut read, mut write) = split(client);
    let many = one.repeat(100);
    let sending = async { while write.write_all(&many).await.is_ok() {} };
    let receiving = async {
        let mut last = None;
        while let Some(frame) = next(&mut read).await {
            last = Some(frame);
        }
        last.unwrap()
    };
    let both = async { tokio::join!(sending, receiving).1 };
    timeout(IDLE, both).await.expect("it is cut")
}

#[tokio::test(start_paused = true)]
async fn floods_of_control_frames_are_cut() {
    for (name, one) in [
        ("priority", frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 15])),
        ("window", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("unknown", frame(200, 0, 0, &[])),
        // The server replies to each of these: the reason is sent only if the client reads fast enough.
        ("ping", frame(PING, 0, 0, &[0; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[])),
    ] {
        let house = SocketlessServer::new();
        let mut client = house.connect();
        client.write_all(&begin("/never")).await.unwrap();
        let is_answered = [PING, SETTINGS].contains(&one[3]);
        let (kind, _, payload) = flood(client, one).await;
        if !is_answered {
            assert_eq!(kind, GOAWAY, "{name}");
            // The request was seen, and the reason is ENHANCE_YOUR_CALM.
            assert_eq!(payload, [0, 0, 0, 1, 0, 0, 0, 11], "{name}");
        }
        house.finished().await;
        assert_eq!(house.floods(), 1, "{name}");
    }
}

/// Two window updates for each half kilobyte: more than any known client sends.
#[tokio::test(start_paused = true)]
async fn a_download_over_many_small_window_updates_is_not_cut() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client.write_all(&begin("/endless")).await.unwrap();
    let (mut read, mut write) = split(client);
    let mut updates = 0;
    let mut got = 0;
    while got < 4 << 20 {
        let (kind, _, payload) = next(&mut read).await.expect("it was cut");
        if kind != DATA {
            continue;
        }
        got += payload.len();
        for piece in payload.chunks(512) {
            let step = u32::try_from(piece.len()).unwrap().to_be_bytes();
            for stream in [0, 1] {
                let update = frame(WINDOW_UPDATE, 0, stream, &step);
                write.write_all(&update).await.unwrap();
                updates += 1;
            }
        }
    }
    assert!(updates > 16_000, "{updates}");
    assert_eq!(house.floods(), 0);
}

/// gRPC clients ping for hours over connections on which nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_client_that_pings_now_and_then_is_not_cut() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client.write_all(&begin("/never")).await.unwrap();
    for _ in 0..10_000 {
        client.write_all(&frame(PING, 0, 0, &[0; 8])).await.unwrap();
        loop {
            match next(&mut client).await.expect("it was cut") {
                (PING, 1, _) => break,
                (PING, _, asked) => {
                    let answer = frame(PING, 1, 0, &asked);
                    client.write_all(&answer).await.unwrap();
                }
                _ => {}
            }
        }
        tokio::time::advance(IDLE / 7_500).await;
    }
    assert_eq!((house.floods(), house.tasks.count()), (0, 1));
}
