//! Calendar window: a counter that starts again at instants that the caller sends, such as the beginning of
//! each month in a time zone.
//!
//! Months differ in length, and a store knows no time zone. So a quota brings the starts around its caller's
//! clock ([`Quota::with_starts`]), and the store's clock picks the window among them. If it finds none, nothing
//! is decided: see [`Reply::outside`](crate::Reply::outside).
//!
//! The state has the instant of the last charge. Other starts, of another time zone or anchor, so find out
//! whether anything was charged in their own window: if so, all that the state counts does. The first request
//! under the new starts makes the window theirs, even if it is refused, so that no window is granted twice.
//! That request may come after the end of the window that was charged, so a state lasts until no window of other
//! starts can contain its last charge ([`Quota::reach_us`]).

use super::count::WindowTake;
use super::{Bucket, BucketState};
use crate::quota::{Basis, WindowSpan, same_share};
use crate::{BucketReading, Outcome, Quota, Receipt, Timestamp, Wait};

/// The state of a calendar window.
///
/// ```
/// use std::num::NonZeroU64;
/// use tidegate_core::quota::CalendarCode;
/// use tidegate_core::{Algorithm, Bucket, Op, Quota, Timestamp, step};
///
/// let day = 86_400_000_000;
/// let weekly = Quota::new(2, 7 * day).algorithm(Algorithm::CalendarWindow);
/// let weekly = weekly.calendar(CalendarCode::new(NonZeroU64::MIN)).build()?;
/// let from_monday = weekly.with_starts([4, 11, 18, 25].map(|nth| nth * day));
/// let mut bucket = Bucket::new(&from_monday);
/// let mut take = |quota, day_nth| {
///     let now = Timestamp::from_micros(day_nth * day);
///     step::decide_one(quota, &mut bucket, Op::Take(1), now).is_allowed()
/// };
/// assert!(take(&from_monday, 12) && take(&from_monday, 13) && !take(&from_monday, 14));
///
/// // Weeks begin on Sunday from now on: the units of this week still count.
/// let from_sunday = weekly.with_starts([3, 10, 17, 24].map(|nth| nth * day));
/// assert!(!take(&from_sunday, 16));
/// assert!(take(&from_sunday, 17));
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalendarWindow {
    /// End of the window, in microseconds.
    pub end: u64,
    /// Units counted in it. Where this is 0 there is no window.
    pub used: u64,
    /// Instant of the last charge.
    pub at: u64,
}

impl CalendarWindow {
    /// Returns the state at `now`, which `span` contains; a new, empty window if nothing was charged in it.
    #[inline]
    fn at(self, span: WindowSpan, now: Timestamp) -> Self {
        if self.used == 0 || self.at < span.start_us {
            Self {
                end: span.end_us,
                used: 0,
                at: now.as_micros(),
            }
        } else if self.at >= span.end_us {
            // The clock went back, and its window has begun.
            self
        } else {
            Self {
                end: span.end_us,
                ..self
            }
        }
    }

    /// Returns the microseconds until the window ends; 0 if it has ended.
    #[inline]
    fn left(self, now: Timestamp) -> u64 {
        self.end.saturating_sub(now.as_micros())
    }

    /// Returns true if it counts, but not in the present window `span` of this quota, nor in the next one, where
    /// a clock that has gone back may have left it.
    #[inline]
    fn is_foreign(&self, quota: &Quota, span: WindowSpan) -> bool {
        let counts = self.used > 0 && self.at >= span.start_us;
        counts && self.end != span.end_us && !self.is_of_next(quota, span)
    }

    /// Returns true if it is of a window of this quota that begins at the end of `span`, and at most as long as `span` into it.
    #[cold]
    fn is_of_next(&self, quota: &Quota, span: WindowSpan) -> bool {
        let own = quota.window_at(Timestamp::from_micros(self.at));
        let last = span.end_us.saturating_add(span.length_us());
        (span.end_us..last).contains(&self.at) && own.is_some_and(|own| own.end_us == self.end)
    }

    /// Takes `cost` units, at least one, if they fit: the state afterwards and the answer, or `None`
    /// where something is out of the ordinary and [`BucketState::take`] has to see to it.
    #[expect(
        clippy::inline_always,
        reason = "a call would put the state and the answer into memory"
    )]
    #[inline(always)]
    pub fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)> {
        let span = quota.window_at(now)?;
        if cost > quota.amount || self.is_foreign(quota, span) {
            return None;
        }
        let window = self.at(span, now);
        let take = WindowTake::new(quota, window.used, cost, window.left(now));
        let next = Self {
            used: take.used,
            at: window.at.max(now.as_micros()),
            ..window
        };
        Some((if take.fits { next } else { *self }, take.outcome))
    }

    /// Returns the state under `quota`.
    pub(super) fn adapted(self, from: Basis, quota: &Quota) -> Self {
        if !from.is_scaled_to(quota.basis()) {
            return self;
        }
        Self {
            used: same_share(self.used, from.whole, quota.whole_up()),
            ..self
        }
    }

    /// Writes the state as numbers.
    pub(super) fn encode(self, put: &mut impl FnMut(u64)) {
        put(self.end);
        put(self.used);
        put(self.at);
    }

    /// Reads the state, and the basis that follows it.
    pub(super) fn decode(
        mut numbers: impl ExactSizeIterator<Item = u64>,
    ) -> Option<(Bucket, Basis)> {
        if !matches!(numbers.len(), 3 | 4) {
            return None;
        }
        let (end, used, at) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let window = match used {
            0 => Self::default(),
            _ => Self { end, used, at },
        };
        Some((Bucket::Calendar(window), Basis::decode(numbers.next(), 0)?))
    }
}

/// Outside the windows that the quota knows, nothing fits and nothing is charged. Stores do not come here:
/// they return the request undecided.
impl BucketState for CalendarWindow {
    #[inline]
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        if cost > quota.amount {
            return Wait::NEVER;
        }
        let Some(span) = quota.window_at(now) else {
            return Wait::from_micros(1);
        };
        let window = self.at(span, now);
        if window.used.saturating_add(cost) <= quota.amount {
            Wait::NONE
        } else {
            Wait::from_micros(window.left(now))
        }
    }

    #[inline]
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        if let Some(span) = quota.window_at(now) {
            *self = self.at(span, now);
            self.used = self.used.saturating_add(cost);
            self.at = self.at.max(now.as_micros());
        }
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        let Some(span) = quota.window_at(now) else {
            return 0;
        };
        *self = self.at(span, now);
        let most = quota.amount.saturating_add(quota.overdraft);
        let units = cost.min(most.saturating_sub(self.used));
        if units > 0 {
            self.charge(quota, units, now);
        }
        units
    }

    /// Only where the window that was charged is still open.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        if let Some(span) = quota.window_at(now) {
            *self = self.at(span, now);
            if self.used > 0 && receipt.at.as_micros() >= span.start_us {
                self.used = self.used.saturating_sub(receipt.cost);
                if self.used == 0 {
                    // Full since then, and not only from now on.
                    self.at = span.start_us;
                }
            }
        }
        0
    }

    #[inline]
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        let span = quota.window_at(now);
        span.is_some_and(|span| self.is_foreign(quota, span))
    }

    /// Makes a window of other starts the present one, with all that it counts. One of a later instant becomes
    /// full.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        if let Some(span) = quota.window_at(now)
            && self.is_foreign(quota, span)
        {
            if self.at >= span.end_us {
                self.at = now.as_micros();
                self.used = self.used.max(quota.amount);
            }
            self.end = span.end_us;
        }
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        let window = quota.window_at(now).map(|span| self.at(span, now));
        let window = window.unwrap_or(*self);
        BucketReading {
            remaining: quota.amount.saturating_sub(window.used),
            overdrawn: window.used.saturating_sub(quota.amount),
            reset_us: if window.used == 0 {
                0
            } else {
                window.left(now)
            },
            mark: 0,
        }
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        let until = match self.used {
            0 => self.at,
            _ => self.end.max(self.at.saturating_add(quota.reach_us())),
        };
        Timestamp::from_micros(until)
    }
}
