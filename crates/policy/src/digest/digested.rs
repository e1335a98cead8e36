//! A text of a request with its digest, so that further lookups need not compute it again.

use super::mark::TextDigest;
use std::fmt;
use std::ptr;

/// A text of a request with its digest.
#[derive(Clone, Copy)]
pub struct DigestedText<'r> {
    text: &'r str,
    mark: TextDigest,
}

impl<'r> DigestedText<'r> {
    /// Computes the digest of a text. Returns `None` if the text is too long for one.
    #[inline]
    pub(crate) fn new(text: &'r str) -> Option<Self> {
        let mark = TextDigest::of(text)?;
        Some(Self { text, mark })
    }

    /// Returns the digest.
    #[inline]
    pub(crate) fn mark(self) -> TextDigest {
        self.mark
    }

    /// Returns the digest of `text`, from `made` if that refers to the same text in memory.
    #[inline]
    pub(crate) fn mark_of(text: &str, made: Option<Self>) -> Option<TextDigest> {
        match made {
            // Compare address and length only: comparing the bytes would take as long as computing the
            // digest.
            Some(made) if ptr::eq(made.text, text) => Some(made.mark),
            _ => TextDigest::of(text),
        }
    }
}

// Written by hand because the text may be a secret, and so is its digest.
impl fmt::Debug for DigestedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marked").finish_non_exhaustive()
    }
}
