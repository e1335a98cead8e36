//! One server: its connections, its breaker, the scripts it knows.

use super::breaker::{Breaker, BreakerPass, CallHealth};
use super::figures::{CallFigures, NodeStats};
use crate::address::Address;
use crate::error::ConnectError;
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// A server that we talk to.
#[derive(Debug)]
pub(super) struct RedisNode {
    pub(super) address: Address,
    pub(super) links: Box<[NodeLink]>,
    turn: AtomicUsize,
    breaker: Mutex<Breaker>,
    /// Wakes the node's `probe` task: the breaker has opened, or a new connection can be probed.
    pub(super) wake_probe: Notify,
    pub(super) figures: CallFigures,
    /// The number of times that the scripts were loaded. Shows whether another call did it meanwhile.
    pub(super) loads: AtomicU64,
    /// Held by the call that loads scripts after `NOSCRIPT`, so that the others wait for it.
    pub(super) load_gate: tokio::sync::Mutex<()>,
    /// True once the node has left: its keepers finish the calls in flight and end.
    pub(super) retired: watch::Sender<bool>,
}

/// One connection to a node, or the lack of it.
#[derive(Debug)]
pub(super) struct NodeLink {
    live: ArcSwapOption<MultiplexedConnection>,
    state: watch::Sender<LinkState>,
    /// Wakes the keeper to see whether the server is still there, and a master.
    pub(super) suspicion: Notify,
}

/// The state of a link.
#[derive(Clone, Debug)]
pub(super) enum LinkState {
    /// Connecting, and no reason yet to think that it will fail: worth waiting for.
    Trying,
    Up,
    /// It failed, and is tried again later.
    Down(ConnectError),
}

impl RedisNode {
    /// Returns a node without connections. Its keepers open `links` of them, at least one.
    pub(super) fn new(address: Address, links: usize) -> Self {
        Self {
            address,
            links: (0..links.max(1)).map(|_| NodeLink::new()).collect(),
            turn: AtomicUsize::new(0),
            breaker: Mutex::new(Breaker::new()),
            wake_probe: Notify::new(),
            figures: CallFigures::default(),
            loads: AtomicU64::new(0),
            load_gate: tokio::sync::Mutex::new(()),
            retired: watch::Sender::new(false),
        }
    }

    /// Returns a connection that is up, in turn.
    pub(super) fn connection(&self) -> Option<Arc<MultiplexedConnection>> {
        let (Some(first), count) = (self.links.first(), self.links.len()) else {
            return None;
        };
        if count == 1 {
            return first.connection();
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        (0..count).find_map(|step| {
            let at = turn.wrapping_add(step) % count;
            self.links.get(at).and_then(NodeLink::connection)
        })
    }

    /// The same, waiting for a connection that is being made.
    pub(super) async fn connected(&self) -> Option<Arc<MultiplexedConnection>> {
        if let Some(connection) = self.connection() {
            return Some(connection);
        }
        for link in &self.links {
            link.settled().await;
            if let Some(connection) = self.connection() {
                return Some(connection);
            }
        }
        None
    }

    /// Takes a failed connection out of use, ahead of its keeper, so that no further call is sent to it.
    pub(super) fn discard(&self, failed: &Arc<MultiplexedConnection>) {
        for link in &self.links {
            let old = link.live.compare_and_swap(failed, None);
            if old.as_ref().is_some_and(|old| Arc::ptr_eq(old, failed)) {
                link.state.send_if_modified(|state| {
                    let is_up = matches!(state, LinkState::Up);
                    if is_up {
                        *state = LinkState::Trying;
                    }
                    is_up
                });
            }
        }
    }

    /// Returns true if at least one connection is up.
    pub(super) fn is_up(&self) -> bool {
        self.links.iter().any(|link| link.live.load().is_some())
    }

    /// Why there is no connection, once that is known.
    pub(super) fn failure(&self) -> Option<ConnectError> {
        self.links
            .iter()
            .find_map(|link| match &*link.state.borrow() {
                LinkState::Down(error) => Some(error.clone()),
                _ => None,
            })
    }

    /// Has the keepers look whether the server is still there, and a master.
    pub(super) fn suspect(&self) {
        for link in &self.links {
            link.suspicion.notify_one();
        }
    }

    /// Marks the node as gone: its keepers finish the calls in flight and end.
    pub(super) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Returns leave to call the node, or `None` while its breaker is open.
    pub(super) fn ask_breaker(&self) -> Option<BreakerPass> {
        self.breaker.lock().ask()
    }

    /// Counts the result of a call. Returns true if this opened the breaker.
    pub(super) fn report(&self, leave: BreakerPass, verdict: CallHealth, now: Instant) -> bool {
        let opened = self.breaker.lock().report(leave, verdict, now);
        if opened {
            self.wake_probe.notify_one();
        }
        opened
    }

    /// Lets all calls pass again.
    pub(super) fn close_breaker(&self) {
        self.breaker.lock().close();
    }

    /// Returns true if the circuit breaker is closed.
    pub(super) fn is_trusted(&self) -> bool {
        self.breaker.lock().is_closed()
    }

    /// Returns the state of the node and its counters.
    pub(super) fn stats(&self) -> NodeStats {
        let (is_up, is_trusted) = (self.is_up(), self.is_trusted());
        self.figures.of(self.address.clone(), is_up, is_trusted)
    }
}

impl NodeLink {
    /// Returns a link that is about to connect.
    fn new() -> Self {
        Self {
            live: ArcSwapOption::empty(),
            state: watch::Sender::new(LinkState::Trying),
            suspicion: Notify::new(),
        }
    }

    /// Returns the connection, if it is up.
    fn connection(&self) -> Option<Arc<MultiplexedConnection>> {
        self.live.load_full()
    }

    /// Waits until it is known whether there is a connection.
    async fn settled(&self) {
        let mut state = self.state.subscribe();
        // The sender is ours, so there is always an end to wait for.
        drop(
            state
                .wait_for(|state| !matches!(state, LinkState::Trying))
                .await,
        );
    }

    /// Publishes a connection that is ready for calls.
    pub(super) fn up(&self, connection: MultiplexedConnection) {
        self.live.store(Some(Arc::new(connection)));
        self.state.send_replace(LinkState::Up);
    }

    /// No connection from now on.
    pub(super) fn lost(&self, state: LinkState) {
        self.live.store(None);
        self.state.send_replace(state);
    }
}
