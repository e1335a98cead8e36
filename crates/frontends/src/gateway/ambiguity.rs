//! Ambiguous requests: two programs could read different hosts or different paths in them.
//!
//! Tidegate selects limits and routes by host and path. The upstream must read the same host and path, or
//! a client could reach one resource and be counted for another.

use super::strict_path;
use http::header::HOST;
use http::uri::Authority;
use http::{Request, Uri, Version};
use tidegate_policy::route::Paths;

/// Returns the ambiguity of a request, if it has one, with paths interpreted according to `paths`.
pub(super) fn doubt<B>(request: &Request<B>, paths: Paths) -> Option<&'static str> {
    let uri = request.uri();
    // To look through the few names of a request is cheaper than a lookup.
    let fields = request.headers().iter();
    let mut hosts = fields.filter(|(name, _)| **name == HOST);
    let host = hosts.next().map(|(_, host)| host.as_bytes());
    // HTTP/1 is parsed strictly before it gets here. HTTP/2 is not, and may have no `Host`, or several.
    if hosts.next().is_some() {
        return Some("duplicate `Host`");
    }
    if request.version() == Version::HTTP_2 && host.or(authority(uri)).is_none() {
        return Some("`Host` is missing");
    }
    if host.is_some_and(|host| !is_host(host)) {
        return Some("`Host` is not a valid host");
    }
    if let Some(why) = uri.authority().and_then(|_| doubtful_authority(uri, host)) {
        return Some(why);
    }
    doubtful_path(uri).or_else(|| match paths {
        Paths::Strict => strict_path::ambiguity(uri.path()),
        Paths::Lenient => None,
    })
}

fn authority(uri: &Uri) -> Option<&[u8]> {
    uri.authority()
        .map(|authority| authority.as_str().as_bytes())
}

/// Returns the ambiguity of a target's path, if it has one.
fn doubtful_path(uri: &Uri) -> Option<&'static str> {
    let path = uri.path();
    // A path without either of these cannot climb, and few paths have one.
    if !path.contains("..") && !path.contains('%') {
        return None;
    }
    if path.split('/').any(hides_dots) {
        return Some("the path contains a hidden `..` segment");
    }
    climbs(path).then_some("the path leads above the root")
}

/// Returns true if some programs would see `..` in a segment that is a name to others: before a
/// parameter, or next to a character that may or may not be a separator.
fn hides_dots(segment: &str) -> bool {
    const BREAKS: [&str; 6] = [";", "\\", "%5c", "%2f", "%3b", "%00"];
    let segment = segment.to_ascii_lowercase();
    if !BREAKS.iter().any(|it| segment.contains(it)) {
        return false;
    }
    let mut plain = segment.replace("%2e", ".");
    for separator in BREAKS {
        plain = plain.replace(separator, "/");
    }
    plain.split('/').any(|part| part == "..")
}

/// Returns the ambiguity of a target that contains an authority.
fn doubtful_authority(uri: &Uri, host: Option<&[u8]>) -> Option<&'static str> {
    let authority = uri.authority()?.as_str();
    // An authority alone is a target of `CONNECT` only (RFC 9112, 3.2.3).
    if uri.scheme().is_none() {
        return Some("the target is neither a path nor a URL");
    }
    if authority.contains('@') {
        return Some("the target contains a user");
    }
    match host {
        // HTTP/2 has the host in the target alone. It is held to what `Host` is held to.
        None => (!is_host(authority.as_bytes())).then_some("the target has no valid host"),
        // RFC 9112, 3.2.2 and RFC 9113, 8.3.1 require clients to send the same host in both places.
        Some(host) => (!host.eq_ignore_ascii_case(authority.as_bytes()))
            .then_some("the target and `Host` name different hosts"),
    }
}

/// Returns true if this can be a host, optionally with a port. Commas are valid in a name, but no real
/// host has one, and some programs stop reading at the comma.
fn is_host(host: &[u8]) -> bool {
    // The upstream fills in an empty host.
    host.is_empty()
        || is_usual(host)
        || (!host.contains(&b',') && !host.contains(&b'@') && Authority::try_from(host).is_ok())
}

/// Returns true if a host has the form that nearly all have: letters, digits, dots and hyphens, perhaps
/// with a port. Such hosts need no parser.
fn is_usual(host: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let end = host.iter().position(|byte| !is_plain(byte));
    match end.and_then(|end| host.split_at_checked(end)) {
        None => true,
        Some(([_, ..], [b':', port @ ..])) => {
            matches!(port.len(), 1..=5) && port.iter().all(u8::is_ascii_digit)
        }
        Some(_) => false,
    }
}

/// Returns true if a path has more `..` than segments before them. Programs disagree about the resolved
/// path then, and if an upstream has a base path, the request would leave it.
fn climbs(path: &str) -> bool {
    let mut depth = 0_usize;
    for segment in path.split('/') {
        match dots(segment) {
            // Programs that merge slashes ignore an empty segment.
            Some(0 | 1) => {}
            Some(2) => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => depth = depth.saturating_add(1),
        }
    }
    false
}

/// Returns true if a path has dot segments.
pub(super) fn has_steps(path: &str) -> bool {
    (path.contains("/.") || path.contains('%'))
        && path.split('/').any(|it| matches!(dots(it), Some(1 | 2)))
}

/// Returns the number of dots in a segment that consists of dots only, escaped or not.
fn dots(segment: &str) -> Option<usize> {
    let mut rest = segment.as_bytes();
    let mut count = 0;
    loop {
        rest = match rest {
            [] => return Some(count),
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return None,
        };
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_above_the_root_is_detected() {
        for path in [
            "/..",
            "/../a",
            "/a/../..",
            "/a/../../b",
            "/%2e%2e/a",
            "/.%2E/a",
            "/%2e./a",
            "//../a",
            "/./../a",
            "/a//../../b",
            "/a/%2e/%2e%2e/..",
        ] {
            assert!(climbs(path), "{path}");
        }
        for path in [
            "",
            "*",
            "/",
            "/a/..",
            "/a/../b",
            "/a/b/../../c",
            "/...",
            "/..a",
            "/a..",
            "/%2e",
            "/.",
            "/%2e%2e%2e/a",
            "/%252e%252e/a",
            "/a%2f..",
            "/%zz/..",
        ] {
            assert!(!climbs(path), "{path}");
        }
    }

    #[test]
    fn a_disguised_parent_segment_is_ambiguous() {
        for segment in [
            "..%2fapi",
            "..;",
            "..;a=b",
            "..\\api",
            "%2e%2e%5Capi",
            "a%2f..",
            "..%00",
        ] {
            assert!(hides_dots(segment), "{segment}");
        }
        for segment in ["a%2fb", "a;b=c", "..a;b", "a..%2f", "%zz", "...;"] {
            assert!(!hides_dots(segment), "{segment}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for host in [
            "",
            "a",
            "A.example:80",
            "[2001:db8::1]:443",
            "192.0.2.1",
            "xn--bcher-kva.example",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "a b",
            "a,b",
            "a/b",
            "a?b",
            "a#b",
            "u@a",
            "a\\b",
            "\"a\"",
            "b\u{fc}cher",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn common_hosts_match_a_full_parser() {
        for host in [
            "a",
            "-",
            "A.example",
            "1",
            "192.0.2.1:8080",
            "a:0",
            "a:99999",
            ".:1",
        ] {
            assert!(is_usual(host.as_bytes()), "{host}");
            assert!(Authority::try_from(host).is_ok(), "{host}");
        }
        for host in [
            ":80", "a:", "a:b", "a:123456", "a_b", "[::1]", "u@a", "a,b", "a:1:2",
        ] {
            assert!(!is_usual(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn http2_names_one_host() {
        let doubt = |target: &str, hosts: &[&str]| {
            let request = Request::get(target).version(Version::HTTP_2);
            let request = hosts
                .iter()
                .fold(request, |it, host| it.header(HOST, *host));
            doubt(&request.body(()).unwrap(), Paths::Strict)
        };
        assert_eq!(doubt("https://a/", &[]), None);
        assert_eq!(doubt("/", &["a"]), None);
        assert!(doubt("/", &["bank.example", "x"]).is_some());
        assert!(doubt("/", &[]).is_some());
    }

    #[test]
    fn a_target_and_a_host_header_must_agree() {
        let doubt = |target: &str, host: &str| {
            let request = Request::get(target).header(HOST, host);
            doubt(&request.body(()).unwrap(), Paths::Strict)
        };
        assert_eq!(doubt("/a?b", "a"), None);
        assert_eq!(doubt("http://a:80/b", "A:80"), None);
        assert_eq!(doubt("*", "a"), None);
        assert!(doubt("http://a/", "b").is_some());
        assert!(doubt("http://a/", "a:80").is_some());
        assert!(doubt("http://u@a/", "a").is_some());
        assert!(doubt("a", "a").is_some());
        assert!(doubt("a:80", "a:80").is_some());
    }
}
