//! The health of the store: for the log, two lines per outage, and for metrics.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{StoreError, StoreErrorKind, Timestamp};
use tracing::{info, warn};

const KINDS: usize = StoreErrorKind::ALL.len();

/// The store is up once it has answered for this long without a failure. After a first outage, that is also
/// when its recovery is logged.
const QUIET_US: u64 = 1_000_000;

/// The longest time until recovery is logged, if the store fails repeatedly.
const QUIET_MAX_US: u64 = 30_000_000;

/// A failure within this time of a logged recovery counts as repeated. It is also the shortest interval
/// between log lines about corrupt values.
const AGAIN_US: u64 = 60_000_000;

/// The health of the store: from [`Limiter::store_health`](crate::Limiter::store_health), or from
/// [`Limiter::probe_store`](crate::Limiter::probe_store) after a call to it.
///
/// A store in memory cannot fail and has none:
///
/// ```
/// use tidegate::{LimitSpec, Limiter};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
/// assert!(limiter.store_health().is_none());
/// # Ok::<(), tidegate::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// True if the store answers: the last call succeeded, and none has failed for a second. Buckets with
    /// corrupt values do not affect it.
    pub is_up: bool,
    /// The number of errors since the start, by kind.
    pub errors: [(StoreErrorKind, u64); KINDS],
}

/// The atomic state behind [`StoreHealth`]. Times are in microseconds; 0 means never.
#[derive(Debug, Default)]
pub(super) struct FailoverHealth {
    /// True if the store has failed, and has not yet answered for a while since.
    is_down: AtomicBool,
    /// True if the outage has been logged, and the recovery not yet. Always true while `is_down` is.
    is_told: AtomicBool,
    failed_at: AtomicU64,
    away_at: AtomicU64,
    back_at: AtomicU64,
    /// The time for which the store must answer until its recovery is logged.
    quiet_us: AtomicU64,
    /// The number of failures since the outage was logged.
    failures: AtomicU64,
    corrupt_at: AtomicU64,
    errors: [AtomicU64; KINDS],
}

impl FailoverHealth {
    /// Records a failure of the store.
    pub(super) fn fail(&self, error: &StoreError, now: Timestamp) {
        let counters = StoreErrorKind::ALL.iter().zip(&self.errors);
        for (_, counter) in counters.filter(|(kind, _)| **kind == error.kind()) {
            counter.fetch_add(1, Relaxed);
        }
        let now = now.as_micros();
        if error.kind() == StoreErrorKind::Corrupt {
            self.find_corrupt(error, now);
            return;
        }
        self.failed_at.fetch_max(now, Relaxed);
        self.is_down.store(true, Relaxed);
        if !self.is_told.swap(true, Relaxed) {
            self.begin_outage(error, now);
        }
        self.failures.fetch_add(1, Relaxed);
    }

    fn begin_outage(&self, error: &StoreError, now: u64) {
        let back_at = self.back_at.load(Relaxed);
        let again = back_at != 0 && now < back_at.saturating_add(AGAIN_US);
        let quiet_us = match self.quiet_us.load(Relaxed) {
            before if again => before.saturating_mul(2).clamp(QUIET_US, QUIET_MAX_US),
            _ => QUIET_US,
        };
        self.quiet_us.store(quiet_us, Relaxed);
        self.away_at.store(now, Relaxed);
        self.failures.store(0, Relaxed);
        warn!(
            event = "store_unavailable",
            kind = error.kind().as_str(),
            error = %ErrorChain(error),
            "store unavailable; applying on_failure"
        );
    }

    /// Records that one bucket holds a value that is not Tidegate's. The store and all other buckets work.
    #[cold]
    fn find_corrupt(&self, error: &StoreError, now: u64) {
        let told_at = self.corrupt_at.load(Relaxed);
        let may_tell = told_at == 0 || now >= told_at.saturating_add(AGAIN_US);
        // Of many concurrent calls, one logs it.
        let swap = || {
            let at = &self.corrupt_at;
            at.compare_exchange(told_at, now, Relaxed, Relaxed)
        };
        if may_tell && swap().is_ok() {
            warn!(
                event = "bucket_corrupt",
                kind = error.kind().as_str(),
                error = %ErrorChain(error),
                "a bucket holds a value that Tidegate did not write; applying on_failure"
            );
        }
    }

    /// Records a success of the store. Needs the time only during an outage.
    #[inline]
    pub(super) fn succeed(&self, now: impl FnOnce() -> Timestamp) {
        if self.is_told.load(Relaxed) {
            self.end_outage(now());
        }
    }

    #[cold]
    fn end_outage(&self, now: Timestamp) {
        let now = now.as_micros();
        let quiet_us = now.saturating_sub(self.failed_at.load(Relaxed));
        if quiet_us >= QUIET_US {
            self.is_down.store(false, Relaxed);
        }
        if quiet_us < self.quiet_us.load(Relaxed) || !self.is_told.swap(false, Relaxed) {
            return;
        }
        self.back_at.store(now, Relaxed);
        let away = now.saturating_sub(self.away_at.load(Relaxed));
        info!(
            event = "store_recovered",
            after = ?Duration::from_millis(away / 1_000),
            failures = self.failures.load(Relaxed),
            "store available again"
        );
    }

    pub(super) fn snapshot(&self) -> StoreHealth {
        let mut errors = StoreErrorKind::ALL.map(|kind| (kind, 0));
        for ((_, count), counter) in errors.iter_mut().zip(&self.errors) {
            *count = counter.load(Relaxed);
        }
        StoreHealth {
            is_up: !self.is_down.load(Relaxed),
            errors,
        }
    }
}

/// An error and its causes, in one line.
struct ErrorChain<'a>(&'a StoreError);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
