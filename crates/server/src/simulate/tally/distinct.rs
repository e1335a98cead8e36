//! How many different things there were: exact while they are few, estimated once they are many.

/// How many are counted exactly. Beyond it the estimate is off by about 1 / √131,072: 0.3 %.
const EXACT_MAX: usize = 1 << 18;

/// How many places there are at first.
const PLACES_MIN: usize = 1 << 6;

/// Counts different hashes in bounded memory.
///
/// Every hash is kept until there are too many. Then only those that end in a zero bit stay, which
/// is about half of them, and so on with two zero bits, and three; each of those that are kept
/// stands for as many as there would be.
///
/// They are kept in one array, each at the first free place from where its upper bits point to, so
/// that to look one up most often costs one miss of the cache and not two.
#[derive(Debug)]
pub(super) struct Distinct {
    /// A power of two of them, at most half taken; 0 is a free one.
    places: Box<[u64]>,
    kept: usize,
    /// How many zero bits a hash has to end in.
    zeros: u32,
}

impl Default for Distinct {
    fn default() -> Self {
        Self {
            places: vec![0; PLACES_MIN].into_boxed_slice(),
            kept: 0,
            zeros: 0,
        }
    }
}

impl Distinct {
    /// Counts the thing with this hash, if it is new.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        // The one thing in 2^64 whose hash is 0 is taken for another.
        let hash = hash.max(1);
        if hash.trailing_zeros() >= self.zeros && place(&mut self.places, hash) {
            self.kept += 1;
            if self.kept > self.places.len() / 2 {
                self.make_room();
            }
        }
    }

    /// How many there were, if that is known exactly.
    pub(super) fn exact(&self) -> Option<u64> {
        (self.zeros == 0).then(|| self.estimate())
    }

    /// About how many there were.
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

/// Puts a hash in its place, and says whether it is new. There has to be a free place.
#[inline]
fn place(places: &mut [u64], hash: u64) -> bool {
    let mask = places.len().wrapping_sub(1);
    // The lower bits say which hashes are kept, and so tell those that are less apart.
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

    fn count(different: u64) -> Distinct {
        let state = FixedState::with_seed(7);
        let mut distinct = Distinct::default();
        for nth in 0..different {
            distinct.insert(state.hash_one(nth));
            distinct.insert(state.hash_one(nth / 2));
        }
        distinct
    }

    #[test]
    fn few_are_counted_exactly() {
        for different in [0, 1, 1_000, 1 << 18] {
            assert_eq!(count(different).exact(), Some(different));
        }
    }

    #[test]
    fn many_are_estimated_in_bounded_memory() {
        for different in [300_000, 1_000_000, 3_000_000] {
            let distinct = count(different);
            assert_eq!(distinct.exact(), None);
            assert_eq!(distinct.places.len(), 2 * EXACT_MAX);
            let error = distinct.estimate().abs_diff(different);
            assert!(error * 100 < different, "{different} was off by {error}");
        }
    }

    #[test]
    fn any_hash_will_do() {
        let mut distinct = Distinct::default();
        for hash in [0, 0, 1, u64::MAX, 1 << 63] {
            distinct.insert(hash);
        }
        assert_eq!(distinct.exact(), Some(3), "0 and 1 count as one");
    }
}
