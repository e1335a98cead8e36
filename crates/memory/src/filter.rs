//! The keys that an overflow bucket has charged: two Bloom filters that take turns.
//!
//! A key that was charged counts until the overflow bucket, as that charge left it, is as good as new:
//! the key's own debt is a part of that debt, and paid off by then. A filter takes new keys until all
//! those of the one before it count no more; then it is the one before, and the other is begun anew.
//! So the two hold the keys of two refill horizons at most, however long a flood lasts.
//!
//! Only keys that took at least one unit are inserted: no key that was refused without a charge, and none
//! whose forced charge found the bucket at its floor. So a horizon has at most as many keys as twice the
//! units of the bucket, its overdraft included. With 20 keys in a filter, one of half a million other keys
//! is taken for one of them; with 200 of them, one of a hundred. Such a key begins with the debt of the
//! overflow bucket: it is limited sooner, and never later.

use tidegate_core::Timestamp;

/// Bits that a key sets.
const KEY_BITS: u32 = 4;

/// Each chosen by eleven bits of the key.
const CHOICE_BITS: u32 = 11;

const WORDS: usize = (1 << CHOICE_BITS) / 64;

/// The keys that an overflow bucket has charged and whose charges still matter, and few others.
#[derive(Clone, Debug)]
pub(crate) struct ChargedKeys {
    recent: FilterGeneration,
    before: FilterGeneration,
}

#[derive(Clone, Debug)]
struct FilterGeneration {
    bits: [u64; WORDS],
    /// None of the keys counts from here on.
    until: Timestamp,
}

const NONE: FilterGeneration = FilterGeneration {
    bits: [0; WORDS],
    until: Timestamp::from_micros(0),
};

impl ChargedKeys {
    pub(crate) fn new() -> Self {
        Self {
            recent: NONE,
            before: NONE,
        }
    }

    /// Remembers a key that was charged at `now`; the bucket is as good as new at `fresh_at`.
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

    /// Whether `key` may have been charged and the charge may matter at `now`; never `false` if so.
    pub(crate) fn contains(&self, key: u64, now: Timestamp) -> bool {
        [&self.recent, &self.before].into_iter().any(|keys| {
            let has =
                |(word, bit): (usize, u64)| keys.bits.get(word).is_some_and(|word| word & bit != 0);
            now < keys.until && bits_of(key).all(has)
        })
    }
}

/// The words and bits of a key, which is a hash of which every bit can be relied on.
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

    /// A key that is a hash, as fingerprints are.
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
    fn no_key_is_missed_while_its_charge_matters_and_all_are_forgotten_in_the_end() {
        let mut filter = ChargedKeys::new();
        for nth in 0..10_000 {
            let now = nth * 100;
            filter.insert(key(nth), (at(now), at(now + 1_000)));
            for recent in nth.saturating_sub(9)..=nth {
                assert!(filter.contains(key(recent), at(now)), "{recent}");
            }
            // Two horizons and what is between two charges.
            if let Some(old) = nth.checked_sub(25) {
                assert!(!filter.contains(key(old), at(now)), "{old}");
            }
        }
    }

    /// A filter that was never emptied would take every newcomer for a key that was charged.
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
    fn as_many_strangers_are_taken_for_charged_keys_as_is_said() {
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
