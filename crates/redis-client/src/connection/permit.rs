//! Leave to call a node, which always comes back to the node's breaker.

use super::breaker::{BreakerPass, CallHealth};
use super::node::RedisNode;
use super::shared::ConnectionInner;
use tokio::time::Instant;

/// A permit, held while a call is in flight or waits for a reconnect. If it is dropped before it is
/// settled, the caller has given up: after more than half of the allotted time that counts as a failure
/// of the node, earlier as a cancellation by the caller.
#[derive(Debug)]
pub(super) struct CallPermit<'a> {
    shared: &'a ConnectionInner,
    node: &'a RedisNode,
    leave: Option<BreakerPass>,
    asked_at: Instant,
    /// The instant from which on giving up counts as a failure of the node.
    patience_ends: Instant,
}

impl<'a> CallPermit<'a> {
    /// Returns `None` if the circuit breaker of the node is open.
    pub(super) fn ask(
        shared: &'a ConnectionInner,
        node: &'a RedisNode,
        deadline: Instant,
    ) -> Option<Self> {
        let now = Instant::now();
        let Some(leave) = node.ask_breaker() else {
            node.figures.held_back();
            return None;
        };
        Some(Self {
            shared,
            node,
            leave: Some(leave),
            asked_at: now,
            patience_ends: now + deadline.saturating_duration_since(now) / 2,
        })
    }

    /// For calls that no breaker watches.
    pub(super) fn free(
        shared: &'a ConnectionInner,
        node: &'a RedisNode,
        deadline: Instant,
    ) -> Self {
        Self {
            shared,
            node,
            leave: None,
            asked_at: deadline,
            patience_ends: deadline,
        }
    }

    /// Records the result of the call.
    pub(super) fn settle(mut self, verdict: CallHealth) {
        if self.leave.is_none() {
            return;
        }
        let now = Instant::now();
        match verdict {
            CallHealth::Good => self.node.figures.answered(now - self.asked_at),
            CallHealth::Bad => self.node.figures.failed(),
            CallHealth::Unknown => {}
        }
        self.bring_back(verdict, now);
    }

    /// Reports the result to the circuit breaker, once. If that opens it, the connection and the topology
    /// are checked.
    fn bring_back(&mut self, verdict: CallHealth, now: Instant) {
        let Some(leave) = self.leave.take() else {
            return;
        };
        if self.node.report(leave, verdict, now) {
            // It may be cut off without our noticing, or have been replaced.
            self.node.suspect();
            self.shared.refresh.notify_one();
        }
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        if self.leave.is_none() {
            return;
        }
        let now = Instant::now();
        let verdict = if now >= self.patience_ends {
            self.node.figures.given_up();
            CallHealth::Bad
        } else {
            CallHealth::Unknown
        };
        self.bring_back(verdict, now);
    }
}
