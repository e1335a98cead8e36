//! Instants, as RFC 3339 writes them.

use jiff::Timestamp;

/// Writes the instant `seconds` after the Unix epoch, such as `2023-11-14T22:13:20Z`. The format ends
/// with the year 9999: later instants are written as its last second.
///
/// ```
/// let mut out = Vec::new();
/// tidegate_http::text::write_instant(1_700_000_000, &mut out);
/// assert_eq!(out, b"2023-11-14T22:13:20Z");
/// ```
pub fn write_instant(seconds: u64, out: &mut impl Extend<u8>) {
    let last = Timestamp::MAX.as_second();
    let seconds = i64::try_from(seconds).map_or(last, |seconds| seconds.min(last));
    let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    out.extend(at.to_string().into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_calendar_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (u64::MAX, "9999-12-30T22:00:00Z"),
        ] {
            let mut out = Vec::new();
            write_instant(seconds, &mut out);
            assert_eq!(String::from_utf8(out).expect("ASCII"), text);
        }
    }
}
