//! Turns a client's request into the request that an upstream gets.
//!
//! The upstream gets the same method, target and body. Hop-by-hop fields and claims of untrusted
//! clients are removed, and the forwarding fields are added. Nothing is decided here; a request that
//! arrives has passed its limits.

use super::active_route::ActiveRoute;
use super::ambiguity::has_steps;
use http::header::{CONNECTION, COOKIE, HOST, UPGRADE};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Request, Version};
use hyper::body::Incoming;
use std::mem;
use tidegate_net::promise::boxed;
use tidegate_policy::matching::normalise;
use tidegate_policy::route::HostHeader;
use tidegate_proxy::backlog::UnreadBody;
use tidegate_proxy::error::UploadError;
use tidegate_proxy::forwarding_headers::{FieldLines, ForwardingHeaders};
use tidegate_proxy::hop::{self, RequestFields};
use tidegate_proxy::interim::InterimForwarder;
use tidegate_proxy::outgoing::OutgoingRequest;
use tidegate_proxy::pace::Pace;
use tidegate_proxy::upload::Upload;

/// The approximate number of fields that are added.
const TRACES: usize = 8;

/// The parameters for forwarding a request.
#[derive(Debug)]
pub(super) struct ForwardTerms<'a> {
    pub(super) lane: &'a ActiveRoute,
    /// The kinds of fields that the client has sent.
    pub(super) fields: RequestFields,
    pub(super) trace: &'a ForwardingHeaders,
    /// The peer is a trusted proxy.
    pub(super) is_trusted: bool,
    /// False if the request is known to have no body.
    pub(super) has_body: bool,
    /// The protocol that the connection is to switch to.
    pub(super) upgrade: Option<HeaderValue>,
    /// The channel for interim responses, if the client accepts any.
    pub(super) interim: Option<InterimForwarder>,
    /// The request's body, if other bodies share the client's connection.
    pub(super) unread: Option<UnreadBody>,
}

impl ForwardTerms<'_> {
    /// Adds the forwarding fields and the host: returns them as raw lines, or, if the lane does not allow
    /// that, adds them to `headers`.
    fn add_forwarding_fields(
        &self,
        headers: &mut HeaderMap,
        uri: &Uri,
        version: Version,
    ) -> FieldLines {
        let fields = self.fields;
        let authority = uri.authority().map(|it| it.as_str().as_bytes());
        if self.lane.takes_lines
            && let Some(host) = authority.or_else(|| Some(sent_host(headers)?.as_bytes()))
        {
            let keeps_host = self.lane.route.host == HostHeader::Keep;
            if let Some(lines) = self.trace.lines(fields, (host, keeps_host), version) {
                if authority.is_some() && fields.has_host {
                    replace_host(uri, headers);
                }
                return lines;
            }
        }
        let host = host(uri, headers);
        // Reserve once, and not field by field.
        headers.reserve(TRACES);
        self.trace
            .write(headers, host.as_ref(), version, self.is_trusted);
        replace_host(uri, headers);
        FieldLines::default()
    }
}

/// Sets `Host` to the host of the target. Without one, `Host` is there already.
fn replace_host(uri: &Uri, headers: &mut HeaderMap) {
    let authority = uri.authority().map(Authority::as_str);
    if let Some(host) = authority.and_then(|it| HeaderValue::from_str(it).ok()) {
        headers.insert(HOST, host);
    }
}

/// Returns the host that a request is for. An absolute target takes precedence over `Host` (RFC 9112,
/// 3.2.2); in HTTP/2 it is the only source.
pub(super) fn host(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    match uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => sent_host(headers).cloned(),
    }
}

/// Returns the first `Host`. It is one of the first fields: to find it so is cheaper than a lookup.
fn sent_host(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut fields = headers.iter();
    let host = fields.find(|(name, _)| **name == HOST);
    host.map(|(_, host)| host)
}

/// Adds a missing path to a target: `http://a?b` is for `/`, and `:path` of HTTP/2 may be as short. Every
/// later step then reads the same path.
pub(super) fn root<B>(request: &mut Request<B>) {
    let target = request.uri().path_and_query();
    let Some(query) = target.filter(|it| it.as_str().starts_with('?')) else {
        return;
    };
    let rooted = format!("/{}", query.as_str()).parse().ok();
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = rooted.or(parts.path_and_query);
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// Returns the request that an upstream gets, or the error in its body.
pub(super) fn outbound(
    mut request: Box<Request<Incoming>>,
    mut terms: ForwardTerms<'_>,
) -> Result<Box<OutgoingRequest>, UploadError> {
    let least = if terms.has_body {
        terms.lane.least_rate(&request)
    } else {
        None
    };
    // Taken out of its box field by field: as a whole it would be copied twice.
    let mut headers = mem::take(request.headers_mut());
    let (method, uri) = (
        mem::take(request.method_mut()),
        mem::take(request.uri_mut()),
    );
    let version = request.version();
    let body = (*request).into_body();
    let route = &terms.lane.route;
    let body = if terms.has_body {
        let bytes_max = route.body_bytes.unwrap_or(u64::MAX);
        let pace = Pace::new(route.timeouts.idle, least, terms.unread.take());
        Upload::new(body, bytes_max, pace)?
    } else {
        Upload::none()
    };
    hop::strip_request(&mut headers, terms.fields);
    if !terms.is_trusted {
        hop::strip_claims(&mut headers, &route.pass_headers);
    }
    if version == Version::HTTP_2 && terms.fields.has_cookie {
        join_cookies(&mut headers);
    }
    let lines = terms.add_forwarding_fields(&mut headers, &uri, version);
    terms.lane.request_changes.apply(&mut headers);
    if let Some(upgrade) = terms.upgrade {
        headers.insert(UPGRADE, upgrade);
        let connection = HeaderValue::from_static("upgrade");
        headers.insert(CONNECTION, connection);
    }
    let path = path(&uri, route.strip_prefix.as_deref());
    // A new request, not the parts of the old one: extensions set on this side are not forwarded.
    let interim = terms.interim;
    let mut outbound =
        boxed(|| OutgoingRequest::new(Request::new(body), lines).with_interim(interim));
    *outbound.method_mut() = method;
    *outbound.uri_mut() = Uri::from(path);
    *outbound.headers_mut() = headers;
    Ok(outbound)
}

/// Joins cookies. HTTP/2 may split them over many fields, which compress better; elsewhere they are one
/// field (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(COOKIE).iter();
    if cookies.next().and(cookies.next()).is_none() {
        return;
    }
    let cookies: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    // Valid, because it is made of valid values.
    if let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

/// Returns the path and the query for an upstream. A path with dot segments, `..` and `.`, is sent in the
/// normalized form that was decided: not every upstream accepts dot segments.
fn path(uri: &Uri, strip_prefix: Option<&str>) -> PathAndQuery {
    let Some(path) = uri.path_and_query() else {
        return PathAndQuery::from_static("/");
    };
    let stripped = strip_prefix.and_then(|prefix| strip(path, prefix));
    let resolved = || has_steps(path.path()).then(|| strip(path, "")).flatten();
    stripped.or_else(resolved).unwrap_or_else(|| path.clone())
}

/// Returns the path without `prefix`, if it begins with it in any escaped form.
fn strip(path: &PathAndQuery, prefix: &str) -> Option<PathAndQuery> {
    let mut buffer = String::new();
    let rest = normalise(path.path(), &mut buffer)?.strip_prefix(prefix)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let rest = if rest.is_empty() { "/" } else { rest };
    let stripped = match path.query() {
        Some(query) => format!("{rest}?{query}"),
        None => rest.to_owned(),
    };
    PathAndQuery::try_from(stripped).ok()
}
