//! Signs of life of one connection.
//!
//! hyper can time out the reading of a head, at the cost of a timer for every request. Here a
//! connection has one timer for life, which looks every now and then whether anything happened: see
//! `idle`.

use super::interim::Interims;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;

/// Signs of life of one connection. All fields but `held` are written by the connection's own task
/// alone, so loads and stores suffice; they are atomic because that task moves between threads.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Requests whose head has been read; on a RESP connection, reads.
    requests: AtomicU64,
    /// Whether the last of them has a body, of which some may still be to come.
    has_body: AtomicBool,
    /// Whether the client has sent anything at all.
    heard: AtomicBool,
    /// Whether the next answer is to be the connection's last.
    closing: AtomicBool,
    /// Requests, counted as above, whose answer is known; and whether the last one makes a tunnel of the
    /// connection. Kept only where strangers are read strictly.
    answered: AtomicU64,
    is_tunnel: AtomicBool,
    /// Requests whose answer a door is working on.
    answering: AtomicU32,
    /// Whether bytes were written that the system has not taken: the client is still reading an answer.
    unflushed: AtomicBool,
    /// Guards that say that a request is under way: see [`Alive`].
    held: AtomicU32,
    /// The one answer that is under way on a connection with one at a time.
    strand: Strand,
    /// The moment at which the connection was active last, of those that `moments` counts.
    active_at: AtomicU64,
    moments: Arc<AtomicU64>,
    /// Wakes the connection to close and make room for another.
    eviction: Notify,
    /// Interim answers to write before the next bytes of it.
    interims: Interims,
}

/// One answer that is under way, and whose turn it is: even while its sender makes the next piece,
/// odd while a piece waits for the client to take it.
#[derive(Debug, Default)]
pub(crate) struct Strand(AtomicU64);

/// A request that is under way: as long as this lives, its connection is not idle, however long
/// nothing moves on it. A door that streams holds it in the body of its answer; [`Paced`] does.
///
/// [`Paced`]: super::paced::PacedBody
#[derive(Debug)]
pub(crate) struct Alive {
    pulse: Arc<Pulse>,
    /// Where a connection has several answers under way.
    strand: Option<Arc<Strand>>,
    /// Whether the last piece is with the client.
    is_given: bool,
}

/// A request whose answer is being worked on, by the connection's own task.
#[derive(Debug)]
pub(crate) struct RequestInProgress<'a>(&'a Pulse);

impl Pulse {
    /// Returns the pulse of a connection that is accepted now.
    pub(super) fn new(moments: &Arc<AtomicU64>) -> Self {
        let pulse = Self {
            moments: Arc::clone(moments),
            ..Self::default()
        };
        pulse.touch();
        pulse
    }

    /// Notes that the connection is not idle just now.
    fn touch(&self) {
        self.active_at.store(self.moments.load(Relaxed), Relaxed);
    }

    /// Returns the moment since which the connection is idle; `None` while it is not.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        let is_unflushed = self.unflushed.load(Relaxed);
        let is_idle = !self.is_busy() && !self.is_tunnel() && !is_unflushed;
        is_idle.then(|| self.active_at.load(Relaxed))
    }

    /// Asks the connection to close.
    pub(crate) fn evict(&self) {
        self.eviction.notify_one();
    }

    /// Waits until the connection is to close.
    pub(crate) async fn evicted(&self) {
        self.eviction.notified().await;
    }

    /// Notes whether bytes were written that the system has not taken.
    pub(super) fn note_unflushed(&self, is_unflushed: bool) {
        self.unflushed.store(is_unflushed, Relaxed);
    }

    /// A request has begun, with a body or without.
    pub(crate) fn begin(&self, has_body: bool) {
        self.touch();
        self.requests
            .store(self.requests().wrapping_add(1), Relaxed);
        self.has_body.store(has_body, Relaxed);
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Whether the last request has a body.
    pub(super) fn has_body(&self) -> bool {
        self.has_body.load(Relaxed)
    }

    /// The client has sent something.
    pub(super) fn hear(&self) {
        self.heard.store(true, Relaxed);
    }

    pub(super) fn was_heard(&self) -> bool {
        self.heard.load(Relaxed)
    }

    /// Makes the next answer the last.
    pub(super) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// The answer to the last request is known.
    pub(super) fn settle(&self, is_tunnel: bool) {
        self.is_tunnel.store(is_tunnel, Relaxed);
        self.answered.store(self.requests(), Relaxed);
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }

    /// Whether the connection is HTTP no longer.
    pub(super) fn is_tunnel(&self) -> bool {
        self.is_tunnel.load(Relaxed)
    }

    /// A door works on an answer until what this returns is dropped.
    pub(crate) fn answering(&self) -> RequestInProgress<'_> {
        let others = self.answering.load(Relaxed);
        self.answering.store(others.wrapping_add(1), Relaxed);
        RequestInProgress(self)
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.answering.load(Relaxed) > 0 || self.held.load(Relaxed) > 0
    }

    /// Interim answers that wait to be written, where there is one answer at a time.
    pub(super) fn interims(&self) -> &Interims {
        &self.interims
    }

    /// The answer under way, where there is one at a time.
    pub(super) fn strand(&self) -> &Strand {
        &self.strand
    }
}

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        let all = self.0.answering.load(Relaxed);
        self.0.answering.store(all.wrapping_sub(1), Relaxed);
        self.0.touch();
    }
}

impl Strand {
    /// How often the turn has changed.
    pub(super) fn turns(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Whether after this many turns it is the client's.
    pub(super) fn is_clients(turns: u64) -> bool {
        turns % 2 == 1
    }

    fn turn(&self) {
        self.0.store(self.turns().wrapping_add(1), Relaxed);
    }
}

impl Alive {
    pub(super) fn new(pulse: &Arc<Pulse>, strand: Option<&Arc<Strand>>) -> Self {
        pulse.held.fetch_add(1, Relaxed);
        Self {
            pulse: Arc::clone(pulse),
            strand: strand.cloned(),
            is_given: false,
        }
    }

    /// A piece was handed out. If nobody asks for the next one for too long, the client is stuck.
    pub(crate) fn gave(&mut self) {
        if !self.is_given {
            self.is_given = true;
            self.strand().turn();
        }
    }

    /// The next piece is asked for: whatever is waited for from here on is not the client.
    pub(crate) fn asked(&mut self) {
        if self.is_given {
            self.is_given = false;
            self.strand().turn();
        }
    }

    fn strand(&self) -> &Strand {
        self.strand.as_deref().unwrap_or(&self.pulse.strand)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.asked();
        self.pulse.held.fetch_sub(1, Relaxed);
        self.pulse.touch();
    }
}
