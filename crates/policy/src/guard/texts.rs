//! A set of texts. It stores only the digest of each text.

use crate::digest::{DigestFilter, DigestedText, Marks, TEXT_BYTES_MAX, TextDigest};

/// The maximum length of a member. No identity is longer, so a longer member could never match.
pub const MEMBER_BYTES_MAX: usize = TEXT_BYTES_MAX;

/// The initial capacity.
const FIRST: usize = 16;

/// Spare capacity is released if it exceeds this fraction (one sixteenth) of the members.
const SPARE: usize = 16;

/// The number stored with each member; it has no meaning here.
const LISTED: u32 = 0;

/// A set of texts.
#[derive(Default)]
pub(super) struct TextSet {
    marks: Marks,
    /// The filter in front of the digests. `finish` builds it; before that, no text is found.
    filter: DigestFilter,
}

impl TextSet {
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Reserves room for `more` texts.
    pub(super) fn reserve(&mut self, more: usize) {
        if self.marks.room() < more {
            self.marks.resize(self.len().saturating_add(more));
        }
    }

    /// Returns true if the set has this text. `made` may hold its digest already.
    #[inline]
    pub(super) fn contains(&self, text: &str, made: Option<DigestedText<'_>>) -> bool {
        let mark = DigestedText::mark_of(text, made);
        mark.is_some_and(|mark| self.filter.may_have(mark) && self.marks.find(mark).is_some())
    }

    /// Adds a text if it is new. Returns false if it cannot be a member.
    pub(super) fn insert(&mut self, text: &str) -> bool {
        let Some(mark) = TextDigest::of(text).filter(|_| !text.is_empty()) else {
            return false;
        };
        if self.marks.room() == 0 {
            let twice = self.len().saturating_mul(2);
            self.marks.resize(twice.max(FIRST));
        }
        self.marks.add(mark, LISTED);
        true
    }

    /// Makes the members searchable and releases spare capacity.
    pub(super) fn finish(&mut self) {
        // If the capacity was reserved exactly, do not move all digests to save a little memory.
        if self.marks.room() > self.len() / SPARE {
            self.marks.resize(self.len());
        }
        let marks = self.marks.iter().map(|(mark, _)| mark);
        self.filter = DigestFilter::of(marks, self.marks.len());
    }
}
