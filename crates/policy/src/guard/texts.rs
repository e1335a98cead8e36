//! A list of texts: all of them in one piece of memory, so that a million are dropped as quickly as one.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// The longest member. Nobody's identity is longer, and what nobody can have need not be kept.
pub(crate) const MEMBER_BYTES_MAX: usize = 1_024;

/// The most bytes of all members together: where each begins is told in 32 bits.
const BYTES_MAX: usize = 0xFFFF_FFFF;

/// Where a member begins, and how long it is.
#[derive(Clone, Copy)]
struct Place {
    from: u32,
    len: u16,
}

/// Texts, each once.
#[derive(Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    places: HashTable<Place>,
    hasher: RandomState,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        let (bytes, hasher) = (&self.bytes, &self.hasher);
        self.places
            .reserve(more, |place| hasher.hash_one(at(bytes, *place)));
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let hash = self.hasher.hash_one(text);
        let found = self
            .places
            .find(hash, |place| at(&self.bytes, *place) == text);
        found.is_some()
    }

    /// Adds a member, if it is not there yet; `false` where it cannot be one.
    pub(super) fn insert(&mut self, text: &str) -> bool {
        let text = text.as_bytes();
        let Some(place) = self.place(text) else {
            return false;
        };
        let (bytes, hasher) = (&self.bytes, &self.hasher);
        let entry = self.places.entry(
            hasher.hash_one(text),
            |place| at(bytes, *place) == text,
            |place| hasher.hash_one(at(bytes, *place)),
        );
        if let hashbrown::hash_table::Entry::Vacant(free) = entry {
            free.insert(place);
            self.bytes.extend_from_slice(text);
        }
        true
    }

    /// Where a member would come to lie, if there is room for it.
    fn place(&self, text: &[u8]) -> Option<Place> {
        let is_fit = !text.is_empty() && text.len() <= MEMBER_BYTES_MAX;
        let ends = self.bytes.len().checked_add(text.len())?;
        if !is_fit || ends > BYTES_MAX {
            return None;
        }
        Some(Place {
            from: u32::try_from(self.bytes.len()).ok()?,
            len: u16::try_from(text.len()).ok()?,
        })
    }
}

fn at(bytes: &[u8], place: Place) -> &[u8] {
    let from = usize::try_from(place.from).unwrap_or(usize::MAX);
    let to = from.saturating_add(usize::from(place.len));
    bytes.get(from..to).unwrap_or_default()
}
