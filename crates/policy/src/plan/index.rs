//! Texts in one allocation, found by their hash: small for a hundred thousand of them, and freed with three
//! deallocations.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Distinct texts, numbered in the order of insertion.
#[derive(Default)]
pub(super) struct Index {
    text: String,
    /// The end of each text; it starts where the previous one ends.
    ends: Vec<u32>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Index {
    /// Adds a text. Returns its number, and true if it is new. Returns `None` if there is no room for it.
    pub(super) fn add(&mut self, text: &str) -> Option<(u32, bool)> {
        let hash = self.hasher.hash_one(text);
        if let Some(number) = self.find(hash, text) {
            return Some((number, false));
        }
        let number = u32::try_from(self.ends.len()).ok()?;
        let end = self.text.len().checked_add(text.len())?;
        self.ends.push(u32::try_from(end).ok()?);
        self.text.push_str(text);
        let Self {
            text: all,
            ends,
            numbers,
            hasher,
        } = self;
        numbers.insert_unique(hash, number, |other| {
            hasher.hash_one(text_of(all, ends, *other))
        });
        Some((number, true))
    }

    /// Returns the number of a text.
    #[inline]
    pub(super) fn get(&self, text: &str) -> Option<u32> {
        if self.ends.is_empty() {
            return None;
        }
        self.find(self.hasher.hash_one(text), text)
    }

    #[inline]
    fn find(&self, hash: u64, text: &str) -> Option<u32> {
        let is_it = |number: &u32| text_of(&self.text, &self.ends, *number) == text;
        self.numbers.find(hash, is_it).copied()
    }

    /// Returns the text with this number.
    pub(super) fn text(&self, number: u32) -> &str {
        text_of(&self.text, &self.ends, number)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Releases spare capacity.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Returns its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let ends = self.ends.capacity().saturating_mul(size_of::<u32>());
        let table = self.numbers.allocation_size();
        self.text
            .capacity()
            .saturating_add(ends)
            .saturating_add(table)
    }
}

#[inline]
fn text_of<'a>(text: &'a str, ends: &[u32], number: u32) -> &'a str {
    let place = |end: &u32| usize::try_from(*end).unwrap_or(usize::MAX);
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    let start = number.checked_sub(1).and_then(|before| ends.get(before));
    let end = ends.get(number).map_or(0, place);
    text.get(start.map_or(0, place)..end).unwrap_or_default()
}
