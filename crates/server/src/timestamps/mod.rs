//! Timestamps of access logs, parsed exactly: in integers, to the microsecond.

mod epoch;

pub use epoch::epoch;

use jiff::fmt::strtime;
use tidegate::Timestamp;

/// The latest accepted timestamp: 2^53 microseconds, in the year 2255. Every store counts exactly up to
/// there.
pub const LATEST: Timestamp = Timestamp::from_micros(1 << 53);

/// Parses a timestamp in any of the formats below.
///
/// ```
/// use tidegate_server::timestamps;
///
/// let at = timestamps::any("2023-11-14T23:13:20.5+01:00");
/// assert_eq!(at, timestamps::any("1700000000.5"));
/// assert_eq!(at, timestamps::any("1700000000500"));
/// assert_eq!(at.map(timestamps::show).as_deref(), Some("2023-11-14T22:13:20.500Z"));
/// assert_eq!(timestamps::any("yesterday"), None);
/// ```
pub fn any(text: &str) -> Option<Timestamp> {
    rfc3339(text)
        .or_else(|| common_log(text))
        .or_else(|| epoch(text))
}

/// Parses `2023-11-14T22:13:20.123Z`, the format of Traefik, Envoy and most others. A leap second counts
/// as the second before it.
pub fn rfc3339(text: &str) -> Option<Timestamp> {
    text.parse().ok().and_then(exact)
}

/// Parses `10/Oct/2000:13:55:36 -0700`, the common log format of nginx and Apache.
pub fn common_log(text: &str) -> Option<Timestamp> {
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S%.f %z", text);
    parsed
        .and_then(|parsed| parsed.to_timestamp())
        .ok()
        .and_then(exact)
}

/// Formats a timestamp for people: `2023-11-14T22:13:20.500Z`.
pub fn show(at: Timestamp) -> String {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

/// Returns the timestamp if it is between 1970 and [`LATEST`].
fn exact(at: jiff::Timestamp) -> Option<Timestamp> {
    let at = Timestamp::from_micros(u64::try_from(at.as_microsecond()).ok()?);
    (at <= LATEST).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_exact() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
            ("2023-11-14T22:13:20.1Z", 1_700_000_000_100_000),
            ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123_456),
            ("2023-11-14t23:43:20+01:30", 1_700_000_000_000_000),
            ("2023-11-14 14:13:20-0800", 1_700_000_000_000_000),
            ("2000-02-29T23:59:59z", 951_868_799_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_799_000_000),
            ("10/Oct/2000:13:55:36 -0700", 971_211_336_000_000),
            ("14/Nov/2023:22:13:20 +0000", 1_700_000_000_000_000),
            ("15/Nov/2023:03:43:20.250 +0530", 1_700_000_000_250_000),
        ] {
            assert_eq!(any(text).map(Timestamp::as_micros), Some(micros), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_timestamp_are_rejected() {
        for text in [
            "",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13:20Zx",
            "2023-02-29T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "2023-11-00T00:00:00Z",
            "2023-11-14T24:00:00Z",
            "2023-11-14T22:60:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "9999-01-01T00:00:00Z",
            "2023-11-14T22:13:2٣Z",
            "10/Oct/2000:13:55:36",
            "31/Jun/2000:13:55:36 +0000",
            "10/Oct/2000:13:55:36 +0000 ",
        ] {
            assert_eq!(any(text), None, "{text}");
        }
    }

    #[test]
    fn milliseconds_are_shown_rounded_down() {
        assert_eq!(
            show(Timestamp::from_micros(1_700_000_000_500_999)),
            "2023-11-14T22:13:20.500Z"
        );
        assert_eq!(show(Timestamp::from_micros(0)), "1970-01-01T00:00:00.000Z");
    }
}
