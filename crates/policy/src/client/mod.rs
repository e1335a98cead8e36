//! Who asks: from the head of a request to address, user, API key, attributes and cost.
//!
//! | module | what it is |
//! |---|---|
//! | `asking` | what a door knows of a request, and what is made of it |
//! | `address` | the client behind proxies |
//! | `source` | where an identity comes from |
//! | `lookup` | looks for identities in one request |
//! | `cookie`, `query`, `segment`, `text` | what a source says |
//! | `jwt` | tokens and their claims |
//! | `cost` | how much a request takes, by its own word |

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

/// Under these names stand users and API keys where a request says several: no attribute of a
/// configuration can be called so.
pub(crate) const SAID_USERS: &str = "users said";
pub(crate) const SAID_API_KEYS: &str = "api keys said";

/// Under this name stand attributes that an earlier source says several of, where a later one says what
/// counts: each as [`beside`] writes it.
pub(crate) const SAID_ATTRIBUTES: &str = "attributes said";

/// A value of the attribute `name`, with its name.
fn beside(name: &str, value: &str) -> String {
    format!("{name} {value}")
}

/// What of [`SAID_ATTRIBUTES`] is a value of the attribute `name`. No name has a blank in it.
pub(crate) fn said_of<'s>(name: &str, said: &'s str) -> Option<&'s str> {
    said.strip_prefix(name)?.strip_prefix(' ')
}

/// Who asks: how the client's address and its other identities are found out.
///
/// This is the section `client` of a configuration. It is the same at every door, so that a client
/// is the same client wherever it comes in.
///
/// ```
/// use tidegate_policy::client::{Asking, Client};
///
/// let client = Client::from_yaml("
/// trusted_proxies: [10.0.0.0/8]
/// attributes: { project: { segment: 2 } }
/// ")?;
/// let identity = client.identify(&Asking {
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
    /// Whose word counts. IPv4 written as IPv6 has become IPv4.
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) ipv6_prefix: u8,
    /// The first of these that a request carries tells the address.
    pub(crate) address: Vec<AddressHeader>,
    /// The first of these that is there is the user; so with the others.
    pub(crate) user: Vec<IdentitySource>,
    pub(crate) api_key: Vec<IdentitySource>,
    /// By name; `consumer` and `token` among them.
    pub(crate) attributes: Vec<(String, Vec<IdentitySource>)>,
    pub(crate) cost: Option<CostRule>,
    /// Where claims come from.
    pub(crate) jwt: Option<Arc<Jwt>>,
}

impl Default for Client {
    /// Believes proxies on this machine, and takes the API key from `X-API-Key`.
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
    /// Reads what would stand under `client` in a configuration, in YAML or JSON. Nothing is looked
    /// up in the environment.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigErrors> {
        crate::config::parse_client(text, "client", &NoEnvironment)
    }

    /// Believes these proxies and no others.
    #[must_use]
    pub fn trusting(mut self, proxies: impl IntoIterator<Item = IpNet>) -> Self {
        self.trusted_proxies = proxies.into_iter().map(canonical).collect();
        self
    }

    /// Whose word counts.
    pub fn trusted_proxies(&self) -> &[IpNet] {
        &self.trusted_proxies
    }

    /// Whether `peer` is a trusted proxy.
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        let mut proxies = self.trusted_proxies.iter();
        proxies.any(|network| network.contains(&peer))
    }

    /// How many leading bits of an IPv6 address tell clients apart.
    pub fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// How addresses become keys.
    pub fn address_rules(&self) -> AddressRules {
        AddressRules {
            ipv6_prefix: self.ipv6_prefix,
        }
    }

    /// Whether anything but the address can be learnt from a request that has headers, or a path, or
    /// neither.
    #[inline]
    pub fn learns_from(&self, headers: bool, path: bool) -> bool {
        let can = |source: &IdentitySource| match source {
            IdentitySource::Header { .. }
            | IdentitySource::Cookie(_)
            | IdentitySource::Claim(_) => headers,
            IdentitySource::Query(_) | IdentitySource::Segment(_) => path,
        };
        // A cost may be what is said where nothing is.
        self.cost.is_some()
            || self.user.iter().any(can)
            || self.api_key.iter().any(can)
            || self
                .attributes
                .iter()
                .any(|(_, sources)| sources.iter().any(can))
    }

    /// Whether this part of a key can be learnt from the head of a request.
    pub fn knows(&self, part: &KeyPart) -> bool {
        match part {
            KeyPart::User => !self.user.is_empty(),
            KeyPart::ApiKey => !self.api_key.is_empty(),
            KeyPart::Attr(name) => self.attributes.iter().any(|(known, _)| known == name),
            _ => true,
        }
    }

    /// Who asks, for a request that came from `asking.peer`: what only proxies may say counts if
    /// that is one.
    pub fn identify<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
    ) -> ClientIdentity<'a> {
        self.identify_by(asking, IdentityNeeds::ALL)
    }

    /// The same for `policy`: a user or an API key that it does not look at is not looked for.
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

    /// Who asks, by the word of somebody who asks for others and may say anything: whoever may put
    /// questions to `/v1/check`. Everything counts; the address is theirs to tell, and is not looked
    /// for.
    pub fn identify_told<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
    ) -> ClientIdentity<'a> {
        Lookup::new(self, asking, true).identity(None, IdentityNeeds::ALL)
    }

    /// The client's address, where `seen` is the other end of a connection and `forwarded` what
    /// `X-Forwarded-For` said: for logs, which keep no other header.
    pub fn address_behind(&self, seen: IpAddr, forwarded: &str) -> IpAddr {
        let headers = [("x-forwarded-for", forwarded)];
        address::walk_header(self, seen, AddressHeader::XForwardedFor, &headers[..])
            .unwrap_or_else(|| seen.to_canonical())
    }
}

/// IPv4 written as IPv6 is IPv4.
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
