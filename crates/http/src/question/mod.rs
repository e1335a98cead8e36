//! From the headers of an HTTP request to the attributes that limits use.
//!
//! | module | content |
//! |---|---|
//! | `head` | method, target and headers, as every HTTP server has them |
//! | `forwarded` | the request that a proxy forwards for a check, from its headers |
//! | `authority` | hosts, and targets that begin with one |
//!
//! # Trust
//!
//! The client IP comes from forwarding headers only if the peer is a trusted proxy; otherwise it is
//! the address of the peer. An identity header that occurs twice counts as missing, because client
//! and proxy may each have sent one.

mod authority;
mod forwarded;
mod head;
#[cfg(test)]
mod tests;

pub use forwarded::{ForwardedError, ForwardedRequest, UriBy};
pub use head::RequestHeadRef;

use head::SentHeaders;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use tidegate::{Request, Rules};
use tidegate_policy::CostMap;
use tidegate_policy::Policy;
use tidegate_policy::client::{ClientIdentity, FoundCost};

/// Replacement for a header value that is not text. It is used twice, so that a condition finds the
/// header, and a key finds it twice, which counts as missing.
const NO_TEXT: &str = "\u{FFFD}";

/// An HTTP request as limits see it, borrowed from its headers. It allocates only if many headers
/// are read, or identities must be normalized.
///
/// ```
/// use http::{HeaderMap, HeaderValue, Method, Uri};
/// use tidegate::Limiter;
/// use tidegate_http::question::{RequestHeadRef, HttpQuestion};
///
/// let limiter = Limiter::from_yaml("
/// policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 10/s }] }]
/// ")?;
/// let rules = limiter.rules()?;
/// let mut headers = HeaderMap::new();
/// headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.1"));
/// let head = RequestHeadRef {
///     method: &Method::GET,
///     uri: &Uri::from_static("/orders?page=2"),
///     headers: &headers,
///     // A proxy on this machine, which is trusted by default.
///     peer: "127.0.0.1".parse().ok(),
/// };
///
/// let question = HttpQuestion::direct(&rules, None, head);
/// let pairs = question.pairs();
/// let request = question.request(&pairs);
/// assert_eq!(request.ip, "192.0.2.1".parse().ok());
/// assert_eq!(request.path, Some("/orders?page=2"));
/// assert!(limiter.check_now(&request)?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HttpQuestion<'a> {
    /// Name of the policy, as requested.
    policy: Option<&'a str>,
    /// Identity of the client: address, user, API key.
    identity: ClientIdentity<'a>,
    /// Method of the request.
    method: Option<&'a str>,
    /// Host of the request, without its port.
    host: Option<&'a str>,
    /// Path and query of the request.
    path: Option<&'a str>,
    /// Name of the route, if a router has chosen one.
    route: Option<Cow<'a, str>>,
    /// Only those that the policy reads.
    headers: SmallVec<[(&'a str, &'a str); 2]>,
}

/// The attributes of a [`HttpQuestion`], in the form in which a [`Request`] borrows them.
#[derive(Debug, Default)]
pub struct AttributePairs<'q> {
    attributes: SmallVec<[(&'q str, &'q str); 2]>,
}

impl<'a> HttpQuestion<'a> {
    /// Creates the check of a request that arrived here directly. `policy` is the name of the
    /// policy. Default: the first.
    ///
    /// The host is that of an absolute target, else of the `Host` header, if it occurs once. Host,
    /// user and API key are read only if the policy uses them.
    pub fn direct(rules: &'a Rules, policy: Option<&'a str>, head: RequestHeadRef<'a>) -> Self {
        let asked = rules.policy(policy);
        let forwarded = head.forwarded_request(asked.is_some_and(Policy::reads_host));
        Self::of(rules, (policy, asked), head, forwarded)
    }

    /// Creates the check for a client that is identified already, see [`RequestHeadRef::identify`]:
    /// for callers that check several policies for one request, or check more than once.
    pub fn identified(
        rules: &'a Rules,
        policy: Option<&'a str>,
        head: RequestHeadRef<'a>,
        identity: ClientIdentity<'a>,
    ) -> Self {
        let asked = rules.policy(policy);
        let forwarded = head.forwarded_request(asked.is_some_and(Policy::reads_host));
        Self::with(identity, (policy, asked), head, forwarded)
    }

    /// Creates the check of a request that a proxy forwards: method, target and host come from its
    /// headers, see [`ForwardedRequest`]. The caller has verified that it is a proxy, because a
    /// client can send any value.
    ///
    /// # Errors
    ///
    /// [`ForwardedError`] if the headers contradict each other, or lack an attribute that the
    /// policy uses. A limit for some methods would otherwise never apply if the proxy sends none.
    pub fn forwarded(
        rules: &'a Rules,
        policy: Option<&'a str>,
        head: RequestHeadRef<'a>,
    ) -> Result<Self, ForwardedError> {
        let forwarded = ForwardedRequest::by(head.headers)?;
        let asked = rules.policy(policy);
        if let Some(policy) = asked {
            forwarded.suffices_for(policy)?;
        }
        Ok(Self::of(rules, (policy, asked), head, forwarded))
    }

    /// Creates a check of the policy with this name, which is `asked` if it exists.
    fn of(
        rules: &'a Rules,
        (policy, asked): (Option<&'a str>, Option<&'a Policy>),
        head: RequestHeadRef<'a>,
        told: ForwardedRequest<'a>,
    ) -> Self {
        let asking = head.asking(told.uri);
        let identity = match asked {
            Some(policy) => rules.client().identify_for(&asking, policy),
            None => rules.client().identify(&asking),
        };
        Self::with(identity, (policy, asked), head, told)
    }

    /// Reads the attributes that the policy uses.
    fn with(
        identity: ClientIdentity<'a>,
        (policy, asked): (Option<&'a str>, Option<&'a Policy>),
        head: RequestHeadRef<'a>,
        told: ForwardedRequest<'a>,
    ) -> Self {
        let sent = SentHeaders(head.headers);
        let mut headers = SmallVec::new();
        if let Some(policy) = asked {
            for name in policy.header_names() {
                for value in sent.all(name) {
                    match std::str::from_utf8(value) {
                        Ok(text) => headers.push((name, text)),
                        Err(_) => headers.extend([(name, NO_TEXT); 2]),
                    }
                }
            }
        }
        Self {
            policy,
            identity,
            method: told.method,
            host: told.host,
            path: told.uri.map(rooted),
            route: None,
            headers,
        }
    }

    /// Sets the user, and ignores any user found in the request.
    pub fn user(&mut self, user: impl Into<Cow<'a, str>>) -> &mut Self {
        self.identity.user = Some(user.into());
        self
    }

    /// Asks by this API key, whichever was found in the request.
    pub fn api_key(&mut self, key: impl Into<Cow<'a, str>>) -> &mut Self {
        self.identity.api_key = Some(key.into());
        self
    }

    /// Asks for this address, whichever was found.
    pub fn ip(&mut self, address: IpAddr) -> &mut Self {
        self.identity.ip = Some(address);
        self
    }

    /// Adds an attribute; the one of this name that was found in the request does not count.
    pub fn attribute(&mut self, name: &'a str, value: impl Into<Cow<'a, str>>) -> &mut Self {
        let attributes = &mut self.identity.attributes;
        attributes.retain(|(found, _)| *found != name);
        attributes.push((name, value.into()));
        self
    }

    /// Sets the route that was chosen for the request.
    pub fn route(&mut self, route: impl Into<Cow<'a, str>>) -> &mut Self {
        self.route = Some(route.into());
        self
    }

    /// Sets the units to consume, and ignores any cost in the request; 0 reads without consuming. A
    /// unit that the policy does not count is an error of the decision.
    pub fn cost(&mut self, cost: impl Into<CostMap<'static>>) -> &mut Self {
        self.identity.cost = FoundCost::from(cost.into());
        self
    }

    /// Returns the reason why the request's token was rejected: one of a few phrases, for a metric.
    pub fn token_refused(&self) -> Option<&'static str> {
        self.identity.token_refused
    }

    /// Its attributes, for [`request`](Self::request).
    pub fn pairs(&self) -> AttributePairs<'_> {
        let attributes = self.identity.attributes.iter();
        AttributePairs {
            attributes: attributes.map(|(name, value)| (*name, &**value)).collect(),
        }
    }

    /// Returns the check request for the limiter; `pairs` are its own.
    pub fn request<'r, 'q: 'r>(&'q self, pairs: &'r AttributePairs<'q>) -> Request<'r> {
        Request {
            policy: self.policy,
            ip: self.identity.ip,
            user: self.identity.user.as_deref(),
            api_key: self.identity.api_key.as_deref(),
            method: self.method,
            host: self.host,
            path: self.path,
            route: self.route.as_deref(),
            headers: &self.headers,
            attributes: &pairs.attributes,
            cost: self.identity.cost.cost(),
            descriptors: &[],
            permit: None,
        }
    }
}

/// Returns the path that a target stands for. `http://a?b` asks for `/` (RFC 9110, 4.2.3), and some
/// proxies pass on the `?b` alone.
fn rooted(target: &str) -> &str {
    if target.is_empty() || target.starts_with('?') {
        "/"
    } else {
        target
    }
}

// By way of the request, which hides secrets.
impl fmt::Debug for HttpQuestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.pairs();
        self.request(&pairs).fmt(f)
    }
}
