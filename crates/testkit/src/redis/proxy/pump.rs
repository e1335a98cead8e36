//! One direction of a connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{OrderWatch, ProxyCounters, ProxyFaults};

/// Pieces on the way at once; a sender that is further ahead waits.
const ON_THE_WAY_MAX: usize = 4096;
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// The faults of one direction, and its count of bytes.
pub(super) struct Direction<'a> {
    orders: OrderWatch,
    passed: &'a AtomicU64,
    select: fn(&ProxyFaults) -> DirectionFaults,
}

/// The faults of one direction.
struct DirectionFaults {
    delay: Duration,
    swallow: bool,
    cut_after: Option<usize>,
}

impl<'a> Direction<'a> {
    pub(super) fn requests(orders: OrderWatch, counters: &'a ProxyCounters) -> Self {
        Self {
            orders,
            passed: &counters.request_bytes,
            select: |faults| DirectionFaults {
                delay: faults.delay_requests,
                swallow: faults.swallow_requests,
                cut_after: faults.cut_requests_after,
            },
        }
    }

    pub(super) fn replies(orders: OrderWatch, counters: &'a ProxyCounters) -> Self {
        Self {
            orders,
            passed: &counters.reply_bytes,
            select: |faults| DirectionFaults {
                delay: faults.delay_replies,
                swallow: faults.swallow_replies,
                cut_after: faults.cut_replies_after,
            },
        }
    }
}

/// Bytes and when they are to arrive.
type DelayedBytes = (Instant, Vec<u8>);

/// Passes bytes on. An error means that the connection is to be reset.
pub(super) async fn run(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    direction: Direction<'_>,
) -> io::Result<()> {
    let (send, receive) = mpsc::channel(ON_THE_WAY_MAX);
    let passed = direction.passed;
    tokio::try_join!(read(from, send, direction), write(to, receive, passed))?;
    Ok(())
}

async fn read(
    mut from: ReadHalf<'_>,
    send: mpsc::Sender<DelayedBytes>,
    mut direction: Direction<'_>,
) -> io::Result<()> {
    let mut here = (direction.select)(&direction.orders.faults());
    let mut buffer = vec![0; PIECE_BYTES_MAX];
    loop {
        let count = tokio::select! {
            // Orders first: bytes read after a change are treated by the new orders.
            biased;
            changed = direction.orders.changed() => {
                here = (direction.select)(&changed.ok_or_else(cut)?);
                continue;
            }
            count = from.read(&mut buffer) => count?,
        };
        if count == 0 {
            return Ok(());
        }
        if here.swallow {
            continue;
        }
        let left = here.cut_after.unwrap_or(usize::MAX);
        let piece = buffer.get(..count.min(left)).unwrap_or_default().to_vec();
        // A writer that has gone reports its own error.
        drop(send.send((Instant::now() + here.delay, piece)).await);
        if count >= left {
            // Bytes already passed arrive first: the writer ends with the cut.
            drop(send.send((Instant::now() + here.delay, Vec::new())).await);
        }
        here.cut_after = here.cut_after.map(|left| left.saturating_sub(count));
    }
}

/// Writes each piece when it is due; an empty one cuts the connection.
async fn write(
    mut to: WriteHalf<'_>,
    mut receive: mpsc::Receiver<DelayedBytes>,
    passed: &AtomicU64,
) -> io::Result<()> {
    while let Some((due, piece)) = receive.recv().await {
        // Even a wait for a time that is past takes up to a millisecond.
        if due > Instant::now() {
            tokio::time::sleep_until(due).await;
        }
        if piece.is_empty() {
            return Err(cut());
        }
        let count = u64::try_from(piece.len()).expect("a piece is small");
        // Count first, so that a test that has received the bytes finds them counted.
        passed.fetch_add(count, Ordering::SeqCst);
        to.write_all(&piece).await?;
    }
    to.shutdown().await
}

fn cut() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}
