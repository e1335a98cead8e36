//! The client's identity: from the headers of a request to address, user, API key, attributes and cost.
//!
//! | module | contents |
//! |---|---|
//! | `asking` | the input from a frontend, and the resulting identity |
//! | `address` | the client's address behind proxies |
//! | `source` | the sources of an identity |
//! | `lookup` | the search for identities in one request |
//! | `cookie`, `query`, `segment`, `text` | readers for single sources |
//! | `jwt` | tokens and their claims |
//! | `cost` | the cost that a request states |

mod address;
mod asking;
mod cookie;
mod cost;
pub(crate) mod jwt;
mod lookup;
mod query;
mod segment;
mod source;
mod text;

pub(crate) use address::AddressHeader;
pub use asking::{ClientIdentity, Headers, RequestFacts};
pub(crate) use cost::CostRule;
pub(crate) use lookup::IdentityNeeds;
pub(crate) use source::{IdentitySource, Trust};

use crate::Policy;
use crate::config::{ConfigErrors, NoEnvironment};
use crate::limit::{AddressRules, KeyPart};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use jwt::Jwt;
use lookup::Lookup;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The attribute names that hold users and API keys if a request contains several. No attribute of a
/// configuration can have such a name.
pub(crate) const SAID_USERS: &str = "users said";
pub(crate) const SAID_API_KEYS: &str = "api keys said";

/// The attribute name that holds the ambiguous values of an earlier source if a later source supplies the
/// effective value. Each value has the format of [`beside`].
pub(crate) const SAID_ATTRIBUTES: &str = "attributes said";

/// Formats a value of the attribute `name` together with its name.
fn beside(name: &str, value: &str) -> String {
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
/// use tidegate_policy::client::{RequestFacts, Client};
///
/// let client = Client::from_yaml("
/// trusted_proxies: [10.0.0.0/8]
/// attributes: { project: { segment: 2 } }
/// ")?;
/// let identity = client.identify(&RequestFacts {
///     peer: "10.0.0.1".parse().ok(),
///     headers: &[("x-forwarded-for", "192.0.2.9, 198.51.100.7"), ("x-api-key", "k1")][..],
///     path: Some("/projects/apollo?page=2"),
///     now: &|| 0,
/// });
/// assert_eq!(identity.ip, "198.51.100.7".parse().ok());
/// assert_eq!(identity.api_key.as_deref(), Some("k1"));
/// assert_eq!(identity.attributes[0], ("project", "apollo".into()));
/// # Ok::<(), tidegate_policy::ConfigErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    /// Proxies whose headers are trusted. IPv4-mapped IPv6 networks are stored as IPv4.
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) ipv6_prefix: u8,
    /// The headers for the client's address; the first one that a request carries applies.
    pub(crate) address: Vec<AddressHeader>,
    /// The sources of the user; the first one with a value applies. The same holds for the fields below.
    pub(crate) user: Vec<IdentitySource>,
    pub(crate) api_key: Vec<IdentitySource>,
    /// Sources by name of the attribute, including `consumer` and `token`.
    pub(crate) attributes: Vec<(String, Vec<IdentitySource>)>,
    pub(crate) cost: Option<CostRule>,
    /// The token that supplies claims.
    pub(crate) jwt: Option<Arc<Jwt>>,
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
            cost: None,
            jwt: None,
        }
    }
}

impl Client {
    /// Parses the section `client` of a configuration, in YAML or JSON. Environment variables are not
    /// expanded.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigErrors> {
        crate::config::parse_client(text, "client", &NoEnvironment)
    }

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
        self.cost.is_some()
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

    /// Like [`identify`](Self::identify), but skips a user or an API key that `policy` does not read.
    pub fn identify_for<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
        policy: &Policy,
    ) -> ClientIdentity<'a> {
        self.identify_by(asking, policy.reads_who())
    }

    fn identify_by<'a, H: Headers<'a>>(
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
    pub fn identify_told<'a, H: Headers<'a>>(
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

/// Converts an IPv4-mapped IPv6 network to IPv4.
pub(crate) fn canonical(network: IpNet) -> IpNet {
    let IpAddr::V4(v4) = network.addr().to_canonical() else {
        return network;
    };
    let prefix = match network {
        IpNet::V4(_) => Some(network.prefix_len()),
        IpNet::V6(_) => network.prefix_len().checked_sub(96),
    };
    prefix
        .and_then(|prefix| Ipv4Net::new(v4, prefix).ok())
        .map_or(network, IpNet::V4)
}
