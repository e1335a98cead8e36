//! Settling reservations: noting the store's answers, and settling the charges of this process.

use super::Failover;
use tidegate_core::{Ask, Clock, Op, Outcome, Reply};

impl Failover {
    /// Remembers how the store's buckets are after they were settled.
    pub(crate) fn note_settled(&self, asks: &[Ask<'_>], reply: &Reply) {
        let now = self.clock.now();
        let is_free = reply.outcomes.first().is_some_and(Outcome::is_allowed);
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter()) {
            // Marks are asked for once. And a store that knows by itself that one is taken need not
            // know how the bucket beside it is.
            if is_free && matches!(ask.op, Op::Return { .. } | Op::Force(_)) {
                self.local.known().note(ask, outcome, now);
            }
        }
        self.succeeded();
    }

    /// Settles buckets of this process: `asks` are by the quotas by which they were charged.
    pub(crate) fn settle_here(&self, asks: &[Ask<'_>]) -> Reply {
        self.local.settle(asks)
    }
}
