//! The rules by which addresses are counted and listed.

use ipnet::{IpNet, Ipv4Net};
use std::net::IpAddr;

/// The rules that map addresses to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// The number of leading bits by which IPv6 addresses are counted.
    pub ipv6_prefix: u8,
}

/// An address or a network in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMember(pub(crate) IpNet);

// === impl AddressRules ===

impl Default for AddressRules {
    fn default() -> Self {
        Self { ipv6_prefix: 64 }
    }
}

impl AddressRules {
    /// Returns the address that `address` counts as: an IPv4-mapped address is IPv4, and IPv6 is cut to its
    /// prefix.
    #[must_use]
    pub fn subject(self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(v4) => IpAddr::V4(v4),
            IpAddr::V6(v6) => {
                let bits = u32::from(self.ipv6_prefix.min(128));
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & mask).into())
            }
        }
    }

    /// Returns the name of `address` in lists and maps: IPv6 has its prefix length.
    ///
    /// ```
    /// use tidegate_policy::limit::AddressRules;
    ///
    /// let rules = AddressRules { ipv6_prefix: 64 };
    /// assert_eq!(rules.member("::ffff:192.0.2.1".parse()?), "192.0.2.1");
    /// assert_eq!(rules.member("2001:db8::17".parse()?), "2001:db8::/64");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn member(self, address: IpAddr) -> String {
        match self.subject(address) {
            IpAddr::V6(v6) if self.ipv6_prefix < 128 => format!("{v6}/{}", self.ipv6_prefix),
            subject => subject.to_string(),
        }
    }

    /// Like [`member`](Self::member), for text that operators write, which may also be a network. Returns
    /// `None` for text that is neither. Texts with the same meaning in a list have the same name.
    ///
    /// ```
    /// use tidegate_policy::limit::AddressRules;
    ///
    /// let rules = AddressRules { ipv6_prefix: 64 };
    /// let member = |text| rules.member_of(text);
    /// assert_eq!(member("::FFFF:192.0.2.1"), member("192.0.2.1/32"));
    /// assert_eq!(member("2001:DB8::17"), Some("2001:db8::/64".to_owned()));
    /// assert_eq!(member("2001:db8::17/128"), Some("2001:db8::17/128".to_owned()));
    /// assert_eq!(member("localhost"), None);
    /// ```
    pub fn member_of(self, text: &str) -> Option<String> {
        let network = AddressMember::parse(text.trim(), self)?.network();
        let is_one = network.prefix_len() == network.max_prefix_len();
        let is_v4 = network.addr().is_ipv4();
        if is_one && (is_v4 || self.ipv6_prefix >= 128) {
            return Some(network.addr().to_string());
        }
        Some(network.to_string())
    }
}

// === impl AddressMember ===

impl AddressMember {
    /// Parses an address or a network. IPv4-mapped IPv6 is IPv4. An IPv6 address covers all addresses that
    /// count as the same client; with `/128` it covers only itself.
    pub fn parse(text: &str, rules: AddressRules) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            let address = address.to_canonical();
            let prefix = match address {
                IpAddr::V4(_) => 32,
                IpAddr::V6(_) => rules.ipv6_prefix.min(128),
            };
            return IpNet::new(address, prefix).ok().map(Self);
        }
        text.parse::<IpNet>().ok().map(canonical).map(Self)
    }

    /// Returns the network, with the bits after its prefix cleared.
    pub(crate) fn network(self) -> IpNet {
        self.0.trunc()
    }
}

/// Converts an IPv4-mapped IPv6 network to IPv4.
pub fn canonical(network: IpNet) -> IpNet {
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
