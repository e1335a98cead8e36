//! The client's identity: from the headers of a request to address, user, API key, attributes and cost.
//!
//! | module | contents |
//! |---|---|
//! | `facts` | the input from a frontend, and the resulting identity |
//! | `address` | the client's address behind proxies |
//! | `source` | the sources of an identity |
//! | `lookup` | the search for identities in one request |
//! | `cookie`, `query`, `segment`, `text` | readers for single sources |
//! | `jwt` | tokens and their claims |
//! | `cost` | the cost that a request states |

mod address;
mod cookie;
mod cost;
mod facts;
pub mod jwt;
mod lookup;
mod query;
mod segment;
mod source;
mod text;

pub use address::AddressHeader;
pub use cost::{CostRule, CostRules, FoundCost};
pub use facts::{ClientIdentity, Headers, RequestFacts};
pub use lookup::IdentityNeeds;
pub use source::{IdentitySource, Trust};

use crate::address_rules::AddressRules;
pub use crate::address_rules::canonical;
use crate::key_part::KeyPart;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use jwt::Jwt;
use lookup::Lookup;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The attribute names that hold users and API keys if a request contains several. No attribute of a
/// configuration can have such a name.
pub(crate) const SAID_USERS: &str = "users";
pub(crate) const SAID_API_KEYS: &str = "api keys";

/// The attribute name that holds the ambiguous values of an earlier source if a later source supplies the
/// effective value. Each value has the format of [`named_value`].
pub(crate) const SAID_ATTRIBUTES: &str = "attributes";

/// Formats a value of the attribute `name` together with its name.
fn named_value(name: &str, value: &str) -> String {
    format!("{name} {value}")
}

/// Returns the value in an entry of [`SAID_ATTRIBUTES`] if it belongs to the attribute `name`. Names contain
/// no blanks.
pub(crate) fn said_of<'s>(name: &str, said: &'s str) -> Option<&'s str> {
    said.strip_prefix(name)?.strip_prefix(' ')
}

/// The rules that determine a client's address and its other identities.
///
/// This is the section `client` of a configuration. It is the same for every listener, so a client has the
/// same identity at all of them.
///
/// ```
/// use tidegate_policy::client::{Client, IdentitySource, RequestFacts};
///
/// let mut client = Client::default().trusting(["10.0.0.0/8".parse()?]);
/// client.attributes.push(("project".to_owned(), vec![IdentitySource::Segment(2)]));
/// let identity = client.identify(&RequestFacts {
///     peer: "10.0.0.1".parse().ok(),
///     headers: &[("x-forwarded-for", "192.0.2.9, 198.51.100.7"), ("x-api-key", "k1")][..],
///     path: Some("/projects/apollo?page=2"),
///     now: &|| 0,
/// });
/// assert_eq!(identity.ip, "198.51.100.7".parse().ok());
/// assert_eq!(identity.api_key.as_deref(), Some("k1"));
/// assert_eq!(identity.attributes[0], ("project", "apollo".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    /// Proxies whose headers are trusted. IPv4-mapped IPv6 networks are stored as IPv4.
    pub trusted_proxies: Vec<IpNet>,
    /// The number of leading bits by which IPv6 addresses are counted.
    pub ipv6_prefix: u8,
    /// The headers for the client's address; the first one that a request carries applies.
    pub address: Vec<AddressHeader>,
    /// The sources of the user; the first one with a value applies. The same holds for the API key and
    /// for attributes.
    pub user: Vec<IdentitySource>,
    /// The sources of the API key.
    pub api_key: Vec<IdentitySource>,
    /// Sources by name of the attribute, including `consumer` and `token`.
    pub attributes: Vec<(String, Vec<IdentitySource>)>,
    /// The sources of a request's cost.
    pub cost: CostRules,
    /// The token that supplies claims.
    pub jwt: Option<Arc<Jwt>>,
}

impl Default for Client {
    /// Trusts proxies on this machine, and reads the API key from `X-API-Key`.
    fn default() -> Self {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
        let v6 = Ipv6Net::from(Ipv6Addr::LOCALHOST);
        Self {
            trusted_proxies: vec![IpNet::V4(v4), IpNet::V6(v6)],
            ipv6_prefix: 64,
            address: AddressHeader::ALL.to_vec(),
            user: Vec::new(),
            api_key: vec![IdentitySource::header("x-api-key", Trust::Anyone)],
            attributes: Vec::new(),
            cost: CostRules::None,
            jwt: None,
        }
    }
}

impl Client {
    /// Replaces the trusted proxies with these.
    #[must_use]
    pub fn trusting(mut self, proxies: impl IntoIterator<Item = IpNet>) -> Self {
        self.trusted_proxies = proxies.into_iter().map(canonical).collect();
        self
    }

    /// Returns the networks of trusted proxies.
    pub fn trusted_proxies(&self) -> &[IpNet] {
        &self.trusted_proxies
    }

    /// Returns true if `peer` is a trusted proxy.
    ///
    /// ```
    /// use tidegate_policy::Client;
    ///
    /// let client = Client::default().trusting(["192.0.2.0/24".parse()?]);
    /// assert!(client.trusts("192.0.2.7".parse()?));
    /// assert!(client.trusts("::ffff:192.0.2.7".parse()?), "the same address, mapped to IPv6");
    /// assert!(!client.trusts("198.51.100.7".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        let mut proxies = self.trusted_proxies.iter();
        proxies.any(|network| network.contains(&peer))
    }

    /// Returns the number of leading bits of an IPv6 address that identify a client.
    pub fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// Returns the rules that map addresses to keys.
    pub fn address_rules(&self) -> AddressRules {
        AddressRules {
            ipv6_prefix: self.ipv6_prefix,
        }
    }

    /// Returns true if anything except the address can be determined from a request. `headers` and `path`
    /// state which of them the request has.
    #[inline]
    pub fn learns_from(&self, headers: bool, path: bool) -> bool {
        let can = |source: &IdentitySource| match source {
            IdentitySource::Header { .. }
            | IdentitySource::Cookie(_)
            | IdentitySource::Claim(_) => headers,
            IdentitySource::Query(_) | IdentitySource::Segment(_) => path,
        };
        // A missing cost header means the default cost, which may not be 1.
        !self.cost.is_none()
            || self.user.iter().any(can)
            || self.api_key.iter().any(can)
            || self
                .attributes
                .iter()
                .any(|(_, sources)| sources.iter().any(can))
    }

    /// Returns true if the headers or the path of a request can supply this part of a key.
    pub fn knows(&self, part: &KeyPart) -> bool {
        match part {
            KeyPart::User => !self.user.is_empty(),
            KeyPart::ApiKey => !self.api_key.is_empty(),
            KeyPart::Attr(name) => self.attributes.iter().any(|(known, _)| known == name),
            _ => true,
        }
    }

    /// Returns the identity of the client of a request from `asking.peer`. Values that only proxies may set
    /// count only if the peer is a trusted proxy.
    pub fn identify<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
    ) -> ClientIdentity<'a> {
        self.identify_by(asking, IdentityNeeds::ALL)
    }

    /// Like [`identify`](Self::identify), but skips a user or an API key that is not in `wanted`.
    pub(crate) fn identify_by<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
        wanted: IdentityNeeds,
    ) -> ClientIdentity<'a> {
        let trusted = asking.peer.is_some_and(|peer| self.trusts(peer));
        let ip = match asking.peer {
            Some(peer) if trusted => Some(address::behind(self, peer, asking.headers)),
            peer => peer.map(|peer| peer.to_canonical()),
        };
        Lookup::new(self, asking, trusted).identity(ip, wanted)
    }

    /// Returns the identity that a caller of `/v1/check` reports for its client. The caller may set
    /// everything, so all values count. The address is not determined here: the caller sends it.
    pub fn identify_reported<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
    ) -> ClientIdentity<'a> {
        Lookup::new(self, asking, true).identity(None, IdentityNeeds::ALL)
    }

    /// Returns the client's address, where `seen` is the connected peer and `forwarded` the value of
    /// `X-Forwarded-For`. For access logs, which contain no other header.
    pub fn address_behind(&self, seen: IpAddr, forwarded: &str) -> IpAddr {
        let headers = [("x-forwarded-for", forwarded)];
        address::walk_header(self, seen, AddressHeader::XForwardedFor, &headers[..])
            .unwrap_or_else(|| seen.to_canonical())
    }
}
