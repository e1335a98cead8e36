//! Leave to call a node, which always comes back to the node's breaker.

use super::breaker::{CallHealth, Leave};
use super::node::RedisNode;
use super::shared::ConnectionInner;
use tokio::time::Instant;

/// Held while a call is under way, or waits for the connection to come back. If it is dropped
/// before it is settled, nobody waited for the answer: after more than half of the allotted time
/// that counts as a failure of the node, earlier as a change of mind of the caller.
#[derive(Debug)]
pub(super) struct CallPermit<'a> {
    shared: &'a ConnectionInner,
    node: &'a RedisNode,
    leave: Option<Leave>,
    asked_at: Instant,
    /// From when on giving up speaks against the node.
    patience_ends: Instant,
}

impl<'a> CallPermit<'a> {
    /// `None` if the node is to be left alone.
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

    /// How it went.
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
