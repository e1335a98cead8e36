//! `client`: how the client's address is found out.

use super::fields::CLIENT;
use super::reader::{Reader, Value};
use super::scalar::{network, whole};
use super::syntax::Kind;
use crate::limit::AddressRules;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr};

/// How the client's address is found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Whose forwarded headers count. IPv4 written as IPv6 has become IPv4.
    pub trusted_proxies: Vec<IpNet>,
    /// How many leading bits of an IPv6 address tell clients apart.
    pub ipv6_prefix: u8,
}

impl Default for ClientSettings {
    fn default() -> Self {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
        let v6 = Ipv6Net::from(Ipv6Addr::LOCALHOST);
        Self {
            trusted_proxies: vec![IpNet::V4(v4), IpNet::V6(v6)],
            ipv6_prefix: 64,
        }
    }
}

impl ClientSettings {
    /// How addresses become keys.
    pub fn address_rules(&self) -> AddressRules {
        AddressRules {
            ipv6_prefix: self.ipv6_prefix,
        }
    }
}

/// Reads `client`.
pub(super) fn read(reader: &mut Reader<'_>, value: Option<&Value<'_>>) -> ClientSettings {
    let default = ClientSettings::default();
    let Some(fields) = value.and_then(|value| reader.fields(value, &CLIENT)) else {
        return default;
    };
    let trusted_proxies = fields
        .get("trusted_proxies")
        .map(|value| match &value.node.kind {
            // An empty list is the way to trust nobody.
            Kind::List(items) if items.is_empty() => Vec::new(),
            _ => networks(reader, &value),
        });
    let ipv6_prefix = reader.setting(&fields, "ipv6_prefix", |text| whole(text, &(1..=128)));
    let ipv6_prefix = ipv6_prefix.and_then(|bits| u8::try_from(bits).ok());
    ClientSettings {
        trusted_proxies: trusted_proxies.unwrap_or(default.trusted_proxies),
        ipv6_prefix: ipv6_prefix.unwrap_or(default.ipv6_prefix),
    }
}

/// Reads one address or network, or a list of them.
pub(super) fn networks(reader: &mut Reader<'_>, value: &Value<'_>) -> Vec<IpNet> {
    let items = reader.one_or_many(value);
    items
        .iter()
        .filter_map(|item| reader.parse(item, network))
        .collect()
}
