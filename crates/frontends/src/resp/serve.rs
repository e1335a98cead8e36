//! Reads, executes, writes: one write for all the commands of one read.
//!
//! One task serves one connection. It parses all commands of a read before it writes, so that a
//! pipeline of thousands costs few system calls. Commands that need the store wait together, and their
//! replies keep the order of the commands. A client that stops in the middle of a command has a
//! deadline from its first byte.

use super::RespFrontend;
use super::conversation::{NextAction, RespConversation};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::ready;
use std::time::Duration;
use tidegate::Store;
use tidegate_net::bounds::Bounds;
use tidegate_net::connection_handler::{AcceptedConnection, ByteStream, ConnectionGuard};
use tidegate_net::idle_clock::Pulse;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::debug;

/// The number of checks within the idle time before a connection is closed as idle.
const LOOKS: u32 = 5;

/// The maximum time and amount that a client may still send after the connection was shut down.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RespEnd {
    /// The client has disconnected, or is not reading.
    Gone,
    /// The server ends it, and the client may be sending.
    Closed,
}

/// The reason to stop waiting for a client.
#[derive(Clone, Copy, Debug)]
enum RespCloseReason {
    Idle,
    Closing,
    /// There are too many connections, and this one was idle.
    Evicted,
}

/// Serves a connection until it ends, is idle for too long, or the listener closes.
pub(super) async fn serve<S: Store + 'static, I: ByteStream, O: ConnectionGuard>(
    frontend: Arc<RespFrontend<S>>,
    stream: I,
    arrival: AcceptedConnection<O>,
) {
    let AcceptedConnection {
        peer,
        mut phase,
        pulse,
        open,
        ..
    } = arrival;
    let bounds = frontend.threshold.bounds;
    let closes_in = frontend.threshold.closes_in;
    let beats = AtomicU64::new(0);
    // Polled only when one of them is ready, and not with every read.
    let calls = FuturesUnordered::from_iter([async {
        tokio::select! {
            biased;
            () = idle(&beats, bounds.resp_idle_time) => RespCloseReason::Idle,
            () = phase.reaches(closes_in) => RespCloseReason::Closing,
            () = pulse.evicted() => RespCloseReason::Evicted,
        }
    }]);
    let mut line = RespConnection {
        stream,
        talk: RespConversation::new(frontend, peer),
        bounds,
        calls: pin!(calls),
        beats: &beats,
        pulse: &pulse,
        patience: None,
        farewell: None,
    };
    let end = line.speak().await;
    line.talk.sent();
    if end == RespEnd::Closed {
        linger(&mut line.stream).await;
    }
    drop(line);
    drop(open);
}

/// A connection, with everything that its end depends on.
struct RespConnection<'a, S, I, C> {
    stream: I,
    talk: RespConversation<S>,
    bounds: Bounds,
    calls: Pin<&'a mut C>,
    /// The number of reads so far.
    beats: &'a AtomicU64,
    pulse: &'a Pulse,
    /// The number of the incomplete command, and the deadline for the rest of it.
    patience: Option<(u64, Instant)>,
    /// Once the listener closes: the deadline until which commands in transit are answered.
    farewell: Option<Instant>,
}

impl<S, I, C> RespConnection<'_, S, I, C>
where
    S: Store,
    I: ByteStream,
    C: futures_util::Stream<Item = RespCloseReason>,
{
    async fn speak(&mut self) -> RespEnd {
        loop {
            let mut turn = self.talk.turn();
            if turn == NextAction::Pause {
                tokio::task::consume_budget().await;
                continue;
            }
            if !self.talk.host.batch.is_empty() {
                let _answering = self.pulse.answering();
                match self.settle().await {
                    // There may be a complete command now.
                    Ok(true) if turn == NextAction::Read => turn = NextAction::Write,
                    Ok(_) => {}
                    Err(end) => return end,
                }
            }
            if let Err(error) = self.write().await {
                debug!(event = "connection_failed", %error, "connection failed");
                return RespEnd::Gone;
            }
            self.talk.sent();
            match turn {
                NextAction::Close => return RespEnd::Closed,
                NextAction::Read => match self.read().await {
                    Ok(0) => return RespEnd::Gone,
                    Ok(_) => {}
                    Err(end) => return end,
                },
                NextAction::Write | NextAction::Pause => {}
            }
        }
    }

    /// Reads the next input. 0 bytes are the end.
    async fn read(&mut self) -> Result<usize, RespEnd> {
        let partial = self.talk.intake.partial();
        self.patience = partial.map(|now| match self.patience {
            // The deadline counts from the first byte: a client gains no time by sending a byte now and
            // then.
            Some((before, until)) if before == now => (now, until),
            _ => (now, Instant::now() + self.bounds.body_time),
        });
        loop {
            let patience = self.patience.map(|(_, until)| until);
            let until = patience.into_iter().chain(self.farewell).min();
            let room = self.talk.intake.room(self.talk.bytes_max);
            tokio::select! {
                biased;
                read = self.stream.read_buf(room) => {
                    self.beats.store(self.beats.load(Relaxed).wrapping_add(1), Relaxed);
                    self.pulse.begin(false);
                    return read.map_err(|error| broken(&error));
                }
                () = reached(until) => {
                    if self.farewell.is_none() {
                        debug!(event = "connection_closed_mid_command", "connection closed in the middle of a command");
                    }
                    return Err(RespEnd::Closed);
                }
                call = self.calls.next(), if self.farewell.is_none() => match call {
                    // A client may have sent a command that is still in transit. It is answered; the
                    // protocol has no way to announce the last reply.
                    Some(RespCloseReason::Closing) => {
                        self.farewell = Some(Instant::now() + self.bounds.farewell_time);
                    }
                    Some(RespCloseReason::Idle | RespCloseReason::Evicted) | None => {
                        debug!(event = "connection_closed_idle", "idle connection closed");
                        return Err(RespEnd::Gone);
                    }
                },
            }
        }
    }

    /// Waits for the commands that depend on the store or on a limit. Keeps reading meanwhile, to notice
    /// when the client disconnects: then the waiting commands release their places. Returns true if
    /// anything was read.
    async fn settle(&mut self) -> Result<bool, RespEnd> {
        let RespConversation {
            intake,
            host,
            bytes_max,
            ..
        } = &mut self.talk;
        let mut settling = pin!(host.settle());
        let mut has_read = false;
        while intake.has_room(*bytes_max) {
            tokio::select! {
                biased;
                () = &mut settling => return Ok(has_read),
                read = self.stream.read_buf(intake.room(*bytes_max)) => match read {
                    Ok(0) => {
                        // The client may have closed only its sending side, and still read.
                        let time_max = self.bounds.farewell_time;
                        let settled = timeout(time_max, settling).await;
                        return settled.map(|()| has_read).map_err(|_| RespEnd::Gone);
                    }
                    Ok(_) => has_read = true,
                    Err(error) => return Err(broken(&error)),
                },
            }
        }
        settling.await;
        Ok(has_read)
    }

    /// Sends all replies. A client that does not accept them in time counts as disconnected.
    async fn write(&mut self) -> io::Result<()> {
        let mut rest = self.talk.host.replies.as_bytes();
        if rest.is_empty() {
            return Ok(());
        }
        let mut stream = Pin::new(&mut self.stream);
        let mut writing = poll_fn(|context| {
            while !rest.is_empty() {
                let written = ready!(stream.as_mut().poll_write(context, rest))?;
                if written == 0 {
                    return io::Result::Err(io::ErrorKind::WriteZero.into()).into();
                }
                rest = rest.get(written..).unwrap_or_default();
            }
            stream.as_mut().poll_flush(context)
        });
        // Nearly always the system accepts it immediately, and no timer is needed.
        if let Some(written) = (&mut writing).now_or_never() {
            return written;
        }
        let _answering = self.pulse.answering();
        match timeout(self.bounds.idle_time, writing).await {
            Ok(written) => written,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Waits until that time. Without one it waits forever, and needs no timer.
async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

/// Waits until nothing was read for `time_max`, or up to a fifth longer. Checks at intervals, so that a
/// read costs no timer.
async fn idle(beats: &AtomicU64, time_max: Duration) {
    let mut seen = beats.load(Relaxed);
    let mut looks = 0;
    while looks < LOOKS {
        sleep(time_max / LOOKS).await;
        let now = beats.load(Relaxed);
        looks = if now == seen { looks + 1 } else { 0 };
        seen = now;
    }
}

/// Shuts down the sending side, and discards further input for a while: closing a socket with unread
/// input may lose the last reply.
async fn linger<I: ByteStream>(stream: &mut I) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut space = [0; 4 << 10];
    let mut thrown_away = 0_usize;
    let until = Instant::now() + LINGER_TIME;
    while thrown_away < LINGER_BYTES {
        tokio::select! {
            read = stream.read(&mut space) => match read {
                Ok(0) | Err(_) => return,
                Ok(read) => thrown_away = thrown_away.saturating_add(read),
            },
            () = sleep_until(until) => return,
        }
    }
}

/// Logged at debug level: clients disconnect all the time.
fn broken(error: &io::Error) -> RespEnd {
    debug!(event = "connection_failed", %error, "connection failed");
    RespEnd::Gone
}
