//! Reads, answers, writes: one write for all the commands that one read has brought.

use super::RespDoor;
use super::conversation::{NextAction, RespConversation};
use crate::bounds::Bounds;
use crate::server::pulse::Pulse;
use crate::server::reception::{AcceptedConnection, ByteStream, ConnectionGuard};
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
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::debug;

/// How often a connection is looked at before it is given up.
const LOOKS: u32 = 5;

/// How long a client may go on sending after it was told that this is the end, and how much.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RespEnd {
    /// The client has gone, or nothing is to be had from it.
    Gone,
    /// We end it, and the client may be speaking.
    Closed,
}

/// Why nobody waits for a client any longer.
#[derive(Clone, Copy, Debug)]
enum RespCloseReason {
    Idle,
    Closing,
    /// There are too many connections, and this one was idle.
    Evicted,
}

/// Serves a connection until it ends, is idle for too long, or the door closes.
pub(super) async fn serve<S: Store + 'static, I: ByteStream, O: ConnectionGuard>(
    door: Arc<RespDoor<S>>,
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
    let bounds = door.threshold.bounds;
    let closes_in = door.threshold.closes_in;
    let beats = AtomicU64::new(0);
    // Asked only when one of them has something to say, and not with every read.
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
        talk: RespConversation::new(door, peer),
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

/// A connection and all that its end depends on.
struct RespConnection<'a, S, I, C> {
    stream: I,
    talk: RespConversation<S>,
    bounds: Bounds,
    calls: Pin<&'a mut C>,
    /// Reads so far.
    beats: &'a AtomicU64,
    pulse: &'a Pulse,
    /// Which command there was half of last, and until when the rest of it may come.
    patience: Option<(u64, Instant)>,
    /// Once the door closes: until when commands that are on their way are answered.
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
                    // There may be a whole command by now.
                    Ok(true) if turn == NextAction::Read => turn = NextAction::Write,
                    Ok(_) => {}
                    Err(end) => return end,
                }
            }
            if let Err(error) = self.write().await {
                debug!(%error, "a connection broke");
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

    /// Reads whatever comes next; 0 bytes are the end.
    async fn read(&mut self) -> Result<usize, RespEnd> {
        let partial = self.talk.intake.partial();
        self.patience = partial.map(|now| match self.patience {
            // From when it began: a client gains no time by sending a byte now and then.
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
                        debug!("closed a connection in the middle of a command");
                    }
                    return Err(RespEnd::Closed);
                }
                call = self.calls.next(), if self.farewell.is_none() => match call {
                    // A client may have sent a command that is still on its way. It is answered; no
                    // word of the protocol says that it was the last.
                    Some(RespCloseReason::Closing) => {
                        self.farewell = Some(Instant::now() + self.bounds.farewell_time);
                    }
                    Some(RespCloseReason::Idle | RespCloseReason::Evicted) | None => {
                        debug!("closed an idle connection");
                        return Err(RespEnd::Gone);
                    }
                },
            }
        }
    }

    /// Waits for what the store or a limit has to be waited for. Meanwhile it is read on, so that it
    /// is known when the client has gone: then those who wait make place. Tells whether anything was
    /// read.
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
                        // Perhaps it has only stopped speaking, and listens still.
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

    /// Sends all replies. A client that does not take them for too long has gone.
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
        // Nearly always the system takes it at once, and no timer is needed.
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

/// Waits until that time; for ever if there is none, and then without a timer.
async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

/// Waits until nothing was read for `time_max`, or up to a fifth longer. It looks now and then, so
/// that a read costs no timer.
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

/// Tells the client that this is the end, and throws away what it still says, for a while: a socket
/// that is closed with something unread may take the last reply with it.
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

/// Clients that go away are everyday business.
fn broken(error: &io::Error) -> RespEnd {
    debug!(%error, "a connection broke");
    RespEnd::Gone
}
