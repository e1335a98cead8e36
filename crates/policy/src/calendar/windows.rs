//! The instants at which windows begin.

use super::recurrence::Recurrence;
use super::{CalendarAnchor, CalendarPeriod, CalendarZone, Weekday};
use std::fmt;

/// The seconds by which no local clock differs from UTC: jiff accepts no larger offset.
const OFFSET_END: i64 = 26 * 3_600;

/// The first instant without windows, in milliseconds: 10000-01-01T00:00Z.
const INSTANTS_END_MS: u64 = 253_402_300_800_000;

/// The windows of one period in one time zone.
///
/// ```
/// use tidegate_policy::calendar::{
///     CalendarAnchor, CalendarPeriod, CalendarWindows, CalendarZone, Weekday,
/// };
///
/// let berlin = CalendarZone::bundled("Europe/Berlin").unwrap();
/// let anchor = Some(CalendarAnchor::DayOfMonth(31));
/// let monthly = CalendarWindows::new(CalendarPeriod::Month, berlin, Weekday::Monday, anchor);
/// // 2026-02-14T00:00Z: from 31 January to 28 February, both at 00:00 in Berlin.
/// let around = monthly.around(1_771_027_200_000).unwrap();
/// assert_eq!((around.start_ms(), around.end_ms()), (1_769_814_000_000, 1_772_233_200_000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarWindows {
    period: CalendarPeriod,
    zone: CalendarZone,
    recurrence: Recurrence,
}

impl CalendarWindows {
    /// Returns the windows of a period.
    ///
    /// Without an anchor they are those of the calendar, with weeks from `week_start`. A day of the month does
    /// not apply to hours, days and weeks: with that anchor they stay those of the calendar.
    pub fn new(
        period: CalendarPeriod,
        zone: CalendarZone,
        week_start: Weekday,
        anchor: Option<CalendarAnchor>,
    ) -> Self {
        Self {
            period,
            zone,
            recurrence: Recurrence::new(period, week_start, anchor),
        }
    }

    /// Returns the period.
    pub fn period(&self) -> CalendarPeriod {
        self.period
    }

    /// Returns the time zone.
    pub fn zone(&self) -> &CalendarZone {
        &self.zone
    }

    /// Returns the starts around an instant, given in Unix milliseconds.
    ///
    /// # Errors
    ///
    /// If the instant is after the year 9999.
    pub fn around(&self, at_ms: u64) -> Result<CalendarStarts, InstantTooLate> {
        let at = match i64::try_from(at_ms / 1_000) {
            Ok(at) if at_ms < INSTANTS_END_MS => at,
            _ => return Err(InstantTooLate),
        };
        let mut index = self.recurrence.index_at(at + self.zone.offset(at));
        // The local clock may have gone back behind starts that it had reached before. It goes back by less
        // than two of its largest offsets, which bounds the starts.
        while self.start(index + 1) <= at {
            index += 1;
        }
        let (start, end) = (self.start(index), self.start(index + 1));
        Ok(CalendarStarts {
            previous: self.neighbour(start, index, -1),
            start,
            end,
            after_end: self.neighbour(end, index + 1, 1),
        })
    }

    /// Returns the nearest start before or after that of `index` which is another instant. A gap in which
    /// several starts lie is shorter than two of the largest offsets, which bounds the starts.
    fn neighbour(&self, start: i64, index: i64, step: i64) -> i64 {
        let mut index = index + step;
        while self.start(index) == start {
            index += step;
        }
        self.start(index)
    }

    /// Returns the instant of a start: the first at which the local clock shows the local start, or more.
    fn start(&self, index: i64) -> i64 {
        let local = self.recurrence.start(index);
        // Before this instant no clock shows as much.
        let mut at = local - OFFSET_END;
        loop {
            let reached = at.max(local - self.zone.offset(at));
            match self.zone.next_change(at) {
                // Each change is later than the one before, and `reached` is at most two of the largest
                // offsets after the first `at`.
                Some(change) if at < change && change <= reached => at = change,
                _ => return reached,
            }
        }
    }
}

/// Four consecutive starts: those of the windows before, around and after an instant, and the end of the last.
///
/// A store whose clock differs by less than the window before or after finds its own window among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarStarts {
    previous: i64,
    start: i64,
    end: i64,
    after_end: i64,
}

impl CalendarStarts {
    /// Returns the four starts in Unix microseconds. Those before 1970 are 0.
    pub fn instants_us(&self) -> [u64; 4] {
        [self.previous, self.start, self.end, self.after_end]
            .map(|start| u64::try_from(start).unwrap_or(0).saturating_mul(1_000_000))
    }

    /// Returns the start of the window before, in Unix milliseconds. Negative before 1970, like the others.
    pub fn previous_ms(&self) -> i64 {
        self.previous * 1_000
    }

    /// Returns the start of the window around the instant.
    pub fn start_ms(&self) -> i64 {
        self.start * 1_000
    }

    /// Returns the end of that window: the start of the next.
    pub fn end_ms(&self) -> i64 {
        self.end * 1_000
    }

    /// Returns the length of that window in milliseconds.
    pub fn length_ms(&self) -> u64 {
        self.end_ms().abs_diff(self.start_ms())
    }

    /// Returns the end of the next window.
    pub fn after_end_ms(&self) -> i64 {
        self.after_end * 1_000
    }

    /// Returns true if the window contains an instant.
    pub fn contains_ms(&self, at_ms: u64) -> bool {
        i64::try_from(at_ms).is_ok_and(|at| (self.start_ms()..self.end_ms()).contains(&at))
    }
}

/// An instant after the year 9999, for which no windows are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantTooLate;

impl fmt::Display for InstantTooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("calendar windows end with the year 9999")
    }
}

impl std::error::Error for InstantTooLate {}
