//! Hop-by-hop fields, which belong to one connection and are not forwarded (RFC 9110, section 7.6.1).
//!
//! Fields are removed and never translated, and bodies are framed again for the next connection. Fields that a
//! client lists in `Connection` are removed as well, except the host and those that frame the message: without
//! them, client and upstream would disagree where the request ends.

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, EXPECT, HOST, HeaderName, MAX_FORWARDS, PROXY_AUTHORIZATION, SET_COOKIE,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;
use tidegate_policy::route::CLIENT_CLAIMS;

/// Fields that are not allowed in trailers.
const NOT_AFTERWARDS: [HeaderName; 12] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    HOST,
    MAX_FORWARDS,
    PROXY_AUTHORIZATION,
    SET_COOKIE,
    TRAILER,
];

/// The usual values of `Connection`.
const USUAL: [&str; 3] = ["keep-alive", "close", "upgrade"];

/// Fields that a client may not have removed by naming them in `Connection`: body framing and host.
const NEVER: [HeaderName; 3] = [HOST, CONTENT_LENGTH, TRAILER];

/// The kinds of fields that a request has, found in one pass over its names: most have none of those that
/// need work.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "kinds of fields, which combine freely"
)]
pub struct RequestFields {
    /// It has `Host`.
    pub has_host: bool,
    /// It has forwarding headers.
    pub(super) has_trace: bool,
    /// It has `Cookie`.
    pub has_cookie: bool,
    /// It has `Upgrade`.
    pub has_upgrade: bool,
    /// It has hop-by-hop fields, or names that some servers mistake for others.
    has_stripped: bool,
}

impl RequestFields {
    /// Finds the kinds of fields in `headers`.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut fields = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "host" => fields.has_host = true,
                "cookie" => fields.has_cookie = true,
                "upgrade" => fields.has_upgrade = true,
                _ if is_trace(name) => fields.has_trace = true,
                _ => {}
            }
            fields.has_stripped |= is_hop(name) || is_lookalike(name);
        }
        fields
    }
}

/// Removes the fields of a request that are not forwarded: hop-by-hop fields, and names that some servers
/// mistake for others. `TE: trailers` is forwarded. `fields` are those of `headers`.
pub fn strip_request(headers: &mut HeaderMap, fields: RequestFields) {
    if !fields.has_stripped {
        return;
    }
    let lookalikes = headers.keys().filter(|name| is_lookalike(name));
    for name in lookalikes.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    // `Expect` was between the client and the gateway, which answers it when it first reads the body.
    let found = found(headers, is_hop);
    let wants_trailers = found.contains(&TE) && has_token(headers, &TE, "trailers");
    strip(headers, found);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes headers that an upstream may obey although any client can write them, except those that the
/// route passes on. For requests of untrusted clients only.
pub fn strip_claims(headers: &mut HeaderMap, passed: &[String]) {
    let is_removed =
        |name: &HeaderName| is_claim(name) && !passed.iter().any(|passed| passed == name.as_str());
    for name in found(headers, is_removed) {
        headers.remove(name);
    }
}

/// Removes the fields of a response that are not forwarded.
pub fn strip_response(headers: &mut HeaderMap) {
    let found = found(headers, |name| {
        is_hop(name) && *name != TE && *name != EXPECT
    });
    if !found.is_empty() {
        strip(headers, found);
    }
}

fn found(headers: &HeaderMap, is_meant: impl Fn(&HeaderName) -> bool) -> SmallVec<[HeaderName; 2]> {
    let found = headers.keys().filter(|name| is_meant(name));
    found.cloned().collect()
}

/// Returns true if a field is a forwarding header.
pub(super) fn is_trace(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "via" | "x-real-ip")
}

/// Returns true if a field is hop-by-hop, even if `Connection` does not name it. Most messages have none of
/// these, and scanning the names once is cheaper than a lookup of each.
fn is_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
            | "te"
            | "expect"
    )
}

/// Removes the fields that were found, and those that `Connection` names if it is among them.
fn strip(headers: &mut HeaderMap, found: SmallVec<[HeaderName; 2]>) {
    if found.contains(&CONNECTION) {
        for name in named(headers) {
            headers.remove(name);
        }
    }
    for name in found {
        headers.remove(name);
    }
}

/// Removes fields from trailers that must not come after the headers were checked: hop-by-hop fields, fields
/// about the origin or identity of the client, and body framing (RFC 9110, 6.5.1).
pub(crate) fn strip_trailers(trailers: &mut HeaderMap) {
    let forbidden = trailers.keys().filter(|name| {
        is_hop(name)
            || is_trace(name)
            || is_claim(name)
            || is_lookalike(name)
            || NOT_AFTERWARDS.contains(name)
    });
    for name in forbidden.cloned().collect::<Vec<_>>() {
        trailers.remove(name);
    }
}

/// Returns true if a name has an underscore. CGI and its successors map it to a hyphen, and so to another
/// field.
fn is_lookalike(name: &HeaderName) -> bool {
    // Names are short: a search that is made for long texts takes longer to begin.
    let (words, rest) = name.as_str().as_bytes().as_chunks::<8>();
    words.iter().any(|word| has_underscore(*word)) || rest.contains(&b'_')
}

/// Returns true if any of these bytes is an underscore.
fn has_underscore(word: [u8; 8]) -> bool {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // An underscore becomes zero, and only a zero borrows into the high bit of its byte.
    let word = u64::from_ne_bytes(word) ^ u64::from_ne_bytes([b'_'; 8]);
    word.wrapping_sub(LOW) & !word & HIGH != 0
}

/// Returns true if an upstream may obey a header although any client can write it.
fn is_claim(name: &HeaderName) -> bool {
    CLIENT_CLAIMS.contains(&name.as_str())
}

/// Returns the fields that `Connection` names.
fn named(headers: &HeaderMap) -> SmallVec<[HeaderName; 2]> {
    let values = headers.get_all(CONNECTION).iter();
    values
        // Skip the usual values: none of them names a field that would be left.
        .filter(|value| !is_usual(value.as_bytes()))
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !is_usual(name.as_bytes()))
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        // A client must not remove the forwarding headers that the upstream relies on.
        .filter(|name| !NEVER.contains(name) && !is_trace(name))
        .collect()
}

fn is_usual(connection: &[u8]) -> bool {
    let mut usual = USUAL.iter();
    usual.any(|it| it.as_bytes().eq_ignore_ascii_case(connection))
}

/// Returns true if a list in these fields has `token`, ignoring case and parameters.
pub fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|one| {
            let one = one.split(';').next().unwrap_or(one);
            one.trim().eq_ignore_ascii_case(token)
        })
}

/// Returns true if the framing of a response with these headers is unambiguous. hyper picks one reading of an
/// ambiguous response; the client behind the gateway may pick the other.
pub(crate) fn is_clearly_framed(headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    match (lengths.next(), encodings.next()) {
        (None, None) => true,
        (Some(length), None) => {
            let digits = length.as_bytes();
            let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            is_number && lengths.next().is_none()
        }
        (None, Some(encoding)) => {
            encodings.next().is_none() && encoding.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
        (Some(_), Some(_)) => false,
    }
}

/// Returns the protocol that a request wants to upgrade to, if the request is valid: `Connection: upgrade`
/// and one `Upgrade`.
pub fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(UPGRADE).iter();
    let (Some(wanted), None) = (values.next(), values.next()) else {
        return None;
    };
    has_token(headers, &CONNECTION, "upgrade").then(|| wanted.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let lines = lines.iter();
        lines
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    fn strip_all(headers: &mut HeaderMap) {
        strip_request(headers, RequestFields::of(headers));
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_response_with_ambiguous_framing_is_rejected() {
        let one = |name, value| is_clearly_framed(&headers(&[(name, value)]));
        assert!(is_clearly_framed(&headers(&[])));
        assert!(one("content-length", "5"));
        assert!(one("transfer-encoding", "Chunked"));
        assert!(!one("content-length", "5, 5"));
        assert!(!one("content-length", "+5"));
        assert!(!one("transfer-encoding", "gzip, chunked"));
        assert!(!one("transfer-encoding", "identity"));
        let both = [("content-length", "5"), ("transfer-encoding", "chunked")];
        assert!(!is_clearly_framed(&headers(&both)));
        let mut twice = headers(&[("content-length", "5")]);
        twice.append(CONTENT_LENGTH, HeaderValue::from_static("5"));
        assert!(!is_clearly_framed(&twice));
    }

    #[test]
    fn an_underscore_is_found_anywhere_in_a_name() {
        for length in 1..20 {
            let plain = "^`".repeat(length);
            let is_found =
                |name: &str| is_lookalike(&HeaderName::from_bytes(name.as_bytes()).unwrap());
            assert!(!is_found(&plain), "{plain}");
            for at in 0..plain.len() {
                let mut name = plain.clone();
                name.replace_range(at..=at, "_");
                assert!(is_found(&name), "{name}");
            }
        }
    }

    #[test]
    fn headers_named_by_connection_are_removed() {
        let mut it = headers(&[
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("x-theirs", "2"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip, Trailers;q=1"),
            ("trailer", "x-sum"),
            ("expect", "100-continue"),
        ]);
        strip_all(&mut it);
        assert_eq!(names(&it), ["te", "trailer", "x-theirs"]);
        assert_eq!(it[TE], "trailers");
    }

    #[test]
    fn connection_cannot_remove_essential_headers() {
        let mut it = headers(&[
            (
                "connection",
                "host, content-length, x-forwarded-for, forwarded, via, x-real-ip",
            ),
            ("host", "a"),
            ("content-length", "3"),
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
            ("via", "1.1 a"),
            ("x-real-ip", "192.0.2.1"),
        ]);
        strip_all(&mut it);
        assert_eq!(it.len(), 6, "{it:?}");
    }

    #[test]
    fn trailers_cannot_contain_fields_checked_in_the_head() {
        let mut it = headers(&[
            ("x-sum", "1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x_real_ip", "192.0.2.1"),
            ("x-original-url", "/admin"),
            ("authorization", "Bearer x"),
            ("transfer-encoding", "chunked"),
            ("host", "a"),
        ]);
        strip_trailers(&mut it);
        assert_eq!(names(&it), ["x-sum"]);
    }

    #[test]
    fn ambiguous_header_names_are_removed() {
        let mut it = headers(&[("x_forwarded_for", "192.0.2.1"), ("x-mine", "1")]);
        strip_all(&mut it);
        assert_eq!(names(&it), ["x-mine"]);
    }

    #[test]
    fn an_upgrade_needs_both_headers() {
        let both = headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
        ]);
        assert_eq!(wanted_upgrade(&both).unwrap(), "WebSocket");
        assert!(wanted_upgrade(&headers(&[("upgrade", "websocket")])).is_none());
        assert!(wanted_upgrade(&headers(&[("connection", "upgrade")])).is_none());
        let mut twice = both.clone();
        twice.append(UPGRADE, HeaderValue::from_static("h2c"));
        assert!(wanted_upgrade(&twice).is_none());
    }
}
