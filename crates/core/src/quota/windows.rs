//! The windows of a quota that counts by the calendar.

use super::{Algorithm, EXACT_MAX, Quota};
use crate::Timestamp;
use std::num::NonZeroU64;

/// Starts of calendars are whole seconds. Of others, states are not [narrow](Quota::is_narrow).
pub(super) const SECOND_US: u64 = 1_000_000;

/// A day.
const DAY_US: u64 = 24 * 3_600 * SECOND_US;

/// The longest [reach](Quota::reach_us) of a [narrow](Quota::is_narrow) state: that of a year.
pub(super) const NARROW_REACH_US: u64 = 367 * DAY_US;

/// The half-open interval between two starts of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan {
    /// Its first instant, in microseconds.
    pub start_us: u64,
    /// The first instant after it.
    pub end_us: u64,
}

impl WindowSpan {
    /// Returns its length in microseconds.
    pub const fn length_us(self) -> u64 {
        self.end_us.saturating_sub(self.start_us)
    }
}

/// Returns the microseconds for which a charge in windows of this period matters.
#[inline]
pub(super) fn reach_us(period_us: u64) -> u64 {
    period_us.saturating_add(period_us.min(DAY_US))
}

/// Four consecutive starts of windows, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStarts {
    starts: [u64; 4],
    /// True if all are whole seconds.
    is_whole: bool,
}

impl From<[u64; 4]> for WindowStarts {
    fn from(starts: [u64; 4]) -> Self {
        let starts = starts.map(|start| start.min(EXACT_MAX));
        let is_whole = starts.iter().all(|start| start.is_multiple_of(SECOND_US));
        Self { starts, is_whole }
    }
}

/// The calendar by which the windows of a quota are computed: its period, time zone and anchor as a number that
/// only the caller understands. Core compares it and never reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CalendarCode(NonZeroU64);

impl CalendarCode {
    /// Returns the calendar of a number.
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// Returns its number.
    pub const fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl Quota {
    /// Returns the calendar by which its starts are computed, if it has one.
    #[inline]
    pub fn calendar(&self) -> Option<CalendarCode> {
        self.calendar
    }

    /// Returns the microseconds for which a charge in a window of a calendar matters: a window of other starts, after
    /// a change of the time zone or the anchor, contains it for as long. 0 if its windows follow no calendar.
    ///
    /// A window is longer than the period by as much as the clock goes back in it, which is less than a day, and no
    /// more than the period.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// use tidegate_core::quota::CalendarCode;
    /// use tidegate_core::{Algorithm, Quota};
    ///
    /// let day_us = 86_400_000_000;
    /// let weekly = Quota::new(100, 7 * day_us).algorithm(Algorithm::CalendarWindow);
    /// let calendar = CalendarCode::new(NonZeroU64::MIN);
    /// assert_eq!(weekly.calendar(calendar).build()?.reach_us(), 8 * day_us);
    /// assert_eq!(weekly.build()?.reach_us(), 0);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[inline]
    pub fn reach_us(&self) -> u64 {
        match self.calendar {
            Some(_) => reach_us(self.period.get()),
            None => 0,
        }
    }

    /// Returns true if its windows are those of a calendar, and it has no starts yet.
    #[inline]
    pub fn needs_starts(&self) -> bool {
        let [.., last] = self.starts;
        self.calendar.is_some() && last == 0
    }

    /// Returns the same quota with the starts of its windows, in microseconds and in order: four consecutive
    /// starts are three windows. It stays the same band.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// use tidegate_core::quota::CalendarCode;
    /// use tidegate_core::{Algorithm, Quota, Timestamp};
    ///
    /// let monthly = Quota::new(100, 2_678_400_000_000).algorithm(Algorithm::CalendarWindow);
    /// let monthly = monthly.calendar(CalendarCode::new(NonZeroU64::MIN)).build()?;
    /// // November 2023 to January 2024.
    /// let days = [19_662, 19_692, 19_723, 19_754].map(|day: u64| day * 86_400_000_000);
    /// let now = Timestamp::from_millis(1_703_000_000_000);
    /// assert!(monthly.is_outside(now), "it has no starts");
    /// let monthly = monthly.with_starts(days);
    /// assert_eq!(monthly.window_at(now).map(|it| it.end_us), Some(19_723 * 86_400_000_000));
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn with_starts(mut self, starts: impl Into<WindowStarts>) -> Self {
        self.set_starts(&starts.into());
        self
    }

    /// Sets the starts of its windows, like [`with_starts`](Self::with_starts).
    #[inline]
    pub fn set_starts(&mut self, starts: &WindowStarts) {
        self.starts = starts.starts;
        self.narrow &= starts.is_whole;
    }

    /// Returns the starts of its windows; zeros where it has none.
    pub fn starts(&self) -> [u64; 4] {
        self.starts
    }

    /// Returns the window around an instant. `None` if it is in none of those that the quota knows, or the
    /// quota does not count in calendar windows.
    ///
    /// Without a calendar, windows begin at multiples of the period since the Unix epoch.
    #[inline]
    pub fn window_at(&self, at: Timestamp) -> Option<WindowSpan> {
        if self.algorithm != Algorithm::CalendarWindow {
            return None;
        }
        let at = at.as_micros();
        let [first, second, third, last] = self.starts;
        let (start_us, end_us) = if at >= second && at < third {
            (second, third)
        } else if at >= first && at < second {
            (first, second)
        } else if at >= third && at < last {
            (third, last)
        } else if self.calendar.is_none() {
            let start = at.saturating_sub(at % self.period);
            (
                start,
                start.saturating_add(self.period.get()).min(EXACT_MAX),
            )
        } else {
            return None;
        };
        Some(WindowSpan { start_us, end_us })
    }

    /// Returns true if it counts in calendar windows and knows none around `now`: then nothing can be decided.
    #[inline]
    pub fn is_outside(&self, now: Timestamp) -> bool {
        self.calendar.is_some() && self.window_at(now).is_none()
    }
}
