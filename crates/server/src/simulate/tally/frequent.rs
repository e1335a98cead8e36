//! Finds the keys that were refused most, in bounded memory.

use hashbrown::HashTable;

/// The maximum number of tracked keys. Up to here counts are exact.
const WATCHED_MAX: usize = 8_192;

/// Finds the most frequent of any number of keys, with the algorithm of Misra and Gries.
///
/// A key is tracked from its first appearance. When there are too many, the median count is subtracted
/// from all of them, and those with nothing left are dropped: at least half. A count is then too low by
/// at most [`error`](Self::error), which is at most 2 / 8,192 of all additions.
#[derive(Debug, Default)]
pub(super) struct FrequentKeys {
    watched: HashTable<FrequentKey>,
    error: u64,
}

/// A key, and its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrequentKey {
    hash: u64,
    /// The index of the row that the key belongs to.
    pub(super) row: usize,
    pub(super) key: Box<str>,
    /// A lower bound.
    pub(super) count: u64,
}

impl FrequentKeys {
    /// Counts a key of a row; `hash` is that of the key.
    #[inline]
    pub(super) fn add(&mut self, row: usize, key: &str, hash: u64) {
        let is_same =
            |other: &FrequentKey| other.hash == hash && other.row == row && *other.key == *key;
        if let Some(watched) = self.watched.find_mut(hash, is_same) {
            watched.count += 1;
            return;
        }
        self.watch(row, key, hash);
    }

    #[cold]
    fn watch(&mut self, row: usize, key: &str, hash: u64) {
        if self.watched.len() >= WATCHED_MAX {
            self.forget();
        }
        let watched = FrequentKey {
            hash,
            row,
            key: key.into(),
            count: 1,
        };
        self.watched
            .insert_unique(hash, watched, |other| other.hash);
    }

    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.watched.iter().map(|watched| watched.count).collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.watched.retain(|watched| {
            watched.count = watched.count.saturating_sub(median);
            watched.count > 0
        });
        self.error += median;
    }

    /// Returns the `count` most frequent keys, the most frequent first.
    pub(super) fn top(&self, count: usize) -> Vec<FrequentKey> {
        let mut all: Vec<&FrequentKey> = self.watched.iter().collect();
        // Ties are ordered by name, so that the same trace always gives the same summary.
        all.sort_unstable_by(|a, b| {
            let by_count = b.count.cmp(&a.count);
            by_count.then_with(|| (a.row, &a.key).cmp(&(b.row, &b.key)))
        });
        all.into_iter().take(count).cloned().collect()
    }

    /// Returns the maximum by which counts may be too low.
    pub(super) fn error(&self) -> u64 {
        self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldhash::quality::FixedState;
    use std::hash::BuildHasher;

    fn add(frequent: &mut FrequentKeys, key: &str) {
        frequent.add(0, key, FixedState::with_seed(1).hash_one(key));
    }

    #[test]
    fn few_keys_are_counted_exactly_and_ties_go_by_name() {
        let mut frequent = FrequentKeys::default();
        for key in ["b", "a", "c", "a", "c", "b", "c"] {
            add(&mut frequent, key);
        }
        let top = frequent.top(2);
        let top: Vec<_> = top.iter().map(|it| (&*it.key, it.count)).collect();
        assert_eq!((top, frequent.error()), (vec![("c", 3), ("a", 2)], 0));
    }

    #[test]
    fn rows_are_distinguished() {
        let mut frequent = FrequentKeys::default();
        frequent.add(1, "a", 5);
        frequent.add(2, "a", 5);
        assert_eq!(frequent.top(9).len(), 2);
    }

    #[test]
    fn the_most_frequent_keys_are_found_among_any_number() {
        let mut frequent = FrequentKeys::default();
        for nth in 0..200_000 {
            add(&mut frequent, &format!("passing-{nth}"));
            if nth % 50 == 0 {
                add(&mut frequent, "stays");
            }
        }
        assert!(frequent.watched.len() <= WATCHED_MAX);
        let top = frequent.top(1);
        assert_eq!(&*top[0].key, "stays");
        assert!(top[0].count <= 4_000 && top[0].count + frequent.error() >= 4_000);
    }
}
