//! Numbers as the documents write them. The script reads them by the same rules (`open.lua`), and
//! the two must agree to the last bit.

use tidegate_core::quota::EXACT_MAX;

/// Longer text is no number.
const DECIMAL_BYTES_MAX: usize = 32;

/// A decimal number: digits, maybe a sign before, a fraction and a small `e` with a signed exponent
/// after them, as C and Lua print them.
pub(super) fn decimal(text: &[u8]) -> Option<f64> {
    if text.len() > DECIMAL_BYTES_MAX {
        return None;
    }
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let rest = digits(rest, 1)?;
    let rest = match rest.strip_prefix(b".") {
        Some(fraction) => digits(fraction, 0)?,
        None => rest,
    };
    let rest = match rest {
        [b'e', b'-' | b'+', exponent @ ..] => digits(exponent, 1)?,
        _ => rest,
    };
    if !rest.is_empty() {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the text after at least `least` digits.
fn digits(text: &[u8], least: usize) -> Option<&[u8]> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(count..).filter(|_| count >= least)
}

/// A whole number up to 2^53 of at most 16 digits.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.len() > 16 || digits(text, 1) != Some(&[]) {
        return None;
    }
    let number = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number <= EXACT_MAX).then_some(number)
}

/// [`whole`], with a sign before it where it is negative.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(text) => i64::try_from(whole(text)?).ok()?.checked_neg(),
        None => i64::try_from(whole(text)?).ok(),
    }
}

/// Returns an instant in milliseconds as microseconds, rounded up.
pub(super) fn millis(text: &[u8]) -> Option<u64> {
    micros(decimal(text)? * 1000.0)
}

/// Returns an instant in nanoseconds as microseconds, rounded up.
pub(super) fn nanos(text: &[u8]) -> Option<u64> {
    match whole_nanos(text) {
        Some(micros) => Some(micros),
        None => micros(decimal(text)? / 1000.0),
    }
}

/// [`nanos`] of up to 19 digits: exact, which a double is not.
pub(super) fn whole_nanos(text: &[u8]) -> Option<u64> {
    if text.len() > 19 || digits(text, 1) != Some(&[]) {
        return None;
    }
    let nanos: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(nanos.div_ceil(1_000)).filter(|micros| *micros <= EXACT_MAX)
}

/// Rounds microseconds up. `None` if the number is out of range.
fn micros(micros: f64) -> Option<u64> {
    whole_of(micros.ceil())
}

/// A double that is a whole number from 0 to 2^53.
pub(super) fn whole_of(number: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "2^53 is exact")]
    let fits = (0.0..=EXACT_MAX as f64).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the range just checked"
    )]
    fits.then_some(number as u64)
}
