//! Request lines: `GET /path?query HTTP/1.1`.
//!
//! Servers log what the client sent, so a line may be anything. One without a method and a target is skipped
//! and counted by the caller, like every line that is not a request.

use std::borrow::Cow;
use tidegate_frontends::wire::question::JsonQuestion;

/// The parts of a request line or a target.
#[derive(Debug, Default, PartialEq, Eq)]
struct TargetParts<'t> {
    method: Option<&'t str>,
    host: Option<&'t str>,
    path: Option<&'t str>,
}

/// Sets the fields from a request line. Returns false if it is invalid.
pub(super) fn read_line<'a>(line: Cow<'a, str>, question: &mut JsonQuestion<'a>) -> bool {
    let read = match line {
        Cow::Borrowed(line) => split_line(line).map(|parts| fill(&parts, question, Cow::Borrowed)),
        Cow::Owned(line) => split_line(&line).map(|parts| fill(&parts, question, owned)),
    };
    read.is_some()
}

/// Sets the fields from a request target.
pub(super) fn read<'a>(target: Cow<'a, str>, question: &mut JsonQuestion<'a>) {
    match target {
        Cow::Borrowed(target) => fill(&split_target(target), question, Cow::Borrowed),
        Cow::Owned(target) => fill(&split_target(&target), question, owned),
    }
}

fn owned<'a>(text: &str) -> Cow<'a, str> {
    Cow::Owned(text.to_owned())
}

fn fill<'t, 'a, F>(parts: &TargetParts<'t>, question: &mut JsonQuestion<'a>, keep: F)
where
    F: Fn(&'t str) -> Cow<'a, str>,
{
    if let Some(method) = parts.method {
        question.method = Some(keep(method));
    }
    if let Some(host) = parts.host {
        question.host = Some(keep(host));
    }
    question.path = parts.path.map(keep);
}

/// Splits a request line. Input of untrusted clients is not always a valid one.
fn split_line(line: &str) -> Option<TargetParts<'_>> {
    let (method, rest) = line.split_once(' ')?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if method.is_empty() || !method.bytes().all(is_token) {
        return None;
    }
    // A target with spaces is invalid, but is logged nevertheless.
    let target = match rest.rsplit_once(' ') {
        Some((target, version)) if version.starts_with("HTTP/") => target,
        _ => rest,
    };
    if target.is_empty() {
        return None;
    }
    let parts = match method {
        // The target is a host without a path.
        "CONNECT" => TargetParts {
            host: Some(target),
            ..TargetParts::default()
        },
        _ => split_target(target),
    };
    Some(TargetParts {
        method: Some(method),
        ..parts
    })
}

/// Splits a target, which may be an absolute URL for a proxy.
fn split_target(target: &str) -> TargetParts<'_> {
    let scheme = target.split_once("://");
    let Some((_, rest)) =
        scheme.filter(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphabetic()))
    else {
        return TargetParts {
            path: Some(target),
            ..TargetParts::default()
        };
    };
    let slash = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(slash).unwrap_or((rest, ""));
    let path = if path.is_empty() { "/" } else { path };
    TargetParts {
        host: Some(host),
        path: Some(path),
        ..TargetParts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'t>(method: &'t str, host: &'t str, path: &'t str) -> TargetParts<'t> {
        let known = |text: &'t str| (!text.is_empty()).then_some(text);
        TargetParts {
            method: known(method),
            host: known(host),
            path: known(path),
        }
    }

    #[test]
    fn request_lines_are_split_into_parts() {
        for (line, expected) in [
            ("GET / HTTP/1.1", parts("GET", "", "/")),
            (
                "GET /a?b=http://c HTTP/2.0",
                parts("GET", "", "/a?b=http://c"),
            ),
            ("GET /a b HTTP/1.0", parts("GET", "", "/a b")),
            ("GET /old", parts("GET", "", "/old")),
            ("OPTIONS * HTTP/1.1", parts("OPTIONS", "", "*")),
            ("GET http://h:80/a HTTP/1.1", parts("GET", "h:80", "/a")),
            ("GET http://h HTTP/1.1", parts("GET", "h", "/")),
            ("GET http://h?q HTTP/1.1", parts("GET", "h", "?q")),
            ("CONNECT h:443 HTTP/1.1", parts("CONNECT", "h:443", "")),
        ] {
            assert_eq!(split_line(line), Some(expected), "{line}");
        }
        for line in ["", "-", "GET", "GET ", "\u{16}\u{3}\u{1} x", " / HTTP/1.1"] {
            assert_eq!(split_line(line), None, "{line}");
        }
    }

    #[test]
    fn owned_text_is_not_copied() {
        let mut question = JsonQuestion::default();
        assert!(read_line(
            Cow::Owned("GET http://h/a HTTP/1.1".to_owned()),
            &mut question
        ));
        assert_eq!(question.host.as_deref(), Some("h"));
        assert_eq!(question.path.as_deref(), Some("/a"));
        read(Cow::Owned("/b".to_owned()), &mut question);
        assert_eq!(question.path.as_deref(), Some("/b"));
    }
}
