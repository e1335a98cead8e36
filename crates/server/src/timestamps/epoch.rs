//! `1700000000.123`, the format of Caddy and many scripts.

use super::LATEST;
use tidegate::Timestamp;

/// The number of digits that are kept; further ones are finer than a microsecond.
const DIGITS_MAX: usize = 25;

/// Parses a number since the epoch: seconds, or milli-, micro- or nanoseconds if it is too large for the
/// larger unit. It is parsed from the decimal text, not through a float, which would be off by a fraction
/// of a microsecond and so change decisions.
///
/// The units are unambiguous between 1973 and 2255.
pub fn epoch(text: &str) -> Option<Timestamp> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || !digits().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if whole.len() > DIGITS_MAX {
        return None;
    }
    let kept = digits().take(DIGITS_MAX);
    let value = kept.fold(0_u128, |value, byte| value * 10 + u128::from(byte - b'0'));
    let scale = i32::try_from(digits().count().min(DIGITS_MAX) - whole.len()).ok()?;
    // The number is value × 10^power.
    let power = exponent.checked_sub(scale)?;
    let units = shift(value, power)?;
    let per_second = match units {
        0..100_000_000_000 => 0,
        100_000_000_000..100_000_000_000_000 => 3,
        100_000_000_000_000..100_000_000_000_000_000 => 6,
        _ => 9,
    };
    let micros = shift(value, power.checked_add(6 - per_second)?)?;
    let at = Timestamp::from_micros(u64::try_from(micros).ok()?);
    (at <= LATEST).then_some(at)
}

/// Returns value × 10^power, rounded down; `None` if that is too large.
fn shift(value: u128, power: i32) -> Option<u128> {
    match 10_u128.checked_pow(power.unsigned_abs()) {
        Some(factor) if power >= 0 => value.checked_mul(factor),
        Some(factor) => Some(value / factor),
        None if power >= 0 && value > 0 => None,
        None => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_exact_in_every_unit() {
        for (text, micros) in [
            ("0", 0),
            ("1700000000", 1_700_000_000_000_000),
            ("1700000000.1", 1_700_000_000_100_000),
            ("1646861401.5241024", 1_646_861_401_524_102),
            (
                "1646861401.999999999999999999999999999999",
                1_646_861_401_999_999,
            ),
            ("1.6468614015241024e+09", 1_646_861_401_524_102),
            ("17e8", 1_700_000_000_000_000),
            ("1700000000123", 1_700_000_000_123_000),
            ("1700000000123.456789", 1_700_000_000_123_456),
            ("1700000000123456", 1_700_000_000_123_456),
            ("1700000000123456789", 1_700_000_000_123_456),
        ] {
            assert_eq!(
                epoch(text).map(Timestamp::as_micros),
                Some(micros),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_instants_are_rejected() {
        for text in [
            "",
            "-1",
            "+1",
            ".5",
            "1e",
            "1e99",
            "1x",
            "1.2.3",
            "1e99999999999",
            "0x10",
        ] {
            assert_eq!(epoch(text), None, "{text}");
        }
        assert_eq!(epoch(&"9".repeat(30)), None);
        assert_eq!(epoch("10000000000"), None, "the year 2286");
    }
}
