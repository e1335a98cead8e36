//! One element of `Forwarded` (RFC 7239), such as `for="[2001:db8::1]:4711";proto=https`.

use super::node::node;
use smallvec::SmallVec;
use std::net::IpAddr;

/// Returns the address of the parameter `for`, if it occurs exactly once and holds an address.
pub(super) fn node_of(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = element;
    loop {
        let (name, after) = split_at(rest, b'=')?;
        let (value, after) = value(after)?;
        if name.trim_ascii().eq_ignore_ascii_case(b"for") {
            if found.is_some() {
                return None;
            }
            found = Some(value);
        }
        match after.trim_ascii_start() {
            [] => break,
            // A trailing semicolon starts no further parameter.
            [b';', after @ ..] if after.trim_ascii().is_empty() => break,
            [b';', after @ ..] => rest = after,
            _ => return None,
        }
    }
    node(&found?)
}

/// An unquoted value. The longest address with a port fits inline.
type ForwardedValue = SmallVec<[u8; 64]>;

/// Returns a value without its quotes, and the text after it.
fn value(text: &[u8]) -> Option<(ForwardedValue, &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        return unquoted(quoted);
    }
    let end = text.iter().position(|byte| *byte == b';');
    let (value, after) = text.split_at_checked(end.unwrap_or(text.len()))?;
    let value = value.trim_ascii_end();
    let is_sound = !value.is_empty() && !value.contains(&b'"');
    is_sound.then(|| (ForwardedValue::from_slice(value), after))
}

/// Returns the text before the closing quote, and the text after it.
fn unquoted(text: &[u8]) -> Option<(ForwardedValue, &[u8])> {
    let mut value = ForwardedValue::new();
    let mut bytes = text.iter();
    loop {
        match bytes.next()? {
            b'"' => return Some((value, bytes.as_slice())),
            b'\\' => value.push(*bytes.next()?),
            byte => value.push(*byte),
        }
    }
}

/// Returns the text before the first `byte`, and the text after it.
fn split_at(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|found| *found == byte)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::node_of;

    #[test]
    fn the_address_is_found_among_other_parameters() {
        for (text, address) in [
            ("for=192.0.2.1", "192.0.2.1"),
            ("For=192.0.2.1;Proto=https", "192.0.2.1"),
            ("by=10.0.0.1;FOR=192.0.2.1;host=example.com", "192.0.2.1"),
            ("for=\"192.0.2.1:4711\"", "192.0.2.1"),
            ("for=192.0.2.1:4711", "192.0.2.1"),
            (
                "for=\"[2001:db8::1]:4711\";by=\"[2001:db8::2]\"",
                "2001:db8::1",
            ),
            ("for=\"\\[2001:db8::1\\]\"", "2001:db8::1"),
            ("host=\"a;for=9.9.9.9\";for=192.0.2.1", "192.0.2.1"),
            ("for=192.0.2.1;", "192.0.2.1"),
            ("for=192.0.2.1 ; proto=http", "192.0.2.1"),
            ("host=\"\";for=192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(node_of(text.as_bytes()), address.parse().ok(), "{text}");
        }
    }

    #[test]
    fn malformed_and_obfuscated_nodes_are_no_address() {
        for text in [
            "",
            "for",
            "for=",
            "for=unknown",
            "for=_gazonk",
            "for=\"_gazonk\"",
            "for=\"192.0.2.1",
            "for=\"192.0.2.1\"x",
            "for=192.0.2.1\"",
            "for=192.0.2.1;for=192.0.2.2",
            "proto=https",
            "for=192.0.2.1;proto",
            "fore=192.0.2.1",
            "for =\"192.0.2.1\\",
        ] {
            assert_eq!(node_of(text.as_bytes()), None, "{text}");
        }
    }
}
