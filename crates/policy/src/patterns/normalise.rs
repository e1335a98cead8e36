//! The normalised form of paths, so that no notation evades a pattern.

use super::escape::{push_percent, unhex};

/// Returns the normalised form of the path in `target`, or `None` if it has no path at all.
///
/// 1. Query and fragment are dropped, and so is the origin of an absolute target
///    (`http://host/path`); an origin alone has the path `/`.
/// 2. Escaped unreserved characters are decoded (`%41` is `A`). Other escapes stay, in upper case. Characters
///    that a URI cannot contain, such as spaces and non-ASCII characters, are escaped. An invalid escape
///    (`%zz`) stays as it is.
/// 3. Only then are empty and dot segments removed, so that `%2e%2e` climbs like `..`.
///
/// The result starts with `/` and does not end with it, except for `/` itself. Normalisation is idempotent. A
/// path in normalised form is returned as it is; any other is written into `buffer`.
pub fn normalise<'a>(target: &'a str, buffer: &'a mut String) -> Option<&'a str> {
    if let Some(path) = plainly_normal(target) {
        return Some(path);
    }
    let before_query = target.split(['?', '#']).next().unwrap_or_default();
    let path = match after_origin(before_query) {
        Some("") => "/",
        Some(path) => path,
        None if before_query.is_empty() => return None,
        None => before_query,
    };
    buffer.clear();
    for segment in path.split('/') {
        push_segment(buffer, segment);
    }
    if buffer.is_empty() {
        buffer.push('/');
    }
    Some(buffer)
}

/// Returns the path if one quick pass shows that it is normalised. Returns `None` in doubt; the slow path
/// then gives the same result.
fn plainly_normal(target: &str) -> Option<&str> {
    let mut previous = 0;
    let mut end = target.len();
    for (at, byte) in target.bytes().enumerate() {
        let is_plain = match byte {
            b'?' | b'#' => {
                end = at;
                break;
            }
            b'/' | b'.' => previous != b'/',
            b'%' => false,
            _ => byte.is_ascii_graphic(),
        };
        if !is_plain {
            return None;
        }
        previous = byte;
    }
    let path = target.get(..end)?;
    (path.starts_with('/') && (previous != b'/' || end == 1)).then_some(path)
}

/// Returns the text after scheme and authority, if `target` begins with them.
fn after_origin(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let path_at = rest.find('/').unwrap_or(rest.len());
    if is_scheme { rest.get(path_at..) } else { None }
}

/// Appends `/` and the segment, unless it is empty or a dot segment; `..` removes the last segment.
fn push_segment(path: &mut String, segment: &str) {
    let start = path.len();
    path.push('/');
    push_decoded(path, segment);
    match path.get(start + 1..) {
        Some("" | ".") => path.truncate(start),
        Some("..") => {
            path.truncate(start);
            path.truncate(path.rfind('/').unwrap_or(0));
        }
        _ => {}
    }
}

/// Appends one segment in normalised form. The caller handles dot segments.
pub(crate) fn push_decoded(path: &mut String, segment: &str) {
    for byte in segment.bytes() {
        if byte.is_ascii_graphic() {
            path.push(char::from(byte));
            settle_escape(path);
        } else {
            push_percent(path, byte);
        }
    }
}

/// Rewrites an escape that the last character completed.
///
/// Reads the output instead of the input, because decoding can complete an escape: `%%34%31` is `%41`, which
/// is `A`. A second pass would decode it, and so would the next program that reads the path.
fn settle_escape(path: &mut String) {
    while let [.., b'%', high, low] = path.as_bytes()
        && let (Some(high), Some(low)) = (unhex(*high), unhex(*low))
    {
        let byte = high << 4 | low;
        path.truncate(path.len() - 3);
        if !is_unreserved(byte) {
            push_percent(path, byte);
            return;
        }
        path.push(char::from(byte));
    }
}

/// Returns true for characters that mean the same escaped or not (RFC 3986, 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
