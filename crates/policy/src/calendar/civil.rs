//! Dates as numbers of days, for any year.
//!
//! Months are counted from January of the year 0, days from 1970-01-01. Types of jiff end with the year
//! 9999, and the last window of that year ends after it.

/// The seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// The months of a year.
pub(super) const YEAR_MONTHS: i64 = 12;

/// January 1970.
const EPOCH_MONTH: i64 = 1970 * YEAR_MONTHS;

/// Returns the month of a year; January is 1.
pub(super) fn month_of_year(year: i64, month: i64) -> i64 {
    year * YEAR_MONTHS + month - 1
}

/// Returns the first day of a month.
pub(super) fn first_day(month: i64) -> i64 {
    // In years that begin with March, the day that leap years add is the last one.
    let from_march = month - 2;
    let year = from_march.div_euclid(YEAR_MONTHS);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From March on, five months have 153 days: 31, 30, 31, 30, 31.
    let in_year = (153 * from_march.rem_euclid(YEAR_MONTHS) + 2) / 5;
    // 1970-01-01 is 719,468 days after 0000-03-01.
    365 * year + leap_days + in_year - 719_468
}

/// Returns the number of days of a month.
pub(super) fn length(month: i64) -> i64 {
    first_day(month + 1) - first_day(month)
}

/// Returns the month of a day.
pub(super) fn month_at(day: i64) -> i64 {
    // 400 years have 146,097 days. The mean length of a month misses by a month at most.
    let mut month = EPOCH_MONTH + (day * 400 * YEAR_MONTHS).div_euclid(146_097);
    while first_day(month) > day {
        month -= 1;
    }
    while first_day(month + 1) <= day {
        month += 1;
    }
    month
}
