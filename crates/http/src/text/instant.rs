//! Dates and instants, as RFC 3339 writes them.

/// Days from 0000-03-01 to 1970-01-01.
const MARCH_0_TO_EPOCH: u64 = 719_468;

/// The last second that four digits of a year can tell.
const LAST_SECOND: u64 = 253_402_300_799;

/// Writes the instant `seconds` after the Unix epoch, such as `2023-11-14T22:13:20Z`. After the year
/// 9999, which is as far as the form goes, its last second stands for all that follow.
///
/// ```
/// let mut out = Vec::new();
/// tidegate_http::text::write_instant(1_700_000_000, &mut out);
/// assert_eq!(out, b"2023-11-14T22:13:20Z");
/// ```
pub fn write_instant(seconds: u64, out: &mut impl Extend<u8>) {
    let seconds = seconds.min(LAST_SECOND);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let digit = |number: u64| b'0' + u8::try_from(number % 10).unwrap_or(0);
    for (two_digits, then) in [
        (year / 100, None),
        (year, Some(b'-')),
        (month, Some(b'-')),
        (day, Some(b'T')),
        (of_day / 3_600, Some(b':')),
        (of_day / 60 % 60, Some(b':')),
        (of_day % 60, Some(b'Z')),
    ] {
        out.extend([digit(two_digits / 10), digit(two_digits)]);
        out.extend(then);
    }
}

/// The year, month and day that lie `days` after 1970-01-01, in the Gregorian calendar.
///
/// The year is taken to begin in March, so that a leap day is its last.
pub fn date(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(MARCH_0_TO_EPOCH);
    let (era, of_era) = (days / 146_097, days % 146_097);
    // Days of an era without those that leap years add, so that each year has 365.
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_people_know_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (LAST_SECOND, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            let mut out = Vec::new();
            write_instant(seconds, &mut out);
            assert_eq!(String::from_utf8(out).expect("ASCII"), text);
        }
    }
}
