//! A list of addresses and networks. To look one up takes one look for each length of prefix that the
//! list has, and no more however many it holds.

use crate::client::canonical;
use crate::limit::AddressRules;
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use ipnet::IpNet;
use std::hash::Hash;
use std::net::IpAddr;

/// The networks of one length of prefix.
struct Level<N> {
    /// How many leading bits count.
    prefix: u8,
    mask: N,
    networks: HashSet<N, RandomState>,
}

/// Addresses and networks.
#[derive(Default)]
pub(super) struct Addresses {
    v4: Vec<Level<u32>>,
    v6: Vec<Level<u128>>,
}

/// An address or a network, as a list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member(IpNet);

// === impl Member ===

impl Member {
    /// Reads an address or a network. IPv4 written as IPv6 is IPv4. An address of IPv6 stands for all
    /// that count as the same client; with `/128` behind it, for itself alone.
    pub(crate) fn parse(text: &str, rules: AddressRules) -> Option<Self> {
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
}

// === impl Addresses ===

impl Addresses {
    pub(super) fn len(&self) -> usize {
        let v4 = self.v4.iter().map(|level| level.networks.len());
        let v6 = self.v6.iter().map(|level| level.networks.len());
        v4.chain(v6).fold(0, usize::saturating_add)
    }

    pub(super) fn is_empty(&self) -> bool {
        // A length of prefix is there only with a network of it.
        self.v4.is_empty() && self.v6.is_empty()
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let bits = u32::from(v4);
                let holds = |it: &Level<u32>| it.networks.contains(&(bits & it.mask));
                self.v4.iter().any(holds)
            }
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                let holds = |it: &Level<u128>| it.networks.contains(&(bits & it.mask));
                self.v6.iter().any(holds)
            }
        }
    }

    pub(super) fn insert(&mut self, Member(network): Member) {
        match network {
            IpNet::V4(v4) => {
                let mask = u32::from(v4.netmask());
                let bits = u32::from(v4.network());
                level(&mut self.v4, v4.prefix_len(), mask).insert(bits);
            }
            IpNet::V6(v6) => {
                let mask = u128::from(v6.netmask());
                let bits = u128::from(v6.network());
                level(&mut self.v6, v6.prefix_len(), mask).insert(bits);
            }
        }
    }
}

/// The networks of this length of prefix.
fn level<N: Eq + Hash>(
    levels: &mut Vec<Level<N>>,
    prefix: u8,
    mask: N,
) -> &mut HashSet<N, RandomState> {
    let found = levels.iter().position(|level| level.prefix == prefix);
    let nth = found.unwrap_or_else(|| {
        levels.push(Level {
            prefix,
            mask,
            networks: HashSet::default(),
        });
        levels.len().saturating_sub(1)
    });
    let level = levels.get_mut(nth).expect("it was found, or just added");
    &mut level.networks
}
