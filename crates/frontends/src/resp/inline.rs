//! Inline commands, as typed by a person: words separated by blanks, some of them quoted.

use super::parse::place;
use smallvec::SmallVec;

/// Splits `line` into words like Redis. Writes the unquoted words into `text`, and returns the range of
/// each; `None` if the quotes are not balanced.
///
/// In double quotes `\n \r \t \b \a \xHH` have their meanings in C, and any other byte after a backslash
/// stands for itself. In single quotes `\'` is a quote. A closing quote ends the word.
pub(super) fn split(
    line: &[u8],
    text: &mut Vec<u8>,
    places: &mut SmallVec<[(u32, u32); 8]>,
) -> Option<()> {
    text.clear();
    places.clear();
    let mut rest = line;
    loop {
        while let [byte, behind @ ..] = rest
            && is_blank(*byte)
        {
            rest = behind;
        }
        if rest.is_empty() {
            return Some(());
        }
        let start = text.len();
        rest = word(rest, text)?;
        places.push((place(start), place(text.len())));
    }
}

/// Parses one word, and returns the rest of the line.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return Some(rest),
            [byte, ..] if is_blank(*byte) => return Some(rest),
            [b'"', behind @ ..] => return closed(double_quoted(behind, text)?),
            [b'\'', behind @ ..] => return closed(single_quoted(behind, text)?),
            [byte, behind @ ..] => {
                text.push(*byte);
                rest = behind;
            }
        }
    }
}

/// Returns the text after a closing quote, which must be a blank or the end.
fn closed(behind: &[u8]) -> Option<&[u8]> {
    let is_closed = behind.first().is_none_or(|byte| is_blank(*byte));
    is_closed.then_some(behind)
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, behind) = match rest {
            [] => return None,
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (unhex(*high) << 4 | unhex(*low), behind)
            }
            [b'\\', escaped, behind @ ..] => (unescape(*escaped), behind),
            [byte, behind @ ..] => (*byte, behind),
        };
        text.push(byte);
        rest = behind;
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, behind) = match rest {
            [] => return None,
            [b'\'', behind @ ..] => return Some(behind),
            [b'\\', b'\'', behind @ ..] => (b'\'', behind),
            [byte, behind @ ..] => (*byte, behind),
        };
        text.push(byte);
        rest = behind;
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn unhex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10) & 15,
    }
}

/// Returns true if C's `isspace` does.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}
