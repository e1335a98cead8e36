//! Requests of which two could believe that they are for different hosts or different things.
//!
//! Limits are looked up by host and path, and so are routes. Whoever answers must read the same in them,
//! or a client could ask for one thing and be counted for another.

use super::strict_path;
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderValue, Request, Uri, Version};
use tidegate_policy::route::Paths;

/// What is doubtful about a request, if anything is, where paths are read like that.
pub(super) fn doubt<B>(request: &Request<B>, paths: Paths) -> Option<&'static str> {
    let uri = request.uri();
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().map(HeaderValue::as_bytes);
    // HTTP/1 is read strictly before it comes here; HTTP/2 is not, and may name none, or several.
    if hosts.next().is_some() {
        return Some("`Host` is there more than once");
    }
    if request.version() == Version::HTTP_2 && host.or(authority(uri)).is_none() {
        return Some("the request is for no host");
    }
    if host.is_some_and(|host| !is_host(host)) {
        return Some("`Host` is not the name or address of a host");
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

/// What is doubtful about the path of a target.
fn doubtful_path(uri: &Uri) -> Option<&'static str> {
    let path = uri.path();
    // Nothing climbs without one of them, and few paths have one.
    if !path.contains("..") && !path.contains('%') {
        return None;
    }
    if path.split('/').any(hides_dots) {
        return Some("the path hides a step up, which some would take and others not");
    }
    climbs(path).then_some("the path leads above its root")
}

/// Whether some would find `..` in a segment where others see a name: before a parameter, or beside what
/// may or may not be a separator.
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

/// What is doubtful about a target that says by itself whom it is for.
fn doubtful_authority(uri: &Uri, host: Option<&[u8]>) -> Option<&'static str> {
    let authority = uri.authority()?.as_str();
    // A host alone is a target of `CONNECT` only (RFC 9112, 3.2.3).
    if uri.scheme().is_none() {
        return Some("the target is neither a path nor a whole URL");
    }
    if authority.contains('@') {
        return Some("the target names a user");
    }
    // RFC 9112, 3.2.2 and RFC 9113, 8.3.1 have clients say the same in both places.
    host.is_some_and(|host| !host.eq_ignore_ascii_case(authority.as_bytes()))
        .then_some("the target and `Host` name different hosts")
}

/// Whether it can be a host, perhaps with a port. Commas may be part of a name, but nobody has one that
/// is, and some take what is before them for all of it.
fn is_host(host: &[u8]) -> bool {
    // None is for the upstream to fill in.
    host.is_empty()
        || is_usual(host)
        || (!host.contains(&b',') && !host.contains(&b'@') && Authority::try_from(host).is_ok())
}

/// Returns true if a host is a name or an address as nearly all are: letters, digits, dots and hyphens,
/// perhaps with a port. It spares them a parser.
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

/// Whether a path has more `..` than there are segments before them. What remains of it then is for
/// those to say who resolve it, and where an upstream has a path of its own, it would be left.
fn climbs(path: &str) -> bool {
    let mut depth = 0_usize;
    for segment in path.split('/') {
        match dots(segment) {
            // An empty segment is none to those who merge slashes.
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

/// Whether a path has segments that are steps and not names.
pub(super) fn has_steps(path: &str) -> bool {
    (path.contains("/.") || path.contains('%'))
        && path.split('/').any(|it| matches!(dots(it), Some(1 | 2)))
}

/// How many dots a segment is made of, if it is made of nothing else, however they are written.
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
    fn a_path_climbs_if_it_leads_above_its_root() {
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
    fn a_step_up_that_some_do_not_see_is_doubtful() {
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
    fn a_usual_host_is_one_that_a_parser_takes() {
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
    fn a_target_and_a_host_say_the_same() {
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
