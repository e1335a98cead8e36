//! Hosts, and targets that begin with one.

/// Returns the host without user information, which is not allowed there and could hide the host.
pub(super) fn bare(host: &str) -> &str {
    let before = host.bytes().rposition(|byte| byte == b'@');
    let start = before.map_or(0, |at| at.saturating_add(1));
    host.get(start..).unwrap_or(host)
}

/// Splits an absolute target, `http://host/path?query`, into the authority and the rest; `None` for
/// a path.
///
/// If only a query follows the authority, the rest is the whole target: path normalization finds
/// `/` in it.
pub(super) fn split(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !is_scheme {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    let path = if rest.starts_with('/') { rest } else { target };
    Some((bare(authority), path))
}

/// Returns true if two hosts are the same, regardless of their ports and case.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    without_port(one).eq_ignore_ascii_case(without_port(other))
}

/// Returns the host without its port. Colons within brackets belong to an IPv6 address.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // Colons within brackets belong to an address.
        Some((name, port)) if !port.contains(']') && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_target_has_a_host_and_a_path() {
        for (target, expected) in [
            ("/a/b", None),
            ("/a?x=http://b/c", None),
            ("//host/path", None),
            ("*", None),
            ("1http://a/b", None),
            ("http://a.example/b?c", Some(("a.example", "/b?c"))),
            ("HTTPS://a:8443/", Some(("a:8443", "/"))),
            ("http://ann:pw@a/b", Some(("a", "/b"))),
            (
                "http://[2001:db8::1]:80/b",
                Some(("[2001:db8::1]:80", "/b")),
            ),
            ("http://a", Some(("a", "http://a"))),
            ("http://a?b/c", Some(("a", "http://a?b/c"))),
        ] {
            assert_eq!(split(target), expected, "{target}");
        }
    }

    #[test]
    fn hosts_are_compared_without_ports_and_case() {
        for (one, other, same) in [
            ("a.example", "A.example:443", true),
            ("[2001:db8::1]", "[2001:DB8::1]:443", true),
            ("[2001:db8::1]", "[2001:db8::2]", false),
            ("a.example", "b.example", false),
            ("2001:db8::1", "2001:db8::2", false),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        }
    }
}
