//! The request that a proxy forwards for a check, from its headers.

use super::authority::{bare, is_same, split};
use http::{HeaderMap, HeaderValue};
use std::fmt;
use tidegate_policy::Policy;

/// The request that a proxy forwards for a check. A missing attribute is `None`.
///
/// | | from | else from |
/// |---|---|---|
/// | method | `X-Forwarded-Method` | `X-Original-Method` |
/// | target | `X-Forwarded-Uri` | `X-Original-URI`, then `X-Original-URL` |
/// | host | `X-Forwarded-Host` | `X-Original-URL`, then another target that is absolute |
///
/// Never from the request itself: that is the proxy's own check request, and its `Host` may be
/// Tidegate's. A header that occurs twice is an error, and so are two that contradict each other.
/// One of them is the proxy's, the other may come from a client that wants to bypass a limit, and
/// there is no way to know which.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use tidegate_http::question::{ForwardedError, ForwardedRequest};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-original-uri", HeaderValue::from_static("/orders?page=2"));
/// assert_eq!(ForwardedRequest::by(&headers)?.uri, Some("/orders?page=2"));
///
/// headers.insert("x-forwarded-uri", HeaderValue::from_static("/free"));
/// let error = ForwardedRequest::by(&headers).unwrap_err();
/// assert_eq!(error.to_string(), "X-Forwarded-Uri and X-Original-URI differ");
/// # Ok::<(), ForwardedError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardedRequest<'a> {
    /// The method.
    pub method: Option<&'a str>,
    /// Path and query as the client sent them.
    pub uri: Option<&'a str>,
    /// Header that the target came from.
    pub uri_by: Option<UriBy>,
    /// The host, perhaps with a port.
    pub host: Option<&'a str>,
}

/// Header from which the target was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriBy {
    /// `X-Forwarded-Uri`, as Traefik and Caddy do.
    XForwarded,
    /// `X-Original-URI` or `X-Original-URL`, as is the custom with nginx.
    XOriginal,
}

/// Reason why the forwarded request is unknown. It names the header at fault and repeats no value,
/// so that it may be shown to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardedError {
    /// A header is there twice.
    Twice(&'static str),
    /// Two headers tell different things.
    Contradiction(&'static str, &'static str),
    /// A header does not hold what it should.
    Malformed(&'static str, &'static str),
    /// The target is missing, and limits use it.
    NoUri,
    /// The method is missing, and limits use it.
    NoMethod,
    /// The host is missing, and limits use it.
    NoHost,
}

/// Method, as Traefik and Caddy send it.
const FORWARDED_METHOD: &str = "X-Forwarded-Method";
/// Method, as ingress-nginx sends it.
const ORIGINAL_METHOD: &str = "X-Original-Method";
/// Path and query, as Traefik and Caddy send them.
const FORWARDED_URI: &str = "X-Forwarded-Uri";
/// Path and query, as nginx configurations send them.
const ORIGINAL_URI: &str = "X-Original-URI";
/// Whole URL, as ingress-nginx sends it.
const ORIGINAL_URL: &str = "X-Original-URL";
/// Host, as Traefik and Caddy send it.
const FORWARDED_HOST: &str = "X-Forwarded-Host";

/// The headers as they came.
#[derive(Default)]
struct ForwardedHeaders<'a> {
    /// Value of `X-Forwarded-Method`.
    forwarded_method: Option<&'a str>,
    /// Value of `X-Original-Method`.
    original_method: Option<&'a str>,
    /// Value of `X-Forwarded-Uri`.
    forwarded_uri: Option<&'a str>,
    /// Value of `X-Original-URI`.
    original_uri: Option<&'a str>,
    /// Value of `X-Original-URL`.
    original_url: Option<&'a str>,
    /// Value of `X-Forwarded-Host`.
    forwarded_host: Option<&'a str>,
}

/// Target and host from the headers for the target.
struct ForwardedTarget<'a> {
    /// Path and query.
    uri: Option<&'a str>,
    /// Header that they came from.
    by: Option<UriBy>,
    /// Host, if the target is absolute.
    host: Option<&'a str>,
}

// === impl ForwardedRequest ===

impl<'a> ForwardedRequest<'a> {
    /// Reads the forwarded request from these headers.
    ///
    /// # Errors
    ///
    /// [`ForwardedError`] if a header occurs twice, is malformed, or contradicts another one.
    pub fn by(headers: &'a HeaderMap) -> Result<Self, ForwardedError> {
        let lines = ForwardedHeaders::of(headers)?;
        let target = lines.target()?;
        Ok(Self {
            method: lines.method()?,
            uri: target.uri,
            uri_by: target.by,
            host: lines.host()?.or(target.host),
        })
    }

    /// Returns the query of the target.
    pub fn query(&self) -> Option<&'a str> {
        Some(self.uri?.split_once('?')?.1)
    }

    /// Checks that the headers have everything that `policy` uses.
    pub(super) fn suffices_for(&self, policy: &Policy) -> Result<(), ForwardedError> {
        if policy.reads_path() && self.uri.is_none() {
            return Err(ForwardedError::NoUri);
        }
        if policy.reads_method() && self.method.is_none() {
            return Err(ForwardedError::NoMethod);
        }
        if policy.reads_host() && self.host.is_none() {
            return Err(ForwardedError::NoHost);
        }
        Ok(())
    }
}

// === impl Lines ===

impl<'a> ForwardedHeaders<'a> {
    /// Reads all forwarding headers in one pass.
    ///
    /// # Errors
    ///
    /// [`ForwardedError`] if one occurs twice or is not text.
    fn of(headers: &'a HeaderMap) -> Result<Self, ForwardedError> {
        let mut lines = Self::default();
        // All at once: looking up each of them would take longer.
        for (name, value) in headers {
            let name = name.as_str();
            if !name.starts_with("x-") {
                continue;
            }
            let (slot, name) = match name {
                "x-forwarded-method" => (&mut lines.forwarded_method, FORWARDED_METHOD),
                "x-original-method" => (&mut lines.original_method, ORIGINAL_METHOD),
                "x-forwarded-uri" => (&mut lines.forwarded_uri, FORWARDED_URI),
                "x-original-uri" => (&mut lines.original_uri, ORIGINAL_URI),
                "x-original-url" => (&mut lines.original_url, ORIGINAL_URL),
                "x-forwarded-host" => (&mut lines.forwarded_host, FORWARDED_HOST),
                _ => continue,
            };
            if slot.replace(text(name, value)?).is_some() {
                return Err(ForwardedError::Twice(name));
            }
        }
        Ok(lines)
    }

    /// Returns the method.
    ///
    /// # Errors
    ///
    /// [`ForwardedError`] if a value is no method, or two differ.
    fn method(&self) -> Result<Option<&'a str>, ForwardedError> {
        let candidates = [
            (FORWARDED_METHOD, self.forwarded_method),
            (ORIGINAL_METHOD, self.original_method),
        ];
        let mut method = None;
        for (name, value) in candidates {
            let Some(value) = filled(value) else {
                continue;
            };
            if !value.bytes().all(is_token) {
                return Err(ForwardedError::Malformed(name, "a method"));
            }
            agree(&mut method, (name, value), |one, other| one == other)?;
        }
        Ok(method.map(|(_, value)| value))
    }

    /// Returns the target, with the host if it is absolute.
    ///
    /// # Errors
    ///
    /// [`ForwardedError`] if a value is no target, or two differ.
    fn target(&self) -> Result<ForwardedTarget<'a>, ForwardedError> {
        let candidates = [
            (FORWARDED_URI, self.forwarded_uri),
            (ORIGINAL_URI, self.original_uri),
            (ORIGINAL_URL, self.original_url),
        ];
        let mut uri = None;
        let mut host = None;
        for (name, value) in candidates {
            let Some(value) = filled(value) else {
                continue;
            };
            // A target has no fragment, and programs disagree about its end.
            if value.contains('#') {
                return Err(ForwardedError::Malformed(name, "a target"));
            }
            let (authority, path) = match split(value) {
                Some((authority, "")) => (filled(Some(authority)), "/"),
                Some((authority, path)) => (filled(Some(authority)), path),
                None => (None, value),
            };
            host = authority.or(host);
            agree(&mut uri, (name, path), |one, other| one == other)?;
        }
        let by = uri.map(|(name, _)| match name {
            FORWARDED_URI => UriBy::XForwarded,
            _ => UriBy::XOriginal,
        });
        Ok(ForwardedTarget {
            uri: uri.map(|(_, path)| path),
            by,
            host,
        })
    }

    /// Returns the host.
    ///
    /// # Errors
    ///
    /// [`ForwardedError`] if a value is no single host, or two differ.
    fn host(&self) -> Result<Option<&'a str>, ForwardedError> {
        let mut host = None;
        if let Some(value) = filled(self.forwarded_host) {
            if value.contains(is_foreign_to_hosts) {
                return Err(ForwardedError::Malformed(FORWARDED_HOST, "one host"));
            }
            host = Some((FORWARDED_HOST, bare(value)));
        }
        // A proxy writes the whole URL; a target that is absolute may be the client's own spelling.
        if let Some((authority, _)) = filled(self.original_url).and_then(split)
            && !authority.is_empty()
        {
            agree(&mut host, (ORIGINAL_URL, authority), is_same)?;
        }
        Ok(host.map(|(_, host)| host))
    }
}

/// Returns `told`. If there is an earlier value, the two have to agree.
fn agree<'a>(
    known: &mut Option<(&'static str, &'a str)>,
    told: (&'static str, &'a str),
    is_same: impl Fn(&str, &str) -> bool,
) -> Result<(), ForwardedError> {
    match *known {
        Some((name, value)) if !is_same(value, told.1) => {
            return Err(ForwardedError::Contradiction(name, told.0));
        }
        Some(_) => {}
        None => *known = Some(told),
    }
    Ok(())
}

/// Returns the value of a header as text.
///
/// # Errors
///
/// [`ForwardedError`] if it is not visible ASCII.
fn text<'a>(name: &'static str, value: &'a HeaderValue) -> Result<&'a str, ForwardedError> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| ForwardedError::Malformed(name, "text"))
}

/// Returns the value; `None` for an empty header, which counts as missing.
fn filled(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

/// Returns true for a character of a method (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns true for characters of lists and targets that no host contains.
fn is_foreign_to_hosts(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | '/' | '?' | '#')
}

impl fmt::Display for ForwardedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(name) => write!(f, "duplicate {name}"),
            Self::Contradiction(one, other) => write!(f, "{one} and {other} differ"),
            Self::Malformed(name, expected) => write!(f, "{name} is not {expected}"),
            Self::NoUri => write!(
                f,
                "{FORWARDED_URI} or {ORIGINAL_URI} is required for the path"
            ),
            Self::NoMethod => write!(
                f,
                "{FORWARDED_METHOD} or {ORIGINAL_METHOD} is required for the method"
            ),
            Self::NoHost => write!(f, "{FORWARDED_HOST} is required for the host"),
        }
    }
}

impl std::error::Error for ForwardedError {}
