//! Unambiguous text: percent escapes and hexadecimal digits.

/// Appends `value` so that nothing in it can end a part, a limit or a name: all bytes except letters, digits
/// and `.` `_` `~` `-` are escaped.
pub(crate) fn push_value(text: &mut String, value: &str) {
    push_escaped(text, value, is_value);
}

/// Like [`push_value`], for text before a `:` or `~`, which also escapes `~`.
pub(crate) fn push_name(text: &mut String, name: &str) {
    push_escaped(text, name, is_plain);
}

/// Returns true if this byte of a value needs no escape.
#[inline]
pub(crate) fn is_value(byte: u8) -> bool {
    // The table covers all values of a byte, so the compiler removes the bounds check.
    VALUES.get(usize::from(byte)).is_some_and(|is| *is)
}

fn is_plain(byte: u8) -> bool {
    is_value(byte) && byte != b'~'
}

/// A table, because every byte of every key is checked. Comparisons with ranges take four times as long.
static VALUES: [bool; 256] = {
    let mut values = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x7f {
        // A constant index: an invalid one would not compile.
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            values[byte as usize] =
                byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'~');
        }
        byte += 1;
    }
    values
};

fn push_escaped(text: &mut String, value: &str, is_plain: impl Fn(u8) -> bool) {
    // Nearly all values are plain and are copied at once.
    if value.bytes().all(&is_plain) {
        text.push_str(value);
        return;
    }
    for byte in value.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            push_percent(text, byte);
        }
    }
}

/// Appends `%` and two digits, in upper case as RFC 3986 recommends.
pub(crate) fn push_percent(text: &mut String, byte: u8) {
    text.push('%');
    text.push(hex(byte >> 4).to_ascii_uppercase());
    text.push(hex(byte & 15).to_ascii_uppercase());
}

/// Appends two digits for each byte, in lower case.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push(hex(byte >> 4));
        text.push(hex(byte & 15));
    }
}

/// Returns the hexadecimal digit of a number below 16.
pub(crate) fn hex(number: u8) -> char {
    char::from(match number {
        0..=9 => b'0' + number,
        _ => b'a' + (number & 15) - 10,
    })
}

/// Returns the value of a hexadecimal digit in either case.
pub(crate) fn unhex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
