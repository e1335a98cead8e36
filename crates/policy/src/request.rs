//! The facts about a request that policies read.

use crate::patterns::is_secret_name;
use crate::unit::Cost;
use std::fmt;
use std::net::IpAddr;
use tidegate_core::ask::PermitId;

/// The facts about a request. Borrowed, built by a frontend, cheap to copy.
///
/// Unknown facts are `None`; an empty string counts as absent. Keys and conditions read nothing else, so a
/// frontend only has to fill in this type.
///
/// ```
/// use tidegate_policy::{Cost, Request};
///
/// let request = Request::new().user("ann").path("/api/v2").cost(2);
/// assert_eq!(request.cost, 2);
/// assert_eq!(Request::new().cost, Cost::ONE_REQUEST);
/// ```
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The name of the policy to evaluate; the first policy where absent.
    pub policy: Option<&'a str>,
    /// The client's address, as determined through trusted proxies.
    pub ip: Option<IpAddr>,
    /// The authenticated user.
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
    /// Values that the frontend is configured to read: from a cookie, a query, a claim, a path segment.
    pub attributes: &'a [(&'a str, &'a str)],
    /// The units it consumes; 0 only reads.
    pub cost: Cost<'a>,
    /// A proxy's descriptions of the request in the format of Envoy's rate limit service. Each has its own
    /// limits; all are decided atomically. See [`Descriptor`].
    pub descriptors: &'a [Descriptor<'a>],
    /// The terms of permits at limits of requests in flight; absent if the holder of the decision sees the
    /// end of the request.
    pub permit: Option<&'a PermitTerm>,
}

/// The terms of the permits of a request whose end the caller does not see: they are held until they are released,
/// or until their time is over. Of other limits it changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermitTerm {
    /// The name of the permits, to renew and release them; a random one where absent.
    pub id: Option<PermitId>,
    /// The time until they end, in microseconds; that of the limit ([`Limit::hold`](crate::Limit::hold)) where
    /// absent.
    pub ttl_us: Option<u64>,
}

impl PermitTerm {
    /// For a caller that neither sees the end of the request nor releases its permits: each limit has the time.
    pub const HOLD: Self = Self {
        id: None,
        ttl_us: None,
    };
}

/// A list of entries by which a proxy describes a request, as Envoy's rate limit service has it.
#[derive(Clone, Copy)]
pub struct Descriptor<'a> {
    /// Pairs of key and value, in the order sent; a key may repeat. Case-sensitive.
    pub entries: &'a [(&'a str, &'a str)],
    /// The number of units it consumes.
    pub hits: DescriptorHits<'a>,
    /// The limit that the request carries for it, which replaces all configured limits.
    pub limit: Option<LimitOverride>,
}

/// The number of units that a [`Descriptor`] consumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DescriptorHits<'a> {
    /// The cost of the request.
    #[default]
    AsRequest,
    /// This many units, as a number in [`Request::cost`]. 0 consumes nothing, but is refused if nothing is
    /// left.
    Take(u64),
    /// These amounts by unit.
    Units(Cost<'a>),
    /// Refunds this many units without a receipt, at most as many as the bucket has in use.
    GiveBack(u64),
}

/// A limit that a request carries: a fixed window, aligned to the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOverride {
    /// The number of units per period.
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
    /// Creates a request without any facts, at a cost of one request.
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
            cost: Cost::ONE_REQUEST,
            descriptors: &[],
            permit: None,
        }
    }

    /// Sets the name of the policy to evaluate.
    #[must_use]
    pub const fn policy(mut self, name: &'a str) -> Self {
        self.policy = Some(name);
        self
    }

    /// Sets the client's address.
    #[must_use]
    pub const fn ip(mut self, address: IpAddr) -> Self {
        self.ip = Some(address);
        self
    }

    /// Sets the user.
    #[must_use]
    pub const fn user(mut self, user: &'a str) -> Self {
        self.user = Some(user);
        self
    }

    /// Sets the API key.
    #[must_use]
    pub const fn api_key(mut self, key: &'a str) -> Self {
        self.api_key = Some(key);
        self
    }

    /// Sets the method.
    #[must_use]
    pub const fn method(mut self, method: &'a str) -> Self {
        self.method = Some(method);
        self
    }

    /// Sets the host.
    #[must_use]
    pub const fn host(mut self, host: &'a str) -> Self {
        self.host = Some(host);
        self
    }

    /// Sets the path.
    #[must_use]
    pub const fn path(mut self, path: &'a str) -> Self {
        self.path = Some(path);
        self
    }

    /// Sets the route that a gateway chose.
    #[must_use]
    pub const fn route(mut self, route: &'a str) -> Self {
        self.route = Some(route);
        self
    }

    /// Sets the headers, in the order sent.
    #[must_use]
    pub const fn headers(mut self, headers: &'a [(&'a str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Sets the attributes.
    #[must_use]
    pub const fn attributes(mut self, attributes: &'a [(&'a str, &'a str)]) -> Self {
        self.attributes = attributes;
        self
    }

    /// Lets its permits end by themselves, because the caller does not see the end of the request.
    #[must_use]
    pub const fn permit(mut self, term: &'a PermitTerm) -> Self {
        self.permit = Some(term);
        self
    }

    /// Sets the descriptors from a proxy.
    #[must_use]
    pub const fn descriptors(mut self, descriptors: &'a [Descriptor<'a>]) -> Self {
        self.descriptors = descriptors;
        self
    }

    /// Sets the cost: a number, or amounts by unit such as `&[("tokens", 800)]`.
    #[must_use]
    pub fn cost(mut self, cost: impl Into<Cost<'a>>) -> Self {
        self.cost = cost.into();
        self
    }
}

// Written by hand because the derived implementation would write secrets into logs.
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
            .field("permit", &self.permit)
            .finish()
    }
}

/// Replaces a secret in `Debug` output.
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
