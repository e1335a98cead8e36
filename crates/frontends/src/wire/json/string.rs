//! Strings: their ends and their escapes.

/// The result of scanning the text after an opening quote.
pub(super) enum StringScan {
    /// This many bytes without an escape, then the closing quote.
    Closed(usize),
    /// This many bytes, then an escape.
    Escaped(usize),
    /// An error after this many bytes, with its message.
    Broken(usize, &'static str),
}

const NOT_CLOSED: &str = "this string is not closed";
const BAD_ESCAPE: &str = "this is not a JSON escape";
const LONE_SURROGATE: &str = "this is an unpaired surrogate";

/// Finds the first byte that is not a plain part of the string.
#[inline]
pub(super) fn scan(text: &[u8]) -> StringScan {
    let len = plain(text);
    match text.get(len) {
        Some(b'"') => StringScan::Closed(len),
        Some(b'\\') => StringScan::Escaped(len),
        Some(_) => StringScan::Broken(len, "this character has to be escaped"),
        None => StringScan::Broken(len, NOT_CLOSED),
    }
}

/// Returns the number of bytes before a quote, a backslash or a control character.
///
/// Reads eight bytes at a time, because most of the reading time would be spent here. In a word that holds
/// eight bytes, a byte below `n` (at most 128) borrows from its own top bit when `n` is subtracted; that, if
/// the bit was not set before, marks it. A borrow may mark a byte above it by mistake, but never one below,
/// and the lowest is the first.
#[inline]
fn plain(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & TOPS;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let mut rest = text;
    while let Some((eight, after)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        let special = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
        if special != 0 {
            let before = usize::try_from(special.trailing_zeros() / 8).unwrap_or(0);
            return text.len() - rest.len() + before;
        }
        rest = after;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let before = rest.iter().position(is_special).unwrap_or(rest.len());
    text.len() - rest.len() + before
}

/// Returns the string after an opening quote, and the position of its closing quote; or the position and
/// message of an error.
pub(super) fn unescape(text: &str) -> Result<(String, usize), (usize, &'static str)> {
    let mut string = String::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let (plain, is_closed) = match scan(rest.as_bytes()) {
            StringScan::Closed(len) => (len, true),
            StringScan::Escaped(len) => (len, false),
            StringScan::Broken(len, why) => return Err((at + len, why)),
        };
        string.push_str(rest.get(..plain).unwrap_or_default());
        at += plain;
        if is_closed {
            return Ok((string, at));
        }
        let (c, len) =
            escape(rest.as_bytes().get(plain..).unwrap_or_default()).map_err(|why| (at, why))?;
        string.push(c);
        at += len;
    }
}

/// Returns the character that the escape at the start of `text` means, and the escape's length.
fn escape(text: &[u8]) -> Result<(char, usize), &'static str> {
    let c = match text.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text),
        Some(_) => return Err(BAD_ESCAPE),
        None => return Err(NOT_CLOSED),
    };
    Ok((c, 2))
}

/// Does the same for `\uXXXX`, and for the pair of escapes that means a character beyond U+FFFF.
fn unicode(text: &[u8]) -> Result<(char, usize), &'static str> {
    let high = unit(text).ok_or(BAD_ESCAPE)?;
    if let Some(c) = char::from_u32(high) {
        return Ok((c, 6));
    }
    let low = text.get(6..).and_then(unit).ok_or(LONE_SURROGATE)?;
    if !(0xd800..0xdc00).contains(&high) || !(0xdc00..0xe000).contains(&low) {
        return Err(LONE_SURROGATE);
    }
    let c = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    char::from_u32(c).map(|c| (c, 12)).ok_or(LONE_SURROGATE)
}

/// Returns the number in `\uXXXX`.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digit = |value: u32, byte: &u8| Some(value * 16 + char::from(*byte).to_digit(16)?);
    digits.iter().try_fold(0, digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_wise_scan_equals_the_byte_wise_scan() {
        let all =
            (0..=u8::MAX).flat_map(|a| [0, 0x1f, b'!', b'"', b'#', b'\\', 0x80].map(|b| (a, b)));
        for (first, second) in all {
            for at in 0..20 {
                let mut text = vec![b'x'; 20];
                text[at] = first;
                text[(at * 7 + 3) % 20] = second;
                let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                let slow = text.iter().position(is_special).unwrap_or(20);
                assert_eq!(plain(&text), slow, "{text:?}");
            }
        }
    }

    #[test]
    fn escapes_are_decoded_as_in_the_standard() {
        for (text, expected) in [
            (r#"\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#"a\u0041\u00fcb""#, "aAüb"),
            (r#"\ud83d\ude00!""#, "😀!"),
            (r#"ü\n""#, "ü\n"),
        ] {
            assert_eq!(
                unescape(text),
                Ok((expected.to_owned(), text.len() - 1)),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_escapes_are_rejected_at_their_position() {
        for (text, at, why) in [
            (r#"ab\x41""#, 2, BAD_ESCAPE),
            (r#"\u12g4""#, 0, BAD_ESCAPE),
            (r#"\u+123""#, 0, BAD_ESCAPE),
            (r"\u12", 0, BAD_ESCAPE),
            (r"\", 0, NOT_CLOSED),
            (r"\n\n", 4, NOT_CLOSED),
            (r#"x\ud83d""#, 1, LONE_SURROGATE),
            (r#"\ude00\ud83d""#, 0, LONE_SURROGATE),
            (r#"\ud83d\u0041""#, 0, LONE_SURROGATE),
        ] {
            assert_eq!(unescape(text), Err((at, why)), "{text}");
        }
    }
}
