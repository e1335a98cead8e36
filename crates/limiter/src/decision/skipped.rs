//! Bands that were not asked, because the store did not answer and `on_failure` lets requests pass.

use super::{AppliedBand, DecidedBy, Decision, NOTHING};
use std::time::Duration;
use tidegate_core::{Algorithm, Align, Timestamp};
use tidegate_policy::respond::HeaderNames;

/// A band that was not asked: the store did not answer, and its limit has `on_failure: allow`. What the
/// policy says of it is known; what remains of it is not.
#[derive(Clone, Copy, Debug)]
pub struct SkippedBand<'a> {
    applied: AppliedBand<'a>,
    at: Timestamp,
}

// === impl Skipped ===

impl<'a> SkippedBand<'a> {
    /// The limit's name.
    pub fn limit(&self) -> &'a str {
        self.applied.limit()
    }

    /// The band as written, such as `10/s burst 50`.
    pub fn band(&self) -> Option<&'a str> {
        self.applied.band()
    }

    /// The most units that the band lets through at once.
    pub fn capacity(&self) -> u64 {
        self.applied.capacity()
    }

    /// The band as header fields spell it.
    pub fn spoken(&self) -> Option<&'a HeaderNames> {
        self.applied.spoken()
    }

    /// How long until the window ends, by the clock of this process. `None` where only the store knows:
    /// of every band but windows that are aligned to the clock.
    pub fn reset_after(&self) -> Option<Duration> {
        let quota = self.applied.band?.quota;
        if quota.algorithm() != Algorithm::FixedWindow(Align::Clock) {
            return None;
        }
        let period_us = quota.period_us();
        let begun_us = self.at.as_micros().checked_rem(period_us)?;
        Some(Duration::from_micros(period_us.saturating_sub(begun_us)))
    }

    /// The instant at which the window ends, by the wall clock; `None` where
    /// [`reset_after`](Self::reset_after) is.
    pub fn resets_at(&self) -> Option<Timestamp> {
        let reset_us = self.reset_after()?.as_micros();
        Some(self.at.plus(u64::try_from(reset_us).ok()?))
    }
}

// === impl Decision ===

impl Decision {
    /// The bands that were not asked because the store did not answer and their limits have
    /// `on_failure: allow`, in the order written.
    pub fn skipped(&self) -> impl Iterator<Item = SkippedBand<'_>> {
        let at = self.wall_time();
        let entries = self.bands.iter().filter(|entry| entry.is_skipped());
        entries.filter_map(move |entry| {
            Some(SkippedBand {
                applied: self.describe(entry, "")?,
                at,
            })
        })
    }

    /// The band to tell of where none is [reported](Self::binding) because the store did not answer and
    /// every limit has `on_failure: allow`: the smallest, of several the first written.
    pub fn unasked(&self) -> Option<SkippedBand<'_>> {
        let is_by_failure = self.decided_by == DecidedBy::Failure && self.binding == NOTHING;
        if !is_by_failure {
            return None;
        }
        self.skipped().min_by_key(SkippedBand::capacity)
    }
}
