//! `2023-11-14T22:13:20.123Z`, the format of Traefik, Envoy and most others.

use super::civil::Civil;
use super::digits::Digits;
use tidegate::Timestamp;

/// Parses a timestamp of RFC 3339. An offset without its colon, as ISO 8601 allows, is accepted too.
pub fn rfc3339(text: &str) -> Option<Timestamp> {
    let mut text = Digits(text.as_bytes());
    let year = text.number(4)?;
    text.one_of(b"-")?;
    let month = text.number(2)?;
    text.one_of(b"-")?;
    let day = text.number(2)?;
    text.one_of(b"Tt ")?;
    let time = text.time_of_day()?;
    let offset_minutes = match text.one_of(b"Zz") {
        Some(_) => 0,
        None => text.offset_minutes()?,
    };
    let civil = Civil {
        year,
        month,
        day,
        offset_minutes,
        ..time
    };
    text.0.is_empty().then(|| civil.instant())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_exact() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
            ("2023-11-14T22:13:20.1Z", 1_700_000_000_100_000),
            ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123_456),
            ("2023-11-14t23:43:20+01:30", 1_700_000_000_000_000),
            ("2023-11-14 14:13:20-0800", 1_700_000_000_000_000),
            ("2000-02-29T23:59:59z", 951_868_799_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
        ] {
            assert_eq!(
                rfc3339(text).map(Timestamp::as_micros),
                Some(micros),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
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
            "2023-11-14T22:13:20+24:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "9999-01-01T00:00:00Z",
            "2023-11-14T22:13:2٣Z",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }
}
