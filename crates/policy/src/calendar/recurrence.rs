//! The local times at which windows begin, as a sequence without end in both directions.

use super::civil::{self, DAY, YEAR_MONTHS};
use super::{CalendarAnchor, CalendarPeriod, Weekday};

/// Local starts, in seconds since 1970-01-01T00:00 of the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recurrence {
    /// Hours, days and weeks: all as long as each other on a clock that is never changed.
    Even {
        /// The seconds between two starts.
        length: i64,
        /// One of the starts.
        origin: i64,
    },
    /// Months, quarters and years.
    Months {
        /// The months between two starts.
        step: i64,
        /// A month that has a start.
        origin: i64,
        /// The day of the month. Shorter months use their last day.
        day: i64,
        /// The seconds since midnight.
        time: i64,
    },
}

impl Recurrence {
    pub(super) fn new(
        period: CalendarPeriod,
        week_start: Weekday,
        anchor: Option<CalendarAnchor>,
    ) -> Self {
        let even = |length, calendar| {
            let origin = match anchor {
                Some(CalendarAnchor::DateTime(local)) => local.seconds(),
                Some(CalendarAnchor::DayOfMonth(_)) | None => calendar,
            };
            Self::Even { length, origin }
        };
        let months = |step| {
            let (origin, day, time) = match anchor {
                Some(CalendarAnchor::DateTime(local)) => (local.month(), local.day(), local.time()),
                Some(CalendarAnchor::DayOfMonth(day)) => (0, i64::from(day), 0),
                None => (0, 1, 0),
            };
            Self::Months {
                step,
                origin,
                day,
                time,
            }
        };
        match period {
            CalendarPeriod::Hour => even(3_600, 0),
            CalendarPeriod::Day => even(DAY, 0),
            CalendarPeriod::Week => even(7 * DAY, week_start.first_day() * DAY),
            CalendarPeriod::Month => months(1),
            CalendarPeriod::Quarter => months(3),
            CalendarPeriod::Year => months(YEAR_MONTHS),
        }
    }

    /// Returns a local start by its index. Higher indexes are later.
    pub(super) fn start(&self, index: i64) -> i64 {
        match *self {
            Self::Even { length, origin } => origin + index * length,
            Self::Months {
                step,
                origin,
                day,
                time,
            } => {
                let month = origin + index * step;
                // From the anchor's own day, so that a day cut by February is restored in March.
                let day = day.min(civil::length(month));
                (civil::first_day(month) + day - 1) * DAY + time
            }
        }
    }

    /// Returns the index of the last start that is not after a local time.
    pub(super) fn index_at(&self, local: i64) -> i64 {
        match *self {
            Self::Even { length, origin } => (local - origin).div_euclid(length),
            Self::Months { step, origin, .. } => {
                let month = civil::month_at(local.div_euclid(DAY));
                let index = (month - origin).div_euclid(step);
                if self.start(index) > local {
                    index - 1
                } else {
                    index
                }
            }
        }
    }
}
