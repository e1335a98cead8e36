//! The activity of one connection.
//!
//! hyper can time out the reading of a head, at the cost of a timer for every request. Here a connection has
//! one timer for life, which checks periodically if anything happened: see `idle`.

use super::interim::InterimQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;

/// The activity of one connection. All fields but `held` are written by the connection's own task alone, so
/// loads and stores suffice; they are atomic because that task moves between threads.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Requests whose head has been read; on a RESP connection, reads.
    requests: AtomicU64,
    /// True if the last request has a body, of which some may still be to come.
    has_body: AtomicBool,
    /// True if the client has sent anything at all.
    heard: AtomicBool,
    /// True if the next response is to be the connection's last.
    closing: AtomicBool,
    /// The number of requests, counted as above, whose response is known; and true if the last one turns the
    /// connection into a tunnel. Maintained only on listeners for untrusted clients.
    answered: AtomicU64,
    is_tunnel: AtomicBool,
    /// The number of requests that a frontend is processing.
    answering: AtomicU32,
    /// True if bytes were written that the system has not taken: the client is still reading a response.
    unflushed: AtomicBool,
    /// The number of guards for requests in flight: see [`ActivityGuard`].
    held: AtomicU32,
    /// The response in flight on a connection with one at a time.
    strand: ResponseTurn,
    /// The moment of the last activity, as counted by `moments`.
    active_at: AtomicU64,
    moments: Arc<AtomicU64>,
    /// Wakes the connection to close and make room for another.
    eviction: Notify,
    /// Interim responses to write before the next bytes of the final one.
    interims: InterimQueue,
}

/// One response in flight, and its turn: even while its sender makes the next piece, odd while a piece waits
/// for the client to read it.
#[derive(Debug, Default)]
pub(crate) struct ResponseTurn(AtomicU64);

/// A request in flight: as long as this lives, its connection is not idle, even if nothing moves on it. A
/// frontend that streams holds it in the body of its response; [`PacedBody`] does.
///
/// [`PacedBody`]: super::paced_body::PacedBody
#[derive(Debug)]
pub struct ActivityGuard {
    pulse: Arc<Pulse>,
    /// Set if a connection has several responses in flight.
    strand: Option<Arc<ResponseTurn>>,
    /// True if the last piece is with the client.
    is_given: bool,
}

/// A request that the connection's own task is processing.
#[derive(Debug)]
pub struct RequestInProgress<'a>(&'a Pulse);

impl Pulse {
    /// Returns the pulse of a connection that is accepted now.
    pub fn new(moments: &Arc<AtomicU64>) -> Self {
        let pulse = Self {
            moments: Arc::clone(moments),
            ..Self::default()
        };
        pulse.touch();
        pulse
    }

    /// Records that the connection is active now.
    fn touch(&self) {
        self.active_at.store(self.moments.load(Relaxed), Relaxed);
    }

    /// Returns the moment since which the connection is idle; `None` while it is not.
    pub fn idle_since(&self) -> Option<u64> {
        let is_unflushed = self.unflushed.load(Relaxed);
        let is_idle = !self.is_busy() && !self.is_tunnel() && !is_unflushed;
        is_idle.then(|| self.active_at.load(Relaxed))
    }

    /// Signals the connection to close.
    pub fn evict(&self) {
        self.eviction.notify_one();
    }

    /// Waits until the connection is to close.
    pub async fn evicted(&self) {
        self.eviction.notified().await;
    }

    /// Records if bytes were written that the system has not taken.
    pub(super) fn note_unflushed(&self, is_unflushed: bool) {
        self.unflushed.store(is_unflushed, Relaxed);
    }

    /// Records that a request has begun, with a body or without.
    pub fn begin(&self, has_body: bool) {
        self.touch();
        self.requests
            .store(self.requests().wrapping_add(1), Relaxed);
        self.has_body.store(has_body, Relaxed);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Returns true if the last request has a body.
    pub fn has_body(&self) -> bool {
        self.has_body.load(Relaxed)
    }

    /// Records that the client has sent something.
    pub fn note_received(&self) {
        self.heard.store(true, Relaxed);
    }

    pub(super) fn was_heard(&self) -> bool {
        self.heard.load(Relaxed)
    }

    /// Makes the next response the last.
    pub fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Records that the response to the last request is known.
    pub fn settle(&self, is_tunnel: bool) {
        self.is_tunnel.store(is_tunnel, Relaxed);
        self.answered.store(self.requests(), Relaxed);
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }

    /// Returns true if the connection is no longer HTTP.
    pub(super) fn is_tunnel(&self) -> bool {
        self.is_tunnel.load(Relaxed)
    }

    /// Marks a request as being processed until the returned guard is dropped.
    pub fn answering(&self) -> RequestInProgress<'_> {
        let others = self.answering.load(Relaxed);
        self.answering.store(others.wrapping_add(1), Relaxed);
        RequestInProgress(self)
    }

    /// Returns true if a request is in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.answering.load(Relaxed) > 0 || self.held.load(Relaxed) > 0
    }

    /// Returns the queue of interim responses, for connections with one response at a time.
    pub fn interims(&self) -> &InterimQueue {
        &self.interims
    }

    /// Returns the response in flight, for connections with one at a time.
    pub(super) fn strand(&self) -> &ResponseTurn {
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

impl ResponseTurn {
    /// Returns the number of turn changes.
    pub(super) fn turns(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Returns true if it is the client's turn after this many changes.
    pub(super) fn is_clients(turns: u64) -> bool {
        turns % 2 == 1
    }

    fn turn(&self) {
        self.0.store(self.turns().wrapping_add(1), Relaxed);
    }
}

impl ActivityGuard {
    pub(crate) fn new(pulse: &Arc<Pulse>, strand: Option<&Arc<ResponseTurn>>) -> Self {
        pulse.held.fetch_add(1, Relaxed);
        Self {
            pulse: Arc::clone(pulse),
            strand: strand.cloned(),
            is_given: false,
        }
    }

    /// Records that a piece was handed out. If the next one is not requested for too long, the client is
    /// stuck.
    pub fn gave(&mut self) {
        if !self.is_given {
            self.is_given = true;
            self.strand().turn();
        }
    }

    /// Records that the next piece is requested: from here on the wait is not for the client.
    pub fn asked(&mut self) {
        if self.is_given {
            self.is_given = false;
            self.strand().turn();
        }
    }

    fn strand(&self) -> &ResponseTurn {
        self.strand.as_deref().unwrap_or(&self.pulse.strand)
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.asked();
        self.pulse.held.fetch_sub(1, Relaxed);
        self.pulse.touch();
    }
}

/// A sender of interim responses to the client of one request.
#[derive(Clone, Debug)]
pub struct InterimSink(Arc<Pulse>);

impl InterimSink {
    pub(crate) fn new(pulse: &Arc<Pulse>) -> Self {
        Self(Arc::clone(pulse))
    }

    /// Queues a whole head. Returns true if it is queued; it is sent at the next turn of the connection.
    pub fn send(&self, head: &[u8]) -> bool {
        self.0.interims().add(head)
    }
}
