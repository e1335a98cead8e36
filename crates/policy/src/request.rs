//! What is known of a request.

use crate::matching::is_secret_name;
use std::fmt;
use std::net::IpAddr;

/// What is known of a request. Borrowed, built by a door, cheap to copy.
///
/// Whatever is not known stays `None`; an empty string is as good as absent. Keys and conditions
/// ask for no more than this, so a door that fills it in has done its part.
///
/// ```
/// use tidegate_policy::Request;
///
/// let request = Request::new().user("ann").path("/api/v2").cost(2);
/// assert_eq!(request.cost, 2);
/// assert_eq!(Request::new().cost, 1);
/// ```
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The policy that is asked; the first one where absent.
    pub policy: Option<&'a str>,
    /// The client's address, as far as trusted proxies tell it.
    pub ip: Option<IpAddr>,
    /// Who is asking, once authenticated.
    pub user: Option<&'a str>,
    /// The API key as sent: a secret.
    pub api_key: Option<&'a str>,
    /// The method, in any case.
    pub method: Option<&'a str>,
    /// The host, with or without port.
    pub host: Option<&'a str>,
    /// The path as sent, not yet normalised; a query may follow it.
    pub path: Option<&'a str>,
    /// The route that a gateway chose.
    pub route: Option<&'a str>,
    /// Headers in the order sent; a name may repeat. See [`Policy::header_names`] for those worth
    /// copying.
    ///
    /// [`Policy::header_names`]: crate::Policy::header_names
    pub headers: &'a [(&'a str, &'a str)],
    /// What the door was configured to learn: from a cookie, a query, a claim, a path segment.
    pub attributes: &'a [(&'a str, &'a str)],
    /// How much it takes; 0 only looks.
    pub cost: u64,
    /// What a proxy says of the request in the words of Envoy's rate limit service: each is decided
    /// by limits of its own, all of them in the same step. See [`Descriptor`].
    pub descriptors: &'a [Descriptor<'a>],
}

/// A list of entries by which a proxy describes a request, as Envoy's rate limit service has it.
#[derive(Clone, Copy)]
pub struct Descriptor<'a> {
    /// Pairs of key and value, in the order sent; a key may repeat. Case counts.
    pub entries: &'a [(&'a str, &'a str)],
    /// How much it takes.
    pub hits: DescriptorHits,
    /// The limit that the request itself brings for it, instead of any that is configured.
    pub limit: Option<ToldLimit>,
}

/// How much a [`Descriptor`] takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DescriptorHits {
    /// As much as the request.
    #[default]
    AsRequest,
    /// This much. 0 takes nothing, but is refused where nothing is left.
    Take(u64),
    /// Gives this much back, without a receipt: at most what is owed.
    GiveBack(u64),
}

/// A limit that a request brings itself: a fixed window, aligned to the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldLimit {
    /// How many a period.
    pub amount: u64,
    /// The period, in microseconds.
    pub period_us: u64,
}

impl fmt::Debug for Descriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Descriptor")
            .field("entries", &RedactedPairs(self.entries))
            .field("hits", &self.hits)
            .field("limit", &self.limit)
            .finish()
    }
}

// === impl Request ===

impl Default for Request<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Request<'a> {
    /// A request of which nothing is known, at a cost of 1.
    pub const fn new() -> Self {
        Self {
            policy: None,
            ip: None,
            user: None,
            api_key: None,
            method: None,
            host: None,
            path: None,
            route: None,
            headers: &[],
            attributes: &[],
            cost: 1,
            descriptors: &[],
        }
    }

    /// Asks this policy.
    #[must_use]
    pub const fn policy(mut self, name: &'a str) -> Self {
        self.policy = Some(name);
        self
    }

    /// Comes from this address.
    #[must_use]
    pub const fn ip(mut self, address: IpAddr) -> Self {
        self.ip = Some(address);
        self
    }

    /// Comes from this user.
    #[must_use]
    pub const fn user(mut self, user: &'a str) -> Self {
        self.user = Some(user);
        self
    }

    /// Carries this API key.
    #[must_use]
    pub const fn api_key(mut self, key: &'a str) -> Self {
        self.api_key = Some(key);
        self
    }

    /// Uses this method.
    #[must_use]
    pub const fn method(mut self, method: &'a str) -> Self {
        self.method = Some(method);
        self
    }

    /// Is meant for this host.
    #[must_use]
    pub const fn host(mut self, host: &'a str) -> Self {
        self.host = Some(host);
        self
    }

    /// Asks for this path.
    #[must_use]
    pub const fn path(mut self, path: &'a str) -> Self {
        self.path = Some(path);
        self
    }

    /// Was given this route by a gateway.
    #[must_use]
    pub const fn route(mut self, route: &'a str) -> Self {
        self.route = Some(route);
        self
    }

    /// Carries these headers, in the order sent.
    #[must_use]
    pub const fn headers(mut self, headers: &'a [(&'a str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Has these attributes.
    #[must_use]
    pub const fn attributes(mut self, attributes: &'a [(&'a str, &'a str)]) -> Self {
        self.attributes = attributes;
        self
    }

    /// Is described so by a proxy.
    #[must_use]
    pub const fn descriptors(mut self, descriptors: &'a [Descriptor<'a>]) -> Self {
        self.descriptors = descriptors;
        self
    }

    /// Takes this much.
    #[must_use]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }
}

// By hand, because what is derived would write secrets into a log.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("policy", &self.policy)
            .field("ip", &self.ip)
            .field("user", &self.user)
            .field("api_key", &self.api_key.map(|_| MaskedSecret))
            .field("method", &self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("route", &self.route)
            .field("headers", &RedactedPairs(self.headers))
            .field("attributes", &RedactedPairs(self.attributes))
            .field("cost", &self.cost)
            .field("descriptors", &self.descriptors)
            .finish()
    }
}

/// Stands in for a secret.
struct MaskedSecret;

impl fmt::Debug for MaskedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Headers or attributes, without the values of those that carry secrets.
struct RedactedPairs<'a>(&'a [(&'a str, &'a str)]);

impl fmt::Debug for RedactedPairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for (name, value) in self.0 {
            if is_secret_name(name) {
                list.entry(&(name, MaskedSecret));
            } else {
                list.entry(&(name, value));
            }
        }
        list.finish()
    }
}
