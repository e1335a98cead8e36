//! The node of each slot: a snapshot that is replaced as a whole.

use super::node::RedisNode;
use crate::address::Address;
use crate::slot::SLOTS;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// No node serves the slot.
const NOBODY: u16 = u16::MAX;

/// The nodes and what they serve.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    /// The masters.
    pub(super) nodes: Vec<Arc<RedisNode>>,
    pub(super) slots: Slots,
    pub(super) replicas: Vec<Address>,
}

/// The node of each slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slots {
    /// The one master serves all.
    One,
    /// An index into the nodes for each slot.
    Map(Box<[u16]>),
}

impl Topology {
    /// Returns a topology without nodes.
    pub(super) fn new(slots: Slots) -> Self {
        Self {
            nodes: Vec::new(),
            slots,
            replicas: Vec::new(),
        }
    }

    /// Returns the node that serves a slot.
    pub(super) fn node(&self, slot: u16) -> Option<&Arc<RedisNode>> {
        match &self.slots {
            Slots::One => self.nodes.first(),
            Slots::Map(map) => self.nodes.get(usize::from(*map.get(usize::from(slot))?)),
        }
    }

    /// Returns the node at an address.
    pub(super) fn find(&self, address: &Address) -> Option<&Arc<RedisNode>> {
        self.nodes.iter().find(|node| node.address == *address)
    }

    /// The runs of slots that each node serves, in the order of the nodes.
    pub(super) fn ranges(&self) -> Vec<Vec<RangeInclusive<u16>>> {
        let mut ranges = vec![Vec::new(); self.nodes.len()];
        let Slots::Map(map) = &self.slots else {
            return ranges;
        };
        let mut slot = 0;
        for run in map.chunk_by(|a, b| a == b) {
            let length = u16::try_from(run.len()).unwrap_or(SLOTS);
            let owner = run.first().copied().map(usize::from);
            if let Some(of) = owner.and_then(|owner| ranges.get_mut(owner)) {
                of.push(slot..=slot + (length - 1));
            }
            slot += length;
        }
        ranges
    }
}

impl Slots {
    /// Returns a topology without any node.
    pub(super) fn unknown() -> Self {
        Self::Map(vec![NOBODY; usize::from(SLOTS)].into())
    }

    /// Hands `slots` to the node at `index`. Slots beyond the last do not exist and are ignored.
    pub(super) fn assign(&mut self, slots: RangeInclusive<u16>, index: usize) {
        let (Self::Map(map), Ok(index)) = (self, u16::try_from(index)) else {
            return;
        };
        let last = (*slots.end()).min(SLOTS - 1);
        let range = usize::from(*slots.start())..=usize::from(last);
        if let Some(slots) = map.get_mut(range) {
            slots.fill(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let mut topology = Topology::new(Slots::unknown());
        for port in [1, 2] {
            let node = RedisNode::new(Address::new("a", port), 1);
            topology.nodes.push(Arc::new(node));
        }
        topology
    }

    fn port(topology: &Topology, slot: u16) -> Option<u16> {
        topology.node(slot).map(|node| node.address.port)
    }

    #[test]
    fn slots_lead_to_nodes() {
        let mut topology = topology();
        topology.slots.assign(0..=99, 0);
        topology.slots.assign(100..=16_383, 1);
        topology.slots.assign(5..=5, 1);
        assert_eq!(port(&topology, 0), Some(1));
        assert_eq!(port(&topology, 5), Some(2));
        assert_eq!(port(&topology, 99), Some(1));
        assert_eq!(port(&topology, 16_383), Some(2));
        assert_eq!(
            topology.ranges(),
            [vec![0..=4, 6..=99], vec![5..=5, 100..=16_383]]
        );
    }

    #[test]
    fn unserved_and_invalid_slots_have_no_node() {
        let mut topology = topology();
        topology.slots.assign(16_380..=u16::MAX, 0);
        topology.slots.assign(RangeInclusive::new(9, 3), 0);
        assert_eq!(port(&topology, 0), None);
        assert_eq!(port(&topology, 16_383), Some(1));
        assert_eq!(port(&topology, u16::MAX), None);
        assert_eq!(topology.ranges(), [vec![16_380..=16_383], vec![]]);
    }
}
