//! Strings of JSON.

/// Writes `text` as a string of JSON, quotes included.
///
/// ```
/// let mut out = Vec::new();
/// tidegate_http::text::write_json_string("a \"b\"", &mut out);
/// assert_eq!(out, br#""a \"b\"""#);
/// ```
#[inline]
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_json(text, out);
    out.push(b'"');
}

/// Writes `text` as the content of a JSON string, without the quotes.
#[inline]
pub fn write_json(text: &str, out: &mut Vec<u8>) {
    if text.bytes().any(needs_escape) {
        write_escaped(text, out);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Returns true if a byte cannot be in a JSON string as it is.
#[inline]
fn needs_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

/// Writes text that contains characters to escape.
#[cold]
fn write_escaped(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => {
                let hex = |nibble: u8| {
                    if nibble < 10 {
                        b'0' + nibble
                    } else {
                        b'a' + nibble - 10
                    }
                };
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hex(byte >> 4), hex(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_written_json_parses_to_the_same_value() {
        let all: String = (0..0x80_u8).map(char::from).chain("ü😀".chars()).collect();
        for text in ["", "plain", "10/s burst 50", "a\"b\\c", all.as_str()] {
            let mut out = Vec::new();
            write_json_string(text, &mut out);
            let back: String = serde_json::from_slice(&out).expect("what we write is JSON");
            assert_eq!(back, text);
        }
    }
}
