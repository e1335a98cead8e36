//! From a request as it came to the one that an upstream gets.

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

/// About how many fields are added.
const TRACES: usize = 8;

/// How a request is passed on.
#[derive(Debug)]
pub(super) struct ForwardTerms<'a> {
    pub(super) lane: &'a ActiveRoute,
    pub(super) trace: &'a ForwardingHeaders,
    /// Whether the peer is a proxy whose word counts.
    pub(super) is_trusted: bool,
    /// What the connection is to change to.
    pub(super) upgrade: Option<HeaderValue>,
    /// Where interim answers go, if the client can have any.
    pub(super) interim: Option<Interim>,
    /// Its body, where other bodies share the client's connection.
    pub(super) unread: Option<Unread>,
}

impl ForwardTerms<'_> {
    /// Tells where a request came from: in these lines, or where that cannot be, among its fields.
    fn told(&self, headers: &mut HeaderMap, host: Option<&HeaderValue>, version: Version) -> Bytes {
        if self.lane.takes_lines
            && let Some(lines) = self.trace.lines(headers, host, version)
        {
            return lines;
        }
        // Once, and not field by field.
        headers.reserve(TRACES);
        self.trace.write(headers, host, version, self.is_trusted);
        Bytes::new()
    }
}

/// Which host a request is for: an absolute target says so before `Host` does (RFC 9112, 3.2.2), and in
/// HTTP/2 there is nothing else.
pub(super) fn host(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    match uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => headers.get(HOST).cloned(),
    }
}

/// Gives a target the path that it goes without: `http://a?b` is for `/`, and `:path` of HTTP/2 may be as
/// short. Everybody is to look at the same one.
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

/// The request that an upstream gets, or what is wrong with the body.
pub(super) fn outbound(
    mut request: Box<Request<Incoming>>,
    mut terms: ForwardTerms<'_>,
) -> Result<Box<Outgoing>, UploadError> {
    let least = terms.lane.least_rate(&request);
    // Taken out of its box piece by piece: as a whole it would be copied twice.
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
    // Without an authority it is the one that stands there.
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
    // New, and not the parts as they came: nothing that this side hung on the request goes on.
    let interim = terms.interim;
    let mut outbound = boxed(|| Outgoing::new(Request::new(body), told).with_interim(interim));
    *outbound.method_mut() = method;
    *outbound.uri_mut() = Uri::from(path);
    *outbound.headers_mut() = headers;
    Ok(outbound)
}

/// In HTTP/2 cookies may come in many fields, which pack better; elsewhere they are one (RFC 9113,
/// 8.2.3).
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
    // Made of values, so it is one.
    if let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

/// The path and the query that an upstream is asked for. Where a path has steps in it, `..` and `.`, it
/// is sent as it was decided: not everybody takes them.
fn path(uri: &Uri, strip_prefix: Option<&str>) -> PathAndQuery {
    let Some(path) = uri.path_and_query() else {
        return PathAndQuery::from_static("/");
    };
    let stripped = strip_prefix.and_then(|prefix| strip(path, prefix));
    let resolved = || has_steps(path.path()).then(|| strip(path, "")).flatten();
    stripped.or_else(resolved).unwrap_or_else(|| path.clone())
}

/// The path without `prefix`, if it begins with it in whatever spelling.
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
