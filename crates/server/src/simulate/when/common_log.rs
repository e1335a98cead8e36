//! `10/Oct/2000:13:55:36 -0700`, the format of nginx and Apache.

use super::civil::Civil;
use super::digits::Digits;
use tidegate::Timestamp;

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Parses a timestamp in the common log format.
pub fn common_log(text: &str) -> Option<Timestamp> {
    let mut text = Digits(text.as_bytes());
    let day = text.number(2)?;
    text.one_of(b"/")?;
    let (name, rest) = text.0.split_at_checked(3)?;
    let month = (1..).zip(MONTHS).find(|(_, known)| *known == name)?.0;
    text = Digits(rest);
    text.one_of(b"/")?;
    let year = text.number(4)?;
    text.one_of(b":")?;
    let time = text.time_of_day()?;
    text.one_of(b" ")?;
    let offset_minutes = text.offset_minutes()?;
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
            ("10/Oct/2000:13:55:36 -0700", 971_211_336_000_000),
            ("14/Nov/2023:22:13:20 +0000", 1_700_000_000_000_000),
            ("15/Nov/2023:03:43:20.250 +0530", 1_700_000_000_250_000),
        ] {
            assert_eq!(
                common_log(text).map(Timestamp::as_micros),
                Some(micros),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "10/oct/2000:13:55:36 -0700",
            "10/Oct/2000:13:55:36",
            "31/Jun/2000:13:55:36 +0000",
            "10/Oct/2000:13:55:36 +0000 ",
            "1/Oct/2000:13:55:36 +0000",
        ] {
            assert_eq!(common_log(text), None, "{text}");
        }
    }
}
