//! Whether the store answers: for the log, twice for each time that it was away, and for metrics.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Clock, StoreError, StoreErrorKind, Timestamp};
use tracing::{info, warn};

const KINDS: usize = StoreErrorKind::ALL.len();

/// The store is back once it has answered this long without failing; nor is more often than this
/// anything told.
const QUIET_US: u64 = 1_000_000;

/// How the store has been, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// Whether it answers: it did when last asked, and has not failed for a second.
    pub is_up: bool,
    /// How often it could not tell since the start, by kind.
    pub errors: [(StoreErrorKind, u64); KINDS],
}

#[derive(Debug, Default)]
pub(super) struct Health {
    /// Whether it was told that the store is away, and not yet that it is back.
    is_away: AtomicBool,
    /// When it was away last, in microseconds; 0 is never. Likewise the others.
    failed_at: AtomicU64,
    away_at: AtomicU64,
    told_at: AtomicU64,
    errors: [AtomicU64; KINDS],
}

impl Health {
    /// Counts an error, and nothing else.
    pub(super) fn count(&self, kind: StoreErrorKind) {
        let counters = StoreErrorKind::ALL.iter().zip(&self.errors);
        for (_, counter) in counters.filter(|(other, _)| **other == kind) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// The store could not tell.
    pub(super) fn fail(&self, error: &StoreError, now: Timestamp) {
        self.count(error.kind());
        let now = now.as_micros();
        self.failed_at.fetch_max(now, Relaxed);
        if !self.is_away.load(Relaxed) && self.may_tell(now) && !self.is_away.swap(true, Relaxed) {
            self.told_at.store(now, Relaxed);
            self.away_at.store(now, Relaxed);
            warn!(
                kind = error.kind().as_str(),
                reason = %Reason(error),
                "the store does not answer; deciding without it, as `on_failure` says"
            );
        }
    }

    /// The store has answered. Asks the time only where it was away.
    #[inline]
    pub(super) fn succeed(&self, clock: &impl Clock) {
        if self.is_away.load(Relaxed) {
            self.come_back(clock.now());
        }
    }

    #[cold]
    fn come_back(&self, now: Timestamp) {
        if !self.is_quiet(now) || !self.is_away.swap(false, Relaxed) {
            return;
        }
        let now = now.as_micros();
        self.told_at.store(now, Relaxed);
        let away = now.saturating_sub(self.away_at.load(Relaxed));
        info!(
            after = ?Duration::from_millis(away / 1_000),
            "the store answers again"
        );
    }

    pub(super) fn snapshot(&self, now: Timestamp) -> StoreHealth {
        let mut errors = StoreErrorKind::ALL.map(|kind| (kind, 0));
        for ((_, count), counter) in errors.iter_mut().zip(&self.errors) {
            *count = counter.load(Relaxed);
        }
        StoreHealth {
            is_up: !self.is_away.load(Relaxed) && self.is_quiet(now),
            errors,
        }
    }

    /// Whether the last failure lies long enough back.
    fn is_quiet(&self, now: Timestamp) -> bool {
        let failed_at = self.failed_at.load(Relaxed);
        failed_at == 0 || now.as_micros() >= failed_at.saturating_add(QUIET_US)
    }

    fn may_tell(&self, now: u64) -> bool {
        let told_at = self.told_at.load(Relaxed);
        told_at == 0 || now >= told_at.saturating_add(QUIET_US)
    }
}

/// An error and what caused it, in one line.
struct Reason<'a>(&'a StoreError);

impl fmt::Display for Reason<'_> {
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
