//! Bands that were not evaluated, because the store did not answer and `on_failure` lets requests pass.

use super::{AppliedBand, DecidedBy, Decision, NOTHING};
use std::time::Duration;
use tidegate_core::{Algorithm, Align, Timestamp};
use tidegate_policy::respond::HeaderNames;

/// A band that was not evaluated: the store did not answer, and its limit has `on_failure: allow`. Its
/// configured values are known; its remaining units are not.
#[derive(Clone, Copy, Debug)]
pub struct SkippedBand<'a> {
    applied: AppliedBand<'a>,
    at: Timestamp,
}

// === impl SkippedBand ===

impl<'a> SkippedBand<'a> {
    /// Returns the limit's name.
    pub fn limit(&self) -> &'a str {
        self.applied.limit()
    }

    /// Returns the band as written, such as `10/s burst 50`.
    pub fn band(&self) -> Option<&'a str> {
        self.applied.band()
    }

    /// Returns the maximum number of units that the band admits at once.
    pub fn capacity(&self) -> u64 {
        self.applied.capacity()
    }

    /// Returns the band's names in header fields.
    pub fn spoken(&self) -> Option<&'a HeaderNames> {
        self.applied.spoken()
    }

    /// Returns the time until the window ends, by the clock of this process. Returns `None` if only the store
    /// knows: for every band except windows that are aligned to the clock.
    pub fn reset_after(&self) -> Option<Duration> {
        let quota = self.applied.band?.quota;
        if quota.algorithm() != Algorithm::FixedWindow(Align::Clock) {
            return None;
        }
        let period_us = quota.period_us();
        let begun_us = self.at.as_micros().checked_rem(period_us)?;
        Some(Duration::from_micros(period_us.saturating_sub(begun_us)))
    }

    /// Returns the time at which the window ends, by the wall clock; `None` whenever
    /// [`reset_after`](Self::reset_after) is.
    pub fn resets_at(&self) -> Option<Timestamp> {
        let reset_us = self.reset_after()?.as_micros();
        Some(self.at.plus(u64::try_from(reset_us).ok()?))
    }
}

// === impl Decision ===

impl Decision {
    /// Returns the bands that were not evaluated because the store did not answer and their limits have
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

    /// Returns the band to show if none is [reported](Self::binding) because the store did not answer and
    /// every limit has `on_failure: allow`. It is the band with the smallest capacity, and the first written
    /// of several.
    pub fn unasked(&self) -> Option<SkippedBand<'_>> {
        let is_by_failure = self.decided_by == DecidedBy::Failure && self.binding == NOTHING;
        if !is_by_failure {
            return None;
        }
        self.skipped().min_by_key(SkippedBand::capacity)
    }
}
