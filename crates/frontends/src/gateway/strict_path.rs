//! Paths that two programs could read in two ways.
//!
//! Programs disagree about whether `%2F` and `\` separate segments, whether `;` begins a parameter that
//! is not part of the name, where a name with a NUL ends, and how many times escapes are decoded. A
//! client could use that to reach an application's `/admin` by a route other than the one for `/admin`.

/// The reason to refuse a path, and the setting that accepts it.
macro_rules! because {
    ($what:literal) => {
        concat!(
            "the path has ",
            $what,
            ", which is ambiguous; `paths: lenient` in `listen.gateway` accepts it"
        )
    };
}

/// Returns why programs could read `path` in different ways, if they could.
///
/// Dot segments and empty segments that are not escaped pass: routes and limits ignore them, and dot
/// segments are resolved before the request is passed on.
pub(super) fn ambiguity(path: &str) -> Option<&'static str> {
    let is_special = |byte: u8| matches!(byte, b'%' | b'\\' | b';');
    if !path.bytes().any(is_special) {
        return None;
    }
    let decoded = match decode(path.as_bytes()) {
        Ok(decoded) => decoded,
        Err(why) => return Some(why),
    };
    // No escape stands for a slash here, so the segments correspond.
    let segments = path.split('/').zip(decoded.split(|byte| *byte == b'/'));
    let mut escaped = segments.filter(|(raw, decoded)| raw.as_bytes() != *decoded);
    if escaped.any(|(_, decoded)| matches!(decoded, b"." | b"..")) {
        return Some(because!("an encoded dot segment (`%2E`)"));
    }
    is_overlong(&decoded).then_some(because!("a character in overlong UTF-8 (such as `%C0%AF`)"))
}

/// Decodes all escapes, including those that decoding completes (`%252F`), or returns the ambiguity.
fn decode(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut decoded: Vec<u8> = Vec::with_capacity(path.len());
    for (at, byte) in path.iter().enumerate() {
        match byte {
            b'\\' => return Err(because!("a backslash")),
            b';' => return Err(because!("a `;`")),
            b'%' if path.get(at..).and_then(escape).is_none() => {
                return Err(because!("a `%` that two hexadecimal digits do not follow"));
            }
            _ => decoded.push(*byte),
        }
        // True if the escape is in the path itself; every other one is completed by decoding.
        let mut is_nested = path.get(at.saturating_sub(2)) != Some(&b'%');
        // Each round shortens the decoded text, so all rounds together are linear.
        while let Some(start) = decoded.len().checked_sub(3)
            && let Some(byte) = decoded.get(start..).and_then(escape)
        {
            decoded.truncate(start);
            decoded.push(harmless(byte)?);
            if is_nested && is_unreserved(byte) {
                return Err(because!(
                    "a letter, a digit, `-`, `.`, `_` or `~` that is encoded twice (such as `%2561`)"
                ));
            }
            is_nested = true;
        }
    }
    Ok(decoded)
}

/// Returns the byte that an escape at the beginning of `text` stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else {
        return None;
    };
    let digit = |byte: &u8| u8::try_from(char::from(*byte).to_digit(16)?).ok();
    Some(digit(high)? << 4 | digit(low)?)
}

/// Returns the byte, unless its unescaped form has another meaning.
fn harmless(byte: u8) -> Result<u8, &'static str> {
    match byte {
        b'/' => Err(because!("an encoded slash (`%2F`)")),
        b'\\' => Err(because!("an encoded backslash (`%5C`)")),
        b';' => Err(because!("an encoded `;` (`%3B`)")),
        b'?' | b'#' => Err(because!("an encoded `?` or `#` (`%3F`, `%23`)")),
        0..=0x1f | 0x7f => Err(because!("an encoded control character (such as `%00`)")),
        _ => Ok(byte),
    }
}

/// Returns true if a character means the same with and without an escape (RFC 3986, 2.3). No client has a
/// reason to encode one twice.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns true if bytes contain an overlong UTF-8 encoding. Decoders that accept these read a slash or a
/// dot in them.
fn is_overlong(bytes: &[u8]) -> bool {
    let is_long = |pair: &[u8]| {
        matches!(
            pair,
            [0xc0 | 0xc1, ..] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]
        )
    };
    bytes.windows(2).any(is_long) || bytes.ends_with(&[0xc0]) || bytes.ends_with(&[0xc1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_two_readings_are_ambiguous() {
        for (paths, what) in [
            (
                &["/admin%2f", "/%2Fadmin", "/a%252fb", "/a%25252Fb"][..],
                "slash",
            ),
            (&["/\\admin", "/a\\..\\b"], "backslash"),
            (&["/%5cadmin", "/a%5C", "/a%255cb"], "encoded backslash"),
            (&["/admin;x", "/.;/admin", "/;/admin", "/a;b=c/d"], "a `;`"),
            (&["/admin%3bx", "/admin%3Bx", "/admin%253bx"], "encoded `;`"),
            (&["/admin%3f", "/admin%3Fx=y", "/admin%23"], "`?` or `#`"),
            (
                &[
                    "/admin%00",
                    "/%00admin",
                    "/a%0d%0ab",
                    "/a%0Ab",
                    "/a%1f",
                    "/a%7F",
                    "/a%2500",
                ],
                "control character",
            ),
            (
                &[
                    "/%2e/admin",
                    "/a/%2e%2e/admin",
                    "/.%2e/a",
                    "/%2E./a",
                    "/a/%2e",
                ],
                "dot segment",
            ),
            (
                &[
                    "/%2561dmin",
                    "/%252561dmin",
                    "/%25%36%31dmin",
                    "/%252e%252e/a",
                    "/a%252Eb",
                    "/%257Ealice",
                ],
                "encoded twice",
            ),
            (
                &["/a%", "/a%2", "/a%zz", "/a%u002f", "/%%32f"],
                "two hexadecimal digits",
            ),
            (
                &[
                    "/%c0%af",
                    "/%C1%9c",
                    "/%c0%ae%c0%ae/a",
                    "/%e0%80%af",
                    "/%f0%80%80%af",
                    "/a%c0",
                ],
                "overlong",
            ),
        ] {
            for path in paths {
                let why = ambiguity(path).unwrap_or_else(|| panic!("{path} passes"));
                assert!(why.contains(what), "{path}: {why}");
                assert!(why.contains("`paths: lenient`"), "{path}: {why}");
            }
        }
    }

    /// Programs that decode twice find `/admin` in `/%2561dmin`.
    #[test]
    fn an_ordinary_character_that_is_encoded_twice_does_not_pass() {
        for byte in 0x21..0x7f_u8 {
            let is_refused = ambiguity(&format!("/%25{byte:02x}dmin")).is_some();
            let is_special = matches!(byte, b'/' | b'\\' | b';' | b'?' | b'#');
            let is_expected = is_special || is_unreserved(byte);
            assert_eq!(is_refused, is_expected, "{}", char::from(byte));
        }
    }

    #[test]
    fn paths_with_one_reading_are_not_ambiguous() {
        for path in [
            "",
            "*",
            "/",
            "/admin",
            "/a/../b",
            "/a/./b",
            "/a//b",
            "/a%20b",
            "/a%2520b",
            "/100%25",
            "/100%25/b",
            "/%7Ealice/a:b@c!$&'()*+,=-._~",
            "/a%2Eb",
            "/%2ewell-known",
            "/%2e%2e%2e",
            "/caf%C3%A9",
            "/caf%E9",
            "/%E2%82%AC",
            "/%f0%9f%90%98",
            "/\u{fc}",
        ] {
            assert_eq!(ambiguity(path), None, "{path}");
        }
    }

    /// The time is linear; otherwise a path of 32 KiB would take seconds.
    #[test]
    fn nested_escapes_are_checked_in_linear_time() {
        let nested = format!("/%{}20", "25".repeat(16_000));
        assert_eq!(ambiguity(&nested), None);
    }
}
