//! Numbers, in the grammar of RFC 8259.

/// Returns the whole number at the start of `text` and its length, if there is one: digits without a leading
/// zero, below 2^64, with neither a fraction nor an exponent after them.
#[inline]
pub(super) fn whole(text: &[u8]) -> Option<(u64, usize)> {
    let mut value: u64 = 0;
    let mut len = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        len += 1;
    }
    let is_padded = len > 1 && text.first() == Some(&b'0');
    let goes_on = matches!(text.get(len), Some(b'.' | b'e' | b'E'));
    (len > 0 && !is_padded && !goes_on).then_some((value, len))
}

/// Returns the length of the number at the start of `text`, or the position at which it stops being one.
pub(super) fn scan(text: &[u8]) -> Result<usize, usize> {
    let mut at = usize::from(text.first() == Some(&b'-'));
    let starts_with_zero = text.get(at) == Some(&b'0');
    let integer = digits(text, at)?;
    if starts_with_zero && integer > at + 1 {
        return Err(at + 1);
    }
    at = integer;
    if text.get(at) == Some(&b'.') {
        at = digits(text, at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let is_signed = matches!(text.get(at + 1), Some(b'+' | b'-'));
        at = digits(text, at + 1 + usize::from(is_signed))?;
    }
    Ok(at)
}

/// Returns the end of the digits that start at `at`. There has to be at least one.
fn digits(text: &[u8], at: usize) -> Result<usize, usize> {
    let rest = text.get(at..).unwrap_or_default();
    match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(at),
        count => Ok(at + count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_exactly() {
        assert_eq!(whole(b"0,"), Some((0, 1)));
        assert_eq!(whole(b"18446744073709551615}"), Some((u64::MAX, 20)));
        for text in ["", "-1", "01", "1.0", "1e3", "18446744073709551616", "x"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_follow_the_json_grammar() {
        for text in ["0", "-0", "12", "1.5", "-1.25e+10", "1E-2", "0.0"] {
            assert_eq!(scan(text.as_bytes()), Ok(text.len()), "{text}");
        }
        for (text, at) in [
            ("-", 1),
            ("01", 1),
            ("1.", 2),
            ("1e", 2),
            ("1e+", 3),
            (".5", 0),
        ] {
            assert_eq!(scan(text.as_bytes()), Err(at), "{text}");
        }
    }
}
