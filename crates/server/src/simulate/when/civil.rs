//! Calendar dates and timestamps, in integers.

use super::LATEST;
use tidegate::Timestamp;
use tidegate_http::text::date;

const DAY_SECONDS: i64 = 86_400;

/// A local date and time.
#[derive(Default)]
pub(super) struct Civil {
    pub(super) year: u32,
    pub(super) month: u32,
    pub(super) day: u32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) micros: u32,
    /// The offset from UTC.
    pub(super) offset_minutes: i32,
}

impl Civil {
    /// Returns the timestamp, if the date exists and is between 1970 and [`LATEST`].
    pub(super) fn instant(&self) -> Option<Timestamp> {
        let is_day = (1..=days_in_month(self.year, self.month)?).contains(&self.day);
        // A leap second counts as the first second of the next minute.
        if !is_day || self.hour > 23 || self.minute > 59 || self.second > 60 {
            return None;
        }
        let of_day = i64::from(self.hour * 3_600 + self.minute * 60 + self.second);
        let days = days_from_epoch(self.year, self.month, self.day);
        let seconds = days * DAY_SECONDS + of_day - i64::from(self.offset_minutes) * 60;
        let micros = u64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
        let at = Timestamp::from_micros(micros.checked_add(u64::from(self.micros))?);
        (at <= LATEST).then_some(at)
    }
}

fn days_in_month(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap { 29 } else { 28 }),
        _ => None,
    }
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar.
///
/// The year is taken to begin in March, so that a leap day is its last: the months before one then have
/// (153 × month + 2) / 5 days, and the years before one year × 365 + leap days.
fn days_from_epoch(year: u32, month: u32, day: u32) -> i64 {
    let (year, month) = if month > 2 {
        (i64::from(year), i64::from(month) - 3)
    } else {
        (i64::from(year) - 1, i64::from(month) + 9)
    };
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + of_year - MARCH_0_TO_EPOCH
}

/// Days from 0000-03-01 to 1970-01-01.
const MARCH_0_TO_EPOCH: i64 = 719_468;

/// Formats a timestamp for people: `2023-11-14T22:13:20.500Z`.
pub fn show(at: Timestamp) -> String {
    let millis = at.as_micros() / 1_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_one_after_the_day_before() {
        let mut next = 0;
        for year in 1970..=2400 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month).expect("a month") {
                    assert_eq!(days_from_epoch(year, month, day), next);
                    let days = u64::try_from(next).expect("after the epoch");
                    assert_eq!(date(days), (year.into(), month.into(), day.into()));
                    next += 1;
                }
            }
        }
        assert_eq!(days_in_month(2024, 2), Some(29));
        assert_eq!(days_in_month(2100, 2), Some(28));
        assert_eq!(days_in_month(2000, 13), None);
    }
}
