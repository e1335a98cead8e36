//! What came of counting.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What came of counting addresses, since the start and in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountingStatus {
    /// Requests whose counts Redis has taken.
    pub sent: u64,
    /// Requests of which nobody knows whether Redis has counted them.
    pub doubtful: u64,
    /// Batches that could not be sent when they should have been, to one map or the other.
    pub failures: u64,
    /// Periods that this instance has closed.
    pub closed: u64,
    /// Addresses that this instance has banned.
    pub banned: u64,
    /// Addresses that it would have banned, had not everything been in shadow mode; one that stays over
    /// the threshold is counted in each period.
    pub would_ban: u64,
    /// Addresses whose ban it has seen end.
    pub lifted: u64,
}

/// The same, as it grows.
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
            // Whoever reads lists knows.
            lifted: 0,
        }
    }
}

/// Adds `count`, of which there may be many.
pub(super) fn add(tally: &AtomicU64, count: usize) {
    tally.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Relaxed);
}
