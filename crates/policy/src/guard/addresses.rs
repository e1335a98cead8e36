//! A list of addresses and networks. A lookup costs one probe per distinct prefix length in the list,
//! regardless of the number of members.

use crate::address_rules::AddressMember;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use ipnet::IpNet;
use std::hash::Hash;
use std::net::IpAddr;
use std::ops::BitAnd;

/// The networks with one prefix length.
struct PrefixLevel<N> {
    /// The number of leading bits that are compared.
    prefix: u8,
    mask: N,
    networks: HashSet<N, RandomState>,
    /// The expiry of those networks that have one. A separate map, because most lists have none.
    ends: HashMap<N, u64, RandomState>,
}

/// A set of addresses and networks.
#[derive(Default)]
pub(super) struct AddressTable {
    v4: Vec<PrefixLevel<u32>>,
    v6: Vec<PrefixLevel<u128>>,
}

// === impl AddressTable ===

impl AddressTable {
    pub(super) fn len(&self) -> usize {
        let v4 = self.v4.iter().map(|level| level.networks.len());
        let v6 = self.v6.iter().map(|level| level.networks.len());
        v4.chain(v6).fold(0, usize::saturating_add)
    }

    pub(super) fn is_empty(&self) -> bool {
        // Each level has at least one network.
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

    /// Returns the time at which the last member that contains this address expires. Returns `None` if one of
    /// them does not expire, or none contains it.
    pub(super) fn end_of(&self, address: IpAddr) -> Option<u64> {
        match address.to_canonical() {
            IpAddr::V4(v4) => latest(&self.v4, u32::from(v4)),
            IpAddr::V6(v6) => latest(&self.v6, u128::from(v6)),
        }
    }

    /// Adds a member that expires at `end`, or never if `end` is `None`.
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

// === impl PrefixLevel ===

impl<N: Copy + Eq + Hash> PrefixLevel<N> {
    /// Adds a network. It may be listed several times in different notations; the latest expiry applies.
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

/// Returns the expiry of the last network that contains these bits, or `None` if one does not expire.
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

/// Returns the level with this prefix length, added if it is new.
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
