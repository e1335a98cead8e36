//! The keys that an overflow bucket has charged: two Bloom filters that take turns.
//!
//! A charged key counts until the overflow bucket, as that charge left it, is full again: the key's
//! own debt is a part of that debt, and paid off by then. A filter takes new keys until all those
//! of the previous one have expired. Then it becomes the previous one, and the other starts empty.
//! So the two hold the keys of two refill horizons at most, for a flood of any length.
//!
//! Only keys that took at least one unit are inserted: no key that was refused without a charge,
//! and none whose forced charge found the bucket at its floor. So a horizon has at most as many
//! keys as twice the units of the bucket, its overdraft included. With 20 keys in a filter, one of
//! half a million other keys is taken for one of them; with 200, one of a hundred. Such a key
//! begins with the debt of the overflow bucket: it is limited sooner, and never later.

use tidegate_core::Timestamp;

/// Number of bits that a key sets.
const KEY_BITS: u32 = 4;

/// Number of bits of the key that choose one of these bits.
const CHOICE_BITS: u32 = 11;

/// Size of a filter in words of 64 bits.
pub(crate) const WORDS: usize = (1 << CHOICE_BITS) / 64;

/// The keys that an overflow bucket has charged and whose charges still matter, and few others.
///
/// It takes two filters of 256 bytes, regardless of the number of keys.
#[derive(Clone, Debug)]
pub(crate) struct ChargedKeys {
    /// Filter that takes new keys.
    recent: FilterGeneration,
    /// Filter of the horizon before, kept until its keys have expired.
    before: FilterGeneration,
}

/// One of the two filters: the bits, and the time at which all its keys have expired.
#[derive(Clone, Debug)]
struct FilterGeneration {
    bits: [u64; WORDS],
    /// Instant from which none of the keys counts.
    until: Timestamp,
}

/// A filter without keys.
const NONE: FilterGeneration = FilterGeneration {
    bits: [0; WORDS],
    until: Timestamp::from_micros(0),
};

impl ChargedKeys {
    /// Creates two empty filters.
    pub(crate) fn new() -> Self {
        Self {
            recent: NONE,
            before: NONE,
        }
    }

    /// Remembers a key that was charged at `now`; the bucket is full again at `fresh_at`.
    ///
    /// If all keys of the filter before have expired, the recent filter replaces it, and a new one
    /// starts.
    pub(crate) fn insert(&mut self, key: u64, (now, fresh_at): (Timestamp, Timestamp)) {
        if self.before.until <= now {
            self.before = std::mem::replace(&mut self.recent, NONE);
        }
        self.recent.until = self.recent.until.max(fresh_at);
        for (word, bit) in bits_of(key) {
            if let Some(word) = self.recent.bits.get_mut(word) {
                *word |= bit;
            }
        }
    }

    /// Returns both filters as numbers: the bits, and the instant from which none of the keys counts;
    /// the recent one first.
    #[cfg(not(loom))]
    pub(crate) fn to_numbers(&self) -> [([u64; WORDS], u64); 2] {
        [&self.recent, &self.before].map(|keys| (keys.bits, keys.until.as_micros()))
    }

    /// Returns the filters with these numbers.
    #[cfg(not(loom))]
    pub(crate) fn from_numbers([recent, before]: [([u64; WORDS], u64); 2]) -> Self {
        let generation = |(bits, until)| FilterGeneration {
            bits,
            until: Timestamp::from_micros(until),
        };
        Self {
            recent: generation(recent),
            before: generation(before),
        }
    }

    /// Returns true if `key` may have been charged and the charge may matter at `now`. There are
    /// false positives, never false negatives.
    pub(crate) fn contains(&self, key: u64, now: Timestamp) -> bool {
        [&self.recent, &self.before].into_iter().any(|keys| {
            let has =
                |(word, bit): (usize, u64)| keys.bits.get(word).is_some_and(|word| word & bit != 0);
            now < keys.until && bits_of(key).all(has)
        })
    }
}

/// Returns the words and bits of a key. The key is a hash of which every bit can be relied on, so
/// its bits are used directly.
fn bits_of(key: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..KEY_BITS).map(move |nth| {
        let chosen = key >> (nth * CHOICE_BITS) & ((1 << CHOICE_BITS) - 1);
        let word = usize::try_from(chosen / 64).unwrap_or(0);
        (word, 1 << (chosen % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::ChargedKeys;
    use tidegate_core::Timestamp;

    /// Returns a hash as a key, like fingerprints.
    fn key(nth: u64) -> u64 {
        let mixed = nth
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(31)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    }

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn the_filter_misses_no_charged_key_and_forgets_expired_ones() {
        let mut filter = ChargedKeys::new();
        for nth in 0..10_000 {
            let now = nth * 100;
            filter.insert(key(nth), (at(now), at(now + 1_000)));
            for recent in nth.saturating_sub(9)..=nth {
                assert!(filter.contains(key(recent), at(now)), "{recent}");
            }
            // Two horizons, plus the time between two charges.
            if let Some(old) = nth.checked_sub(25) {
                assert!(!filter.contains(key(old), at(now)), "{old}");
            }
        }
    }

    /// A filter that is never emptied would report every newcomer as charged.
    #[test]
    fn a_flood_that_lasts_does_not_fill_the_filter() {
        let mut filter = ChargedKeys::new();
        for nth in 0..100_000 {
            filter.insert(key(nth), (at(nth * 100), at(nth * 100 + 1_000)));
        }
        let now = at(100_000 * 100);
        let mistaken = (200_000..300_000)
            .filter(|nth| filter.contains(key(*nth), now))
            .count();
        assert!(mistaken < 10, "{mistaken} of 100,000");
    }

    #[test]
    fn the_false_positive_rate_of_the_filter_is_as_documented() {
        let mut filter = ChargedKeys::new();
        for nth in 0..200 {
            filter.insert(key(nth), (at(0), at(1_000)));
        }
        let mistaken = (200_000..300_000)
            .filter(|nth| filter.contains(key(*nth), at(1)))
            .count();
        assert!((500..2_000).contains(&mistaken), "{mistaken} of 100,000");
    }
}
