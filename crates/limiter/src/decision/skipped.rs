//! Bands that were not evaluated, because the store did not answer and `on_failure` lets requests pass.

use super::{AppliedBand, DecidedBy, Decision, NOTHING};
use std::time::Duration;
use tidegate_core::{Algorithm, Align, Timestamp};
use tidegate_policy::calendar::starts_around;
use tidegate_policy::respond::HeaderNames;

/// A band that was not evaluated: the store did not answer, and its limit has `on_failure: allow`. Its
/// configured values are known; its remaining units are not.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use tidegate::{LimitSpec, Limiter, OnFailure, Request, Store, StoreError};
/// # use tidegate_core::{Ask, Inspection, Quota, Reply};
/// # struct Unreachable;
/// # impl Store for Unreachable {
/// #     async fn decide(&self, _: &[Ask<'_>]) -> Result<Reply, StoreError> {
/// #         Err(StoreError::transient("no route to host"))
/// #     }
/// #     async fn inspect(&self, _: &[u8], _: &Quota) -> Result<Option<Inspection>, StoreError> {
/// #         Err(StoreError::transient("no route to host"))
/// #     }
/// #     async fn reset(&self, _: &[u8], _: &Quota) -> Result<bool, StoreError> {
/// #         Err(StoreError::transient("no route to host"))
/// #     }
/// # }
///
/// let limit = LimitSpec::new("all").band("10/s burst 50").on_failure(OnFailure::Allow);
/// let limiter = Limiter::builder().limit(limit).build_with(Unreachable)?;
/// let decision = limiter.check(&Request::new()).await?;
/// assert!(decision.is_allowed() && decision.binding().is_none());
/// let band = decision.skipped_binding().expect("the store did not answer");
/// assert_eq!((band.limit(), band.capacity()), ("all", 50));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Returns the unit that the limit counts; `None` for requests.
    pub fn unit(&self) -> Option<&'a str> {
        self.applied.unit()
    }

    /// Returns the maximum number of units that the band admits at once.
    pub fn capacity(&self) -> u64 {
        self.applied.capacity()
    }

    /// Returns the band's names in header fields.
    pub fn header_names(&self) -> Option<&'a HeaderNames> {
        self.applied.header_names()
    }

    /// Returns the time until the window ends, by the clock of this process. Returns `None` if only the store
    /// knows: for every band except windows that are aligned to the clock or the calendar.
    pub fn reset_after(&self) -> Option<Duration> {
        let quota = self.applied.band?.quota;
        if let Some(calendar) = quota.calendar() {
            let at_ms = self.at.as_micros() / 1_000;
            let end_ms = starts_around(calendar, at_ms)?.end_ms();
            return Some(Duration::from_millis(
                end_ms.unsigned_abs().saturating_sub(at_ms),
            ));
        }
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
    /// of several. A response can still state the limit, but no remaining units.
    pub fn skipped_binding(&self) -> Option<SkippedBand<'_>> {
        let is_by_failure = self.decided_by == DecidedBy::Failure && self.binding == NOTHING;
        if !is_by_failure {
            return None;
        }
        self.skipped().min_by_key(SkippedBand::capacity)
    }
}
