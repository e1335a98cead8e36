//! The share of each subject, found by its id with one memory access; its group takes one more.

use crate::digest::{DigestSlot, DigestedText, Marks, TextDigest};

/// The number that marks a subject without a group.
const NONE: u32 = u32::MAX;

/// Distinct subjects. Their ids are not stored, only their digests.
#[derive(Default)]
pub(super) struct Subjects {
    /// The share of each, as one number; see [`PackedShare`](super::subject_share::Has).
    marks: Marks,
    /// The numbers of their groups, by position; empty if no subject has a group.
    groups: Vec<u32>,
}

impl Subjects {
    /// Creates a table with room for this many subjects.
    pub(super) fn with_room(subjects: usize) -> Self {
        Self {
            marks: Marks::with_room(subjects),
            groups: Vec::new(),
        }
    }

    /// Adds a subject. Returns false if it is present already, or if there is no room.
    pub(super) fn add(&mut self, id: &str, has: u32, group: Option<u32>) -> bool {
        let Some(at) = TextDigest::of(id).and_then(|mark| self.marks.add(mark, has)) else {
            return false;
        };
        let Some(group) = group else {
            return true;
        };
        if self.groups.is_empty() {
            self.groups.resize(self.marks.places(), NONE);
        }
        match self.groups.get_mut(at) {
            Some(place) => *place = group,
            None => return false,
        }
        true
    }

    /// Returns the share and the position of a subject. `made` may hold the digest of its id already.
    #[inline]
    pub(super) fn get(&self, id: &str, made: Option<DigestedText<'_>>) -> Option<DigestSlot> {
        self.marks.find(DigestedText::mark_of(id, made)?)
    }

    /// Starts to fetch the entry of this digest.
    #[inline]
    pub(super) fn fetch(&self, marked: DigestedText<'_>) {
        self.marks.fetch(marked.mark());
    }

    /// Returns the number of the group of the subject at a position.
    #[inline]
    pub(super) fn group(&self, at: usize) -> Option<u32> {
        self.groups.get(at).copied().filter(|group| *group != NONE)
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Returns its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let groups = self.groups.capacity().saturating_mul(size_of::<u32>());
        self.marks.bytes().saturating_add(groups)
    }
}
