//! Counters of one node: the results of its calls, and their durations.
//!
//! Only decisions are counted. They report their start and end to the breaker anyway, so the clock is not
//! read once more.

use crate::address::Address;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds; a last bucket takes the rest. They range from a server
/// in the same rack to one that hardly responds.
const BOUNDS_US: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    10_000_000,
];

/// The number of buckets, including the one without an upper bound.
const BUCKETS: usize = BOUNDS_US.len() + 1;

/// The counters of one node. They only grow.
#[derive(Debug, Default)]
pub(super) struct CallFigures {
    failed: AtomicU64,
    given_up: AtomicU64,
    held_back: AtomicU64,
    /// The number of replies in each bucket and no earlier one.
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// A master, and how calls for decisions have gone since we know it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// The address of the node.
    pub address: Address,
    /// True if a connection to it is up.
    pub is_connected: bool,
    /// True if its circuit breaker is closed, so that calls are sent to it.
    pub is_trusted: bool,
    /// Calls that failed: the node was unreachable, hung up, or reported that it is unable.
    pub failed: u64,
    /// Calls whose time was up.
    pub given_up: u64,
    /// Calls that were never sent, because it had failed too often.
    pub held_back: u64,
    /// The calls that it answered, by how long that took.
    pub answered: CallTimes,
}

/// Calls, by how long they took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    counts: [u64; BUCKETS],
    sum: Duration,
}

impl CallFigures {
    /// An answer came after so long.
    pub(super) fn answered(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let nth = BOUNDS_US.iter().take_while(|bound| us > **bound).count();
        // `nth` is at most the number of bounds, which is the index of the last bucket.
        if let Some(bucket) = self.buckets.get(nth) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_us.fetch_add(us, Relaxed);
    }

    /// Counts a call that failed.
    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Counts a call that the caller gave up after half of its time.
    pub(super) fn given_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
    }

    /// Counts a call that was not sent, because the circuit breaker is open.
    pub(super) fn held_back(&self) {
        self.held_back.fetch_add(1, Relaxed);
    }

    /// Returns the current statistics.
    pub(super) fn of(&self, address: Address, is_connected: bool, is_trusted: bool) -> NodeStats {
        let mut counts = [0; BUCKETS];
        for (count, bucket) in counts.iter_mut().zip(&self.buckets) {
            *count = bucket.load(Relaxed);
        }
        NodeStats {
            address,
            is_connected,
            is_trusted,
            failed: self.failed.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
            held_back: self.held_back.load(Relaxed),
            answered: CallTimes {
                counts,
                sum: Duration::from_micros(self.sum_us.load(Relaxed)),
            },
        }
    }
}

impl CallTimes {
    /// Returns the number of replies in each bucket and no earlier one, with its upper bound; the last
    /// bucket has none.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = BOUNDS_US.iter().map(|us| Some(Duration::from_micros(*us)));
        bounds.chain([None]).zip(self.counts)
    }

    /// Returns the number of replies.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the difference to `earlier`, a previous reading of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.counts;
        for (count, earlier) in counts.iter_mut().zip(earlier.counts) {
            *count = count.saturating_sub(earlier);
        }
        Self {
            counts,
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// These and those.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        let mut counts = self.counts;
        for (count, other) in counts.iter_mut().zip(others.counts) {
            *count = count.saturating_add(other);
        }
        Self {
            counts,
            sum: self.sum.saturating_add(others.sum),
        }
    }

    /// Returns an upper bound of the duration at a percentile; `None` without calls, or beyond the last bound.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let count = self.count();
        let rank = count.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0_u64;
        for (bound, count) in self.buckets() {
            seen = seen.saturating_add(count);
            if seen >= rank {
                return bound;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_fall_into_the_right_histogram_bucket() {
        let figures = CallFigures::default();
        for us in [50, 51, 900, 2_400, 20_000_000] {
            figures.answered(Duration::from_micros(us));
        }
        let stats = figures.of(Address::new("a", 1), true, true);
        let counts: Vec<_> = stats.answered.buckets().filter(|(_, n)| *n > 0).collect();
        let us = |us| Some(Duration::from_micros(us));
        assert_eq!(
            counts,
            [
                (us(50), 1),
                (us(100), 1),
                (us(1_000), 1),
                (us(2_500), 1),
                (None, 1)
            ]
        );
        assert_eq!(stats.answered.count(), 5);
        assert_eq!(stats.answered.sum(), Duration::from_micros(20_003_401));
        assert_eq!(stats.answered.percentile(50), us(1_000));
        assert_eq!(stats.answered.percentile(80), us(2_500));
        assert_eq!(stats.answered.percentile(99), None);
        assert_eq!(CallTimes::default().percentile(50), None);
        let since = stats.answered.since(&stats.answered);
        assert_eq!(since, CallTimes::default());
        assert_eq!(since.and(&stats.answered), stats.answered);
    }
}
