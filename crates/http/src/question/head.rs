//! The start line and headers of a request, as every HTTP server has them.

use super::authority::bare;
use super::forwarded::ForwardedRequest;
use crate::clock;
use http::header::HOST;
use http::{HeaderMap, Method, Uri};
use std::fmt;
use std::iter;
use std::net::IpAddr;
use std::ptr;
use tidegate::Rules;
use tidegate_policy::client::{ClientIdentity, Headers, RequestFacts};

/// Method, target and headers of a request, and the address of its peer.
#[derive(Clone, Copy)]
pub struct RequestHeadRef<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// Address of the other end of the connection, if it is known.
    pub peer: Option<IpAddr>,
}

impl<'a> RequestHeadRef<'a> {
    /// Returns the requested host. An absolute target takes precedence over `Host` (RFC 9112,
    /// 3.2.2). Two `Host` headers count as none, because it is unknown which one the application
    /// would use.
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

    /// Returns the request as it describes itself; the host, which is seldom needed, only if it is
    /// wanted.
    pub(super) fn forwarded_request(self, wants_host: bool) -> ForwardedRequest<'a> {
        ForwardedRequest {
            method: Some(self.method.as_str()),
            uri: self.target(),
            uri_by: None,
            host: if wants_host { self.host() } else { None },
        }
    }

    /// Returns the facts from which the client is identified.
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
        let mut fields = sent.map(|sent| (sent, self.0.iter()));
        iter::from_fn(move || {
            let (sent, fields) = fields.as_mut()?;
            // A name is in one place, with any number of values.
            let (_, value) = fields.find(|(name, _)| ptr::eq(*name, *sent))?;
            Some(value.as_bytes())
        })
    }
}

impl<'a> Headers<'a> for SentHeaders<'a> {
    #[inline]
    fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name)
    }

    #[inline]
    fn may_have(self, names: &[&str]) -> bool {
        let mut sent = self.0.keys();
        sent.any(|sent| names.contains(&sent.as_str()))
    }
}
