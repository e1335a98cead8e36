//! Turns a client's request into the request that an upstream gets.

use super::doubt::has_steps;
use super::lane::ActiveRoute;
use crate::promise::boxed;
use crate::proxy::backlog::Unread;
use crate::proxy::hop;
use crate::proxy::http1::Interim;
use crate::proxy::outgoing::Outgoing;
use crate::proxy::pace::Pace;
use crate::proxy::trace::ForwardingHeaders;
use crate::proxy::trouble::UploadError;
use crate::proxy::upload::Upload;
use bytes::Bytes;
use http::header::{CONNECTION, COOKIE, HOST, UPGRADE};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Request, Version};
use hyper::body::Incoming;
use std::mem;
use tidegate_policy::matching::normalise;

/// The approximate number of fields that are added.
const TRACES: usize = 8;

/// The parameters for forwarding a request.
#[derive(Debug)]
pub(super) struct ForwardTerms<'a> {
    pub(super) lane: &'a ActiveRoute,
    pub(super) trace: &'a ForwardingHeaders,
    /// The peer is a trusted proxy.
    pub(super) is_trusted: bool,
    /// The protocol that the connection is to switch to.
    pub(super) upgrade: Option<HeaderValue>,
    /// The channel for interim responses, if the client accepts any.
    pub(super) interim: Option<Interim>,
    /// The request's body, if other bodies share the client's connection.
    pub(super) unread: Option<Unread>,
}

impl ForwardTerms<'_> {
    /// Adds the forwarding fields: returns them as raw lines, or, if the lane does not allow that, adds
    /// them to `headers`.
    fn told(&self, headers: &mut HeaderMap, host: Option<&HeaderValue>, version: Version) -> Bytes {
        if self.lane.takes_lines
            && let Some(lines) = self.trace.lines(headers, host, version)
        {
            return lines;
        }
        // Reserve once, and not field by field.
        headers.reserve(TRACES);
        self.trace.write(headers, host, version, self.is_trusted);
        Bytes::new()
    }
}

/// Returns the host that a request is for. An absolute target takes precedence over `Host` (RFC 9112,
/// 3.2.2); in HTTP/2 it is the only source.
pub(super) fn host(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    match uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => headers.get(HOST).cloned(),
    }
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
) -> Result<Box<Outgoing>, UploadError> {
    let least = terms.lane.least_rate(&request);
    // Taken out of its box field by field: as a whole it would be copied twice.
    let mut headers = mem::take(request.headers_mut());
    let (method, uri) = (
        mem::take(request.method_mut()),
        mem::take(request.uri_mut()),
    );
    let version = request.version();
    let body = (*request).into_body();
    let route = &terms.lane.route;
    let bytes_max = route.body_bytes.unwrap_or(u64::MAX);
    let pace = Pace::new(route.timeouts.idle, least, terms.unread.take());
    let body = Upload::new(body, bytes_max, pace)?;
    let host = host(&uri, &headers);
    hop::strip_request(&mut headers);
    if !terms.is_trusted {
        hop::strip_claims(&mut headers, &route.pass_headers);
    }
    if version == Version::HTTP_2 {
        join_cookies(&mut headers);
    }
    let told = terms.told(&mut headers, host.as_ref(), version);
    // Without an authority, `Host` is there already.
    if let Some(host) = host.filter(|_| uri.authority().is_some()) {
        headers.insert(HOST, host);
    }
    terms.lane.request_changes.apply(&mut headers);
    if let Some(upgrade) = terms.upgrade {
        headers.insert(UPGRADE, upgrade);
        let connection = HeaderValue::from_static("upgrade");
        headers.insert(CONNECTION, connection);
    }
    let path = path(&uri, route.strip_prefix.as_deref());
    // A new request, not the parts of the old one: extensions set on this side are not forwarded.
    let interim = terms.interim;
    let mut outbound = boxed(|| Outgoing::new(Request::new(body), told).with_interim(interim));
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
