//! A list of addresses and networks. To look one up takes one look for each length of prefix that the
//! list has, and no more however many it holds.

use crate::client::canonical;
use crate::limit::AddressRules;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use ipnet::IpNet;
use std::hash::Hash;
use std::net::IpAddr;
use std::ops::BitAnd;

/// The networks of one length of prefix.
struct PrefixLevel<N> {
    /// How many leading bits count.
    prefix: u8,
    mask: N,
    networks: HashSet<N, RandomState>,
    /// When those leave by themselves that do. Apart, for most lists have none.
    ends: HashMap<N, u64, RandomState>,
}

/// Addresses and networks.
#[derive(Default)]
pub(super) struct AddressTable {
    v4: Vec<PrefixLevel<u32>>,
    v6: Vec<PrefixLevel<u128>>,
}

/// An address or a network, as a list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressMember(IpNet);

// === impl Member ===

impl AddressMember {
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

    /// The network that it is, without what its prefix leaves out.
    pub(crate) fn network(self) -> IpNet {
        self.0.trunc()
    }
}

// === impl Addresses ===

impl AddressTable {
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
                let holds = |it: &PrefixLevel<u32>| it.networks.contains(&(bits & it.mask));
                self.v4.iter().any(holds)
            }
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                let holds = |it: &PrefixLevel<u128>| it.networks.contains(&(bits & it.mask));
                self.v6.iter().any(holds)
            }
        }
    }

    /// When all that hold this address have left, if every one of them does.
    pub(super) fn end_of(&self, address: IpAddr) -> Option<u64> {
        match address.to_canonical() {
            IpAddr::V4(v4) => latest(&self.v4, u32::from(v4)),
            IpAddr::V6(v6) => latest(&self.v6, u128::from(v6)),
        }
    }

    /// Adds a member, which leaves by itself at `end`, or stays.
    pub(super) fn insert(&mut self, AddressMember(network): AddressMember, end: Option<u64>) {
        match network {
            IpNet::V4(v4) => {
                let mask = u32::from(v4.netmask());
                let bits = u32::from(v4.network());
                level(&mut self.v4, v4.prefix_len(), mask).insert(bits, end);
            }
            IpNet::V6(v6) => {
                let mask = u128::from(v6.netmask());
                let bits = u128::from(v6.network());
                level(&mut self.v6, v6.prefix_len(), mask).insert(bits, end);
            }
        }
    }
}

// === impl Level ===

impl<N: Copy + Eq + Hash> PrefixLevel<N> {
    /// A network may be there in several spellings: it stays for as long as the last of them.
    fn insert(&mut self, network: N, end: Option<u64>) {
        let is_new = self.networks.insert(network);
        match end {
            None => {
                self.ends.remove(&network);
            }
            Some(end) if is_new => {
                self.ends.insert(network, end);
            }
            Some(end) => {
                if let Some(known) = self.ends.get_mut(&network) {
                    *known = end.max(*known);
                }
            }
        }
    }
}

/// When the last of the networks has left that hold these bits; `None` where one stays.
fn latest<N>(levels: &[PrefixLevel<N>], bits: N) -> Option<u64>
where
    N: Copy + Eq + Hash + BitAnd<Output = N>,
{
    let mut latest = None;
    for level in levels {
        let network = bits & level.mask;
        if level.networks.contains(&network) {
            latest = latest.max(Some(*level.ends.get(&network)?));
        }
    }
    latest
}

/// The networks of this length of prefix.
fn level<N: Eq + Hash>(
    levels: &mut Vec<PrefixLevel<N>>,
    prefix: u8,
    mask: N,
) -> &mut PrefixLevel<N> {
    let found = levels.iter().position(|level| level.prefix == prefix);
    let nth = found.unwrap_or_else(|| {
        levels.push(PrefixLevel {
            prefix,
            mask,
            networks: HashSet::default(),
            ends: HashMap::default(),
        });
        levels.len().saturating_sub(1)
    });
    levels.get_mut(nth).expect("it was found, or just added")
}
