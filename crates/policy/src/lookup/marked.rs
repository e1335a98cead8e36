//! A text of a request with its mark, so that whoever else looks it up need not make it again.

use super::mark::TextDigest;
use std::fmt;
use std::ptr;

/// A text of a request with its mark.
#[derive(Clone, Copy)]
pub struct DigestedText<'r> {
    text: &'r str,
    mark: TextDigest,
}

impl<'r> DigestedText<'r> {
    /// The text with its mark, if it has one.
    #[inline]
    pub(crate) fn new(text: &'r str) -> Option<Self> {
        let mark = TextDigest::of(text)?;
        Some(Self { text, mark })
    }

    /// The mark.
    #[inline]
    pub(crate) fn mark(self) -> TextDigest {
        self.mark
    }

    /// The mark of `text`, which `made` has if it is of this very text.
    #[inline]
    pub(crate) fn mark_of(text: &str, made: Option<Self>) -> Option<TextDigest> {
        match made {
            // The same place in memory, and as long: comparing what stands there would take as long as
            // marking it.
            Some(made) if ptr::eq(made.text, text) => Some(made.mark),
            _ => TextDigest::of(text),
        }
    }
}

// By hand: it may be a secret, and so is its mark.
impl fmt::Debug for DigestedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marked").finish_non_exhaustive()
    }
}
