//! A list of texts. None of them is kept: each is known by its mark.

use crate::lookup::{DigestFilter, DigestedText, Marks, TEXT_BYTES_MAX, TextDigest};

/// The longest member. Nobody's identity is longer, and what nobody can have need not be kept.
pub(crate) const MEMBER_BYTES_MAX: usize = TEXT_BYTES_MAX;

/// How many are made room for at first.
const FIRST: usize = 16;

/// Room is let go where it is for more than one such part of those that are there.
const SPARE: usize = 16;

/// What goes with a member: it is there, and nothing else.
const LISTED: u32 = 0;

/// Texts, each once.
#[derive(Default)]
pub(super) struct TextSet {
    marks: Marks,
    /// Those of whom the marks need not be asked. Made last: before, nobody is found.
    filter: DigestFilter,
}

impl TextSet {
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        if self.marks.room() < more {
            self.marks.resize(self.len().saturating_add(more));
        }
    }

    /// Whether a text is there, whose mark may be made already.
    #[inline]
    pub(super) fn contains(&self, text: &str, made: Option<DigestedText<'_>>) -> bool {
        let mark = DigestedText::mark_of(text, made);
        mark.is_some_and(|mark| self.filter.may_have(mark) && self.marks.find(mark).is_some())
    }

    /// Adds a member, if it is not there yet; `false` where it cannot be one.
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

    /// Lets members be found, and lets go of room for more.
    pub(super) fn finish(&mut self) {
        // Where it was made as large as it has to be, no mark is moved for the sake of a little.
        if self.marks.room() > self.len() / SPARE {
            self.marks.resize(self.len());
        }
        let marks = self.marks.iter().map(|(mark, _)| mark);
        self.filter = DigestFilter::of(marks, self.marks.len());
    }
}
