//! What each subject has, found by its id in one look; and its group, in one more for those who want it.

use crate::lookup::{DigestSlot, DigestedText, Marks, TextDigest};

/// In no group.
const NONE: u32 = u32::MAX;

/// Different subjects. Their ids are not kept: each is known by its mark.
#[derive(Default)]
pub(super) struct Subjects {
    /// What each has, in one number; see [`Has`](super::given::Has).
    marks: Marks,
    /// The numbers of their groups, by their places; nothing where nobody has one.
    groups: Vec<u32>,
}

impl Subjects {
    /// With room for so many.
    pub(super) fn with_room(subjects: usize) -> Self {
        Self {
            marks: Marks::with_room(subjects),
            groups: Vec::new(),
        }
    }

    /// Adds a subject; `false` where it is there already, or there is no room for it.
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

    /// What a subject has, and where it is. The mark of its id may be made already.
    #[inline]
    pub(super) fn get(&self, id: &str, made: Option<DigestedText<'_>>) -> Option<DigestSlot> {
        self.marks.find(DigestedText::mark_of(id, made)?)
    }

    /// Begins to fetch what would be asked for by this mark.
    #[inline]
    pub(super) fn fetch(&self, marked: DigestedText<'_>) {
        self.marks.fetch(marked.mark());
    }

    /// The number of the group of the subject at a place.
    #[inline]
    pub(super) fn group(&self, at: usize) -> Option<u32> {
        self.groups.get(at).copied().filter(|group| *group != NONE)
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let groups = self.groups.capacity().saturating_mul(size_of::<u32>());
        self.marks.bytes().saturating_add(groups)
    }
}
