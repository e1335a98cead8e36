//! Settling reservations: noting the store's answers, and settling local charges.

use super::Failover;
use tidegate_core::{Ask, Clock, Op, Outcome, Reply};

impl Failover {
    /// Remembers the state of the store's buckets after they were settled.
    pub(crate) fn note_settled(&self, asks: &[Ask<'_>], reply: &Reply) {
        let now = self.clock.now();
        let is_free = reply.outcomes.first().is_some_and(Outcome::is_allowed);
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter()) {
            // A mark is requested only once, so it is not noted. And a store that caches that a mark is taken
            // need not know the state of the bucket next to it.
            if is_free && matches!(ask.op, Op::Return { .. } | Op::Force(_)) {
                self.local.known().note(ask, outcome, now);
            }
        }
        self.health.succeed(|| now);
    }

    /// Settles local buckets. `asks` must have the quotas they were charged with.
    pub(crate) fn settle_here(&self, asks: &[Ask<'_>]) -> Reply {
        self.local.settle(asks)
    }
}
