//! The bounds of one client, regardless of the gate.

use super::super::relay_end::{RelayEnd, RelayReport};
use super::kit::*;
use crate::tunnel::Side;
use std::time::Duration;
use tidegate_core::Quota;
use tidegate_policy::route::MessageBounds;
use tokio::io::AsyncWriteExt;

const SECOND: u64 = 1_000_000;

fn rate(amount: u64, burst: u64) -> Option<Quota> {
    Quota::new(amount, SECOND).burst(burst).build().ok()
}

/// Sends `passed`, which the upstream is to get, then `stopped`, of which it gets nothing. The client gets a
/// Close with `code` and `reason`.
async fn stops(
    bounds: &MessageBounds,
    (passed, stopped): (Vec<u8>, Vec<u8>),
    (code, reason): (u16, &str),
) -> RelayReport {
    play_within(
        bounds,
        Allowance(100),
        never(),
        async |mut client, mut upstream| {
            let serve = async {
                expect(&mut upstream, &passed).await;
                expect(&mut upstream, &told_upstream(1001, "")).await;
                let close = frame(Side::Upstream, FIN | CLOSE, &[0x03, 0xe8]);
                upstream.write_all(&close).await.unwrap();
            };
            let ask = async {
                client
                    .write_all(&[&*passed, &*stopped].concat())
                    .await
                    .unwrap();
                expect(&mut client, &told_client(code, reason)).await;
                let close = frame(Side::Client, FIN | CLOSE, &[0x03, 0xe8]);
                client.write_all(&close).await.unwrap();
            };
            tokio::join!(serve, ask);
        },
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_is_closed_with_1008() {
    let bounds = MessageBounds {
        frames: rate(1, 3),
        ..MessageBounds::default()
    };
    let ping = frame(Side::Client, FIN | PING, b"");
    let unasked = frame(Side::Client, FIN | PONG, b"");
    // Messages are counted by the gate only.
    let passed = [&*ping, &*says("a"), &*says("b"), &*unasked, &*ping].concat();
    let ended = stops(
        &bounds,
        (passed, ping),
        (1008, "rate limit exceeded; retry after 1 s"),
    );
    let retry_after = Duration::from_secs(1);
    assert_eq!(ended.await.why, RelayEnd::TooMuch { retry_after });
}

/// Regression: the Close was swallowed, and the upstream got none.
#[tokio::test(start_paused = true)]
async fn a_close_beyond_the_bounds_still_reaches_the_upstream() {
    let bounds = MessageBounds {
        frames: rate(1, 1),
        bytes: rate(1, 6),
        ..MessageBounds::default()
    };
    let ping = frame(Side::Client, FIN | PING, b"");
    let close = frame(Side::Client, FIN | CLOSE, &[0x03, 0xe8]);
    let ended = play_within(
        &bounds,
        Allowance(0),
        never(),
        async |mut client, mut upstream| {
            let sent = [&*ping, &*close].concat();
            client.write_all(&sent).await.unwrap();
            expect(&mut upstream, &sent).await;
            let close = frame(Side::Upstream, FIN | CLOSE, &[0x03, 0xe8]);
            upstream.write_all(&close).await.unwrap();
            expect(&mut client, &close).await;
        },
    );
    assert_eq!(ended.await.why, RelayEnd::Closed);
}

#[tokio::test(start_paused = true)]
async fn continuations_count_as_frames() {
    let bounds = MessageBounds {
        frames: rate(1, 2),
        ..MessageBounds::default()
    };
    let more = frame(Side::Client, CONTINUATION, b"more");
    let begin = frame(Side::Client, TEXT, b"begin");
    let passed = [&*begin, &*more, &*more].concat();
    let reason = "rate limit exceeded; retry after 1 s";
    stops(&bounds, (passed, more), (1008, reason)).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_has_the_size_of_all_its_frames() {
    let bounds = MessageBounds {
        message_bytes: Some(1000),
        ..MessageBounds::default()
    };
    let whole = frame(Side::Client, FIN | BINARY, &[1; 1000]);
    let begin = frame(Side::Client, BINARY, &[1; 999]);
    let ping = frame(Side::Client, FIN | PING, b"not part of it");
    let last = frame(Side::Client, CONTINUATION, &[1; 1]);
    let passed = [&*whole, &*begin, &*ping, &*last].concat();
    let beyond = frame(Side::Client, FIN | CONTINUATION, &[1; 1]);
    let ended = stops(&bounds, (passed, beyond), (1009, "message too big"));
    assert_eq!(ended.await.why, RelayEnd::TooLarge);
    // Its head gives the size, before any payload.
    let beyond = frame(Side::Client, FIN | BINARY, &[1; 1001]);
    stops(&bounds, (whole, beyond), (1009, "message too big")).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_beyond_the_rate_close_with_1008_and_refill_over_time() {
    let bounds = MessageBounds {
        bytes: rate(100, 1000),
        ..MessageBounds::default()
    };
    let large = frame(Side::Client, FIN | BINARY, &[1; 900]);
    let next = frame(Side::Client, FIN | BINARY, &[1; 392]);
    let reason = "rate limit exceeded; retry after 4 s";
    stops(&bounds, (large.clone(), next.clone()), (1008, reason)).await;
    let ended = play_within(
        &bounds,
        Allowance(9),
        never(),
        async |mut client, mut upstream| {
            client.write_all(&large).await.unwrap();
            expect(&mut upstream, &large).await;
            tokio::time::advance(Duration::from_secs(4)).await;
            client.write_all(&next).await.unwrap();
            expect(&mut upstream, &next).await;
        },
    );
    assert_eq!(ended.await.why, RelayEnd::Closed);
    // Waiting does not help a frame that is larger than the burst.
    let huge = frame(Side::Client, FIN | BINARY, &[1; 1001]);
    stops(&bounds, (says("a"), huge), (1009, "message too big")).await;
}
