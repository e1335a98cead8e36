//! The totals of counting.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The totals of counting by address, since the start of this process: see
/// [`Limiter::counting`](crate::Limiter::counting). Reloads do not reset them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountingStatus {
    /// Requests whose counts Redis has accepted.
    pub sent: u64,
    /// Requests whose count in Redis is unconfirmed.
    pub doubtful: u64,
    /// Batches that could not be sent when due, to either map.
    pub failures: u64,
    /// Periods that this instance closed.
    pub closed: u64,
    /// Addresses that this instance banned.
    pub banned: u64,
    /// Addresses that it would have banned if not everything were in shadow mode. An address that stays over
    /// the threshold is counted in each period.
    pub would_ban: u64,
    /// Addresses whose ban it has seen end.
    pub lifted: u64,
}

/// The atomic counters behind [`CountingStatus`].
#[derive(Debug, Default)]
pub(super) struct Tallies {
    pub(super) sent: AtomicU64,
    pub(super) doubtful: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) closed: AtomicU64,
    pub(super) banned: AtomicU64,
    pub(super) would_ban: AtomicU64,
}

impl Tallies {
    pub(super) fn status(&self) -> CountingStatus {
        CountingStatus {
            sent: self.sent.load(Relaxed),
            doubtful: self.doubtful.load(Relaxed),
            failures: self.failures.load(Relaxed),
            closed: self.closed.load(Relaxed),
            banned: self.banned.load(Relaxed),
            would_ban: self.would_ban.load(Relaxed),
            // Filled in by the limiter, from the lists.
            lifted: 0,
        }
    }
}

/// Adds `count`, saturating at the conversion.
pub(super) fn add(tally: &AtomicU64, count: usize) {
    tally.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Relaxed);
}
