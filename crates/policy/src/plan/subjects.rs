//! What each subject has, found by its id. What is known of it stands right before its id, so that
//! finding it is two looks into memory that is far away, however many there are.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// What an entry has. In eight bytes, for there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Has {
    /// The number of its rate, or a word of the table.
    pub(super) given: u32,
    /// The number of its group, or a word of the table.
    pub(super) group: u32,
}

/// Different subjects.
#[derive(Default)]
pub(super) struct Subjects {
    /// One after the other: what it has, in eight bytes, and its id.
    bytes: Vec<u8>,
    places: HashTable<Place>,
    hasher: RandomState,
}

/// Where a subject begins.
#[derive(Clone, Copy)]
struct Place {
    from: u32,
    /// Of its id alone.
    len: u16,
    /// More of its hash, so that hardly anybody is taken for another and looked at.
    tag: u16,
}

impl Subjects {
    /// Adds a subject; `false` where it is there already, or there is no room for it.
    pub(super) fn add(&mut self, id: &str, has: Has) -> bool {
        let hash = self.hasher.hash_one(id.as_bytes());
        if self.find(hash, id.as_bytes()).is_some() {
            return false;
        }
        let (from, len) = (u32::try_from(self.bytes.len()), u16::try_from(id.len()));
        let (Ok(from), Ok(len)) = (from, len) else {
            return false;
        };
        self.bytes.extend_from_slice(&has.given.to_le_bytes());
        self.bytes.extend_from_slice(&has.group.to_le_bytes());
        self.bytes.extend_from_slice(id.as_bytes());
        let (bytes, hasher) = (&self.bytes, &self.hasher);
        let rehash = |place: &Place| match at(bytes, *place) {
            Some((_, id)) => hasher.hash_one(id),
            None => 0,
        };
        let tag = tag(hash);
        self.places
            .insert_unique(hash, Place { from, len, tag }, rehash);
        true
    }

    /// What a subject has.
    #[inline]
    pub(super) fn get(&self, id: &str) -> Option<Has> {
        if self.places.is_empty() {
            return None;
        }
        let id = id.as_bytes();
        self.find(self.hasher.hash_one(id), id)
    }

    #[inline]
    fn find(&self, hash: u64, id: &[u8]) -> Option<Has> {
        let mut has = None;
        let tag = tag(hash);
        self.places.find(hash, |place| {
            if place.tag != tag || usize::from(place.len) != id.len() {
                return false;
            }
            let found = at(&self.bytes, *place).filter(|(_, known)| *known == id);
            has = found.map(|(has, _)| has);
            has.is_some()
        });
        has
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Lets go of room that was kept for more.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let table = self.places.allocation_size();
        self.bytes.capacity().saturating_add(table)
    }
}

/// What stands at a place: what the subject has, and its id.
#[inline]
fn at(bytes: &[u8], place: Place) -> Option<(Has, &[u8])> {
    let bytes = bytes.get(usize::try_from(place.from).ok()?..)?;
    let (given, bytes) = bytes.split_first_chunk()?;
    let (group, bytes) = bytes.split_first_chunk()?;
    let has = Has {
        given: u32::from_le_bytes(*given),
        group: u32::from_le_bytes(*group),
    };
    Some((has, bytes.get(..usize::from(place.len))?))
}

/// Bits of a hash that the table itself makes little use of.
#[inline]
fn tag(hash: u64) -> u16 {
    u16::try_from((hash >> 32) & 0xFFFF).unwrap_or(0)
}
