//! Checks for text that can be an identity.

/// Returns the text of an identity. Returns `None` if it is empty, not UTF-8, or has control characters.
pub(super) fn identity(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes.trim_ascii()).ok()?;
    is_identity(text).then_some(text)
}

/// Returns true if `text` can be an identity. Control characters are rejected because they can make one
/// identity look like another.
pub(super) fn is_identity(text: &str) -> bool {
    !text.is_empty() && (is_plain(text) || !text.chars().any(char::is_control))
}

/// Returns true if `text` is printable ASCII, which nearly all texts are. Without an exit before the end, the
/// check processes many bytes at a time.
fn is_plain(text: &str) -> bool {
    let is_odd = |byte: &u8| !matches!(byte, b' '..=b'~');
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let odd = |bytes: &[u8]| bytes.iter().fold(false, |odd, byte| odd | is_odd(byte));
    !words.iter().any(|word| odd(word)) && !odd(rest)
}

/// Returns the only value. With two values, the one that the application behind Tidegate would use is
/// unknown.
pub(super) fn only<T>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let value = values.next();
    if values.next().is_some() { None } else { value }
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn an_identity_is_printable_text() {
        for (bytes, text) in [
            (&b"ann"[..], "ann"),
            (b" ann\t", "ann"),
            (b"a b", "a b"),
            ("jörg".as_bytes(), "jörg"),
        ] {
            assert_eq!(identity(bytes), Some(text));
        }
        for bytes in [
            &b""[..],
            b"  ",
            b"a\0b",
            b"a\nb",
            b"\xff",
            "a\u{85}".as_bytes(),
        ] {
            assert_eq!(identity(bytes), None, "{bytes:?}");
        }
    }
}
