//! Counts that have not been sent yet.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// The number of shards, so that few threads contend for one lock.
const PARTS: usize = 16;

/// The maximum number of addresses counted separately between two sends; all others are counted together.
pub(crate) const GATHERED_MAX: usize = 65_536;

/// The name under which addresses beyond that maximum are counted.
pub(crate) const OTHER: &str = "other";

/// A buffer of counts by address. Bounded, regardless of the number of addresses.
#[derive(Debug, Default)]
pub(crate) struct CountBuffer {
    parts: [Mutex<CountShard>; PARTS],
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct CountShard {
    counts: HashMap<IpAddr, u64, RandomState>,
    other: u64,
}

impl CountBuffer {
    /// Counts a request of `address`, which is already grouped by the address rules.
    #[inline]
    pub(crate) fn count(&self, address: IpAddr) {
        let number = usize::try_from(self.hasher.hash_one(address) % 16).unwrap_or_default();
        let Some(part) = self.parts.get(number) else {
            return;
        };
        let mut part = part.lock();
        let has_room = part.counts.len() < GATHERED_MAX / PARTS;
        match part.counts.get_mut(&address) {
            Some(count) => *count = count.saturating_add(1),
            None if has_room => {
                part.counts.insert(address, 1);
            }
            None => part.other = part.other.saturating_add(1),
        }
    }

    /// Takes all counts out of the buffer: names, as `name` formats them, and counts. The entry for [`OTHER`]
    /// comes last.
    pub(crate) fn take(&self, name: impl Fn(IpAddr) -> String) -> Vec<(Vec<u8>, u64)> {
        let mut taken = Vec::new();
        let mut other: u64 = 0;
        for part in &self.parts {
            let part = std::mem::take(&mut *part.lock());
            let counts = part.counts.into_iter();
            taken.extend(counts.map(|(address, count)| (name(address).into_bytes(), count)));
            other = other.saturating_add(part.other);
        }
        if other > 0 {
            taken.push((OTHER.into(), other));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::{CountBuffer, GATHERED_MAX, OTHER};
    use std::net::{IpAddr, Ipv4Addr};

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(number))
    }

    #[test]
    fn every_count_is_taken_once() {
        let gathered = CountBuffer::default();
        for number in [1, 2, 1, 3, 1] {
            gathered.count(address(number));
        }
        let mut taken = gathered.take(|address| address.to_string());
        taken.sort();
        let expected = [("0.0.0.1", 3), ("0.0.0.2", 1), ("0.0.0.3", 1)];
        assert_eq!(taken, expected.map(|(name, count)| (name.into(), count)));
        assert_eq!(gathered.take(|address| address.to_string()), []);
    }

    #[test]
    fn addresses_beyond_the_capacity_are_counted_as_one() {
        let gathered = CountBuffer::default();
        let strangers = 2 * u32::try_from(GATHERED_MAX).expect("a small number");
        for number in 0..strangers {
            gathered.count(address(number));
        }
        let taken = gathered.take(|address| address.to_string());
        assert!(taken.len() <= GATHERED_MAX + 1, "{}", taken.len());
        let sum: u64 = taken.iter().map(|(_, count)| count).sum();
        assert_eq!(sum, u64::from(strangers));
        assert_eq!(
            taken.last().map(|(name, _)| name.as_slice()),
            Some(OTHER.as_bytes())
        );
    }
}
