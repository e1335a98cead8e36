//! Counters of a store.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a store. They only grow.
#[derive(Debug, Default)]
pub struct RedisStats {
    /// Requests that Redis decided.
    pub decisions: Counter,
    /// Script calls that were sent for them.
    pub calls: Counter,
    /// Requests refused without asking Redis, because it would have refused.
    pub refused_here: Counter,
    /// Charges to be refunded: of requests over several slots of a Cluster that one slot refused.
    pub refunds_due: Counter,
    /// Charges that were refunded.
    pub refunds: Counter,
    /// Charges that may not have been refunded, because Redis did not respond.
    pub refunds_lost: Counter,
    /// Requests that got no answer.
    pub failures: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
