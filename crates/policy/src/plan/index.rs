//! Texts in one piece of memory, found by their hash: small for a hundred thousand of them, and gone in
//! three steps when it is dropped.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Different texts, numbered in the order in which they came.
#[derive(Default)]
pub(super) struct Index {
    text: String,
    /// Where each ends; it begins where the one before it ends.
    ends: Vec<u32>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Index {
    /// Adds a text: its number, and whether it is new. `None` where there is no room for it.
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

    /// The number of a text.
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

    /// The text of this number.
    pub(super) fn text(&self, number: u32) -> &str {
        text_of(&self.text, &self.ends, number)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Lets go of room that was kept for more.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// About how many bytes it takes.
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
