//! The point from which the windows of a limit are counted, if that is not the calendar's own.

use super::civil::{self, DAY, YEAR_MONTHS};
use crate::text::ConfigFault;
use crate::text::duration::number;
use std::fmt;

/// The years that the date of an anchor may have.
const YEARS: std::ops::RangeInclusive<u64> = 1970..=9999;

const EXAMPLES: &str = "expected a day of the month, such as `31`, or a local date and time, such as \
                        `2026-01-31T09:00`";

/// The point from which windows are counted. It recurs with the period, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarAnchor {
    /// A day of the month from 1 to 31, at midnight; in shorter months the last day. Quarters begin in
    /// January, April, July and October, years in January. It does not apply to shorter periods.
    DayOfMonth(u8),
    /// A date and time, from which each period takes the part that it needs: an hour its minute, a day its
    /// time, a week its weekday, a month its day, a quarter its day and month, a year its date.
    DateTime(LocalDateTime),
}

impl CalendarAnchor {
    /// Reads an anchor: `31` or `2026-01-31T09:00`.
    ///
    /// ```
    /// use tidegate_policy::calendar::CalendarAnchor;
    ///
    /// assert_eq!(CalendarAnchor::parse("31"), Ok(CalendarAnchor::DayOfMonth(31)));
    /// assert!(CalendarAnchor::parse("2026-01-31T09:00").is_ok());
    /// assert!(CalendarAnchor::parse("2026-02-30T09:00").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        if text.contains('-') {
            return LocalDateTime::parse(text).map(Self::DateTime);
        }
        let quoted = ConfigFault::quote(text);
        let Some(day) = number(text) else {
            return Err(ConfigFault::new(format!("{quoted} is not an anchor")).help(EXAMPLES));
        };
        match u8::try_from(day) {
            Ok(day @ 1..=31) => Ok(Self::DayOfMonth(day)),
            _ => Err(ConfigFault::new(format!("no month has a day {quoted}"))
                .help("use a day from 1 to 31; shorter months use their last day")),
        }
    }
}

impl fmt::Display for CalendarAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DayOfMonth(day) => write!(f, "{day}"),
            Self::DateTime(local) => write!(f, "{local}"),
        }
    }
}

/// A date and a time that a local clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalDateTime {
    /// The month since January of the year 0.
    month: i64,
    /// The day of the month, from 1.
    day: i64,
    /// The seconds since midnight.
    time: i64,
}

impl LocalDateTime {
    fn parse(text: &str) -> Result<Self, ConfigFault> {
        let fault = |reason: &str| {
            let message = format!("{} is not a local date and time", ConfigFault::quote(text));
            ConfigFault::new(message).help(reason)
        };
        let Some((date, time)) = text.split_once('T') else {
            return Err(fault("add the time, such as `2026-01-31T00:00`"));
        };
        if time.contains(['Z', 'z', '+', '-']) {
            return Err(fault("leave out the offset; `time_zone` names the zone"));
        }
        let date = fields(date, '-', &[4, 2, 2]).ok_or_else(|| fault(EXAMPLES))?;
        let clock = fields(time, ':', &[2, 2])
            .or_else(|| fields(time, ':', &[2, 2, 2]))
            .ok_or_else(|| fault(EXAMPLES))?;
        let ([year, month, day], [hour, minute, second]) = (date, clock);
        if !YEARS.contains(&year.unsigned_abs()) {
            return Err(fault("use a year from 1970 to 9999"));
        }
        let month_index = civil::month_of_year(year, month);
        if !(1..=YEAR_MONTHS).contains(&month) || !(1..=civil::length(month_index)).contains(&day) {
            return Err(fault("that date is not in the calendar"));
        }
        if hour > 23 || minute > 59 || second > 59 {
            return Err(fault("a time is from 00:00 to 23:59:59"));
        }
        Ok(Self {
            month: month_index,
            day,
            time: (hour * 60 + minute) * 60 + second,
        })
    }

    /// Returns the date and time of these parts, which come from another one.
    pub(super) fn from_parts(month: i64, day: i64, time: i64) -> Self {
        Self { month, day, time }
    }

    /// Returns the month since January of the year 0.
    pub(super) fn month(self) -> i64 {
        self.month
    }

    /// Returns the day of the month.
    pub(super) fn day(self) -> i64 {
        self.day
    }

    /// Returns the seconds since midnight.
    pub(super) fn time(self) -> i64 {
        self.time
    }

    /// Returns the seconds since 1970-01-01T00:00 of the same clock.
    pub(super) fn seconds(self) -> i64 {
        (civil::first_day(self.month) + self.day - 1) * DAY + self.time
    }
}

impl fmt::Display for LocalDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month) = (
            self.month.div_euclid(YEAR_MONTHS),
            self.month.rem_euclid(YEAR_MONTHS) + 1,
        );
        let (hour, minute, second) = (self.time / 3600, self.time / 60 % 60, self.time % 60);
        write!(
            f,
            "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}",
            self.day
        )?;
        if second == 0 {
            Ok(())
        } else {
            write!(f, ":{second:02}")
        }
    }
}

/// Reads up to three numbers of fixed width. Missing ones are 0.
fn fields(text: &str, separator: char, widths: &[usize]) -> Option<[i64; 3]> {
    let mut numbers = [0; 3];
    let mut parts = text.split(separator);
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == *width)?;
        let is_digits = part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_digits)?;
    }
    parts.next().is_none().then_some(numbers)
}
