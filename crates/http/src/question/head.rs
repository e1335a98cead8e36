//! A request's head, as every HTTP server has it.

use super::authority::bare;
use super::told::ForwardedRequest;
use crate::clock;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Uri};
use std::fmt;
use std::iter;
use std::net::IpAddr;
use tidegate::Rules;
use tidegate_policy::client::{ClientIdentity, Headers, RequestFacts};

/// The head of a request.
#[derive(Clone, Copy)]
pub struct RequestHeadRef<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// Who is at the other end of the connection, if that is known.
    pub peer: Option<IpAddr>,
}

impl<'a> RequestHeadRef<'a> {
    /// The host that is asked for. An absolute target counts before `Host` (RFC 9112, 3.2.2); of two
    /// `Host`s, nobody knows which one the application would believe.
    pub fn host(self) -> Option<&'a str> {
        if let Some(host) = self.uri.host() {
            return Some(host);
        }
        let mut values = self.headers.get_all(HOST).iter();
        let (Some(host), None) = (values.next(), values.next()) else {
            return None;
        };
        std::str::from_utf8(host.as_bytes()).ok().map(bare)
    }

    /// Identifies the client that sent this request itself, for any policy: see
    /// [`HttpQuestion::identified`](super::HttpQuestion::identified).
    pub fn identify(self, rules: &'a Rules) -> ClientIdentity<'a> {
        rules.client().identify(&self.asking(self.target()))
    }

    /// Path and query. Only `CONNECT` has a target without one.
    fn target(self) -> Option<&'a str> {
        let target = self.uri.path_and_query();
        target.map_or(Some("/"), |it| Some(it.as_str()))
    }

    /// What this request says of itself; the host, which is seldom needed, only if it is wanted.
    pub(super) fn told(self, wants_host: bool) -> ForwardedRequest<'a> {
        ForwardedRequest {
            method: Some(self.method.as_str()),
            uri: self.target(),
            uri_by: None,
            host: if wants_host { self.host() } else { None },
        }
    }

    pub(super) fn asking(self, path: Option<&'a str>) -> RequestFacts<'a, SentHeaders<'a>> {
        RequestFacts {
            peer: self.peer,
            headers: SentHeaders(self.headers),
            path,
            now: &clock::unix_seconds,
        }
    }
}

// By hand: targets and headers carry secrets.
impl fmt::Debug for RequestHeadRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("method", &self.method)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// The headers of a request, as identities are looked for in them.
#[derive(Clone, Copy)]
pub(super) struct SentHeaders<'a>(pub(super) &'a HeaderMap);

impl<'a> SentHeaders<'a> {
    /// Returns the values of a header, whose name is in lower case, in the order sent.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // Most are absent. To look through the few names of a request costs less than to hash one more.
        let sent = self.0.keys().find(|sent| sent.as_str() == name);
        let mut values = sent.map(|sent| self.0.get_all(sent).iter());
        iter::from_fn(move || values.as_mut()?.next().map(HeaderValue::as_bytes))
    }
}

impl<'a> Headers<'a> for SentHeaders<'a> {
    #[inline]
    fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name)
    }
}
