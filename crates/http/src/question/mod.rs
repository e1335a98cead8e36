//! From the head of an HTTP request to what limits look at.
//!
//! | module | what it is |
//! |---|---|
//! | `head` | a request's head, as every HTTP server has it |
//! | `told` | the request that a proxy asks about, by the headers in which it tells of it |
//! | `authority` | hosts, and targets that begin with one |

mod authority;
mod head;
#[cfg(test)]
mod tests;
mod told;

pub use head::RequestHeadRef;
pub use told::{ForwardedError, ForwardedRequest, UriBy};

use head::SentHeaders;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use tidegate::{Request, Rules};
use tidegate_policy::Policy;
use tidegate_policy::client::ClientIdentity;

/// What stands for a value that is no text: two of them, so that a condition finds the header there,
/// and a key finds it twice, which is as good as missing.
const NO_TEXT: &str = "\u{FFFD}";

/// An HTTP request as limits see it, borrowed from its head. Nothing is allocated but where many
/// headers are read, or identities must be respelled.
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
///     // A proxy on this machine, which is trusted unless told otherwise.
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
    policy: Option<&'a str>,
    identity: ClientIdentity<'a>,
    method: Option<&'a str>,
    host: Option<&'a str>,
    path: Option<&'a str>,
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
    /// A request that came here itself. `policy` is the one that is asked, the first where absent.
    ///
    /// The host is that of an absolute target, else of the `Host` header, if it is there once. It is
    /// looked for only if the policy looks at it, and so are the user and the API key.
    pub fn direct(rules: &'a Rules, policy: Option<&'a str>, head: RequestHeadRef<'a>) -> Self {
        let asked = rules.policy(policy);
        let told = head.told(asked.is_some_and(Policy::reads_host));
        Self::of(rules, (policy, asked), head, told)
    }

    /// The same where the client of `head` is identified already, see [`RequestHeadRef::identify`]: for whoever
    /// asks several policies about one request, or asks more than once.
    pub fn identified(
        rules: &'a Rules,
        policy: Option<&'a str>,
        head: RequestHeadRef<'a>,
        identity: ClientIdentity<'a>,
    ) -> Self {
        let asked = rules.policy(policy);
        let told = head.told(asked.is_some_and(Policy::reads_host));
        Self::with(identity, (policy, asked), head, told)
    }

    /// A request that a proxy asks about: method, target and host are those that it tells, see
    /// [`ForwardedRequest`]. The caller has made sure that it is a proxy, for whoever asks may tell anything.
    ///
    /// An error where it contradicts itself, or does not tell what the policy looks at: a limit that
    /// applies to some methods would apply to nobody if none were ever told.
    pub fn forwarded(
        rules: &'a Rules,
        policy: Option<&'a str>,
        head: RequestHeadRef<'a>,
    ) -> Result<Self, ForwardedError> {
        let told = ForwardedRequest::by(head.headers)?;
        let asked = rules.policy(policy);
        if let Some(policy) = asked {
            told.suffices_for(policy)?;
        }
        Ok(Self::of(rules, (policy, asked), head, told))
    }

    /// A question to the policy of this name, which is `asked` if it is there.
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

    /// Asks for this user, whoever was found in the request.
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

    /// Tells the route that was chosen for the request.
    pub fn route(&mut self, route: impl Into<Cow<'a, str>>) -> &mut Self {
        self.route = Some(route.into());
        self
    }

    /// Takes this much, whatever the request says; 0 only looks.
    pub fn cost(&mut self, cost: u64) -> &mut Self {
        self.identity.cost = cost;
        self
    }

    /// Why a token that the request carries was not believed: one of a few phrases, for a metric.
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

    /// The question as the limiter takes it; `pairs` are its own.
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
            cost: self.identity.cost,
            descriptors: &[],
        }
    }
}

/// The path that a target stands for. `http://a?b` asks for `/` (RFC 9110, 4.2.3), and some proxies
/// pass on the `?b` alone.
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
