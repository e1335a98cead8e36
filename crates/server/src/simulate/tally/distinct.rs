//! Counts distinct values: exactly while they are few, and by an estimate once they are many.

/// The number of values that are counted exactly. Beyond it the estimate is off by about 1 / √131,072:
/// 0.3 %.
const EXACT_MAX: usize = 1 << 18;

/// The initial number of slots.
const PLACES_MIN: usize = 1 << 6;

/// Counts distinct hashes in bounded memory.
///
/// Every hash is kept until there are too many. Then only those that end in a zero bit stay, which is
/// about half of them; then those with two zero bits, and three. Each kept hash then counts for as many
/// as it represents.
///
/// They are kept in one array, each in the first free slot from the one that its upper bits select. A
/// lookup then usually costs one cache miss and not two.
#[derive(Debug)]
pub(super) struct DistinctCounter {
    /// The slots: a power of two, at most half of them taken; 0 is a free one.
    places: Box<[u64]>,
    kept: usize,
    /// The number of zero bits that a kept hash ends in.
    zeros: u32,
}

impl Default for DistinctCounter {
    fn default() -> Self {
        Self {
            places: vec![0; PLACES_MIN].into_boxed_slice(),
            kept: 0,
            zeros: 0,
        }
    }
}

impl DistinctCounter {
    /// Counts the value with this hash, if it is new.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        // The one value in 2^64 whose hash is 0 counts as another.
        let hash = hash.max(1);
        if hash.trailing_zeros() >= self.zeros && place(&mut self.places, hash) {
            self.kept += 1;
            if self.kept > self.places.len() / 2 {
                self.make_room();
            }
        }
    }

    /// Returns the number of values, if it is exact.
    pub(super) fn exact(&self) -> Option<u64> {
        (self.zeros == 0).then(|| self.estimate())
    }

    /// Returns the approximate number of values.
    pub(super) fn estimate(&self) -> u64 {
        let kept = u64::try_from(self.kept).unwrap_or(u64::MAX);
        kept.saturating_mul(1_u64.checked_shl(self.zeros).unwrap_or(u64::MAX))
    }

    #[cold]
    fn make_room(&mut self) {
        let mut count = self.places.len().saturating_mul(2);
        if self.kept > EXACT_MAX {
            self.zeros += 1;
            count = self.places.len();
        }
        let old = std::mem::replace(&mut self.places, vec![0; count].into_boxed_slice());
        let stays = |hash: &&u64| **hash != 0 && hash.trailing_zeros() >= self.zeros;
        self.kept = 0;
        for hash in old.iter().filter(stays) {
            self.kept += usize::from(place(&mut self.places, *hash));
        }
    }
}

/// Inserts a hash. Returns true if it is new. There must be a free slot.
#[inline]
fn place(places: &mut [u64], hash: u64) -> bool {
    let mask = places.len().wrapping_sub(1);
    // The lower bits select which hashes are kept, so they distribute the hashes less evenly.
    let mut at = usize::try_from(hash >> 32).unwrap_or(0) & mask;
    loop {
        match places.get_mut(at) {
            Some(free @ 0) => {
                *free = hash;
                return true;
            }
            Some(taken) if *taken == hash => return false,
            _ => at = at.wrapping_add(1) & mask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldhash::quality::FixedState;
    use std::hash::BuildHasher;

    fn count(different: u64) -> DistinctCounter {
        let state = FixedState::with_seed(7);
        let mut distinct = DistinctCounter::default();
        for nth in 0..different {
            distinct.insert(state.hash_one(nth));
            distinct.insert(state.hash_one(nth / 2));
        }
        distinct
    }

    #[test]
    fn small_numbers_of_keys_are_counted_exactly() {
        for different in [0, 1, 1_000, 1 << 18] {
            assert_eq!(count(different).exact(), Some(different));
        }
    }

    #[test]
    fn large_numbers_of_keys_are_estimated_in_bounded_memory() {
        for different in [300_000, 1_000_000, 3_000_000] {
            let distinct = count(different);
            assert_eq!(distinct.exact(), None);
            assert_eq!(distinct.places.len(), 2 * EXACT_MAX);
            let error = distinct.estimate().abs_diff(different);
            assert!(error * 100 < different, "{different} was off by {error}");
        }
    }

    #[test]
    fn any_hash_function_is_supported() {
        let mut distinct = DistinctCounter::default();
        for hash in [0, 0, 1, u64::MAX, 1 << 63] {
            distinct.insert(hash);
        }
        assert_eq!(distinct.exact(), Some(3), "0 and 1 count as one");
    }
}
