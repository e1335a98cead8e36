//! What a source of policy is.

use super::documents::Documents;
use super::edit::Edit;
use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::future::pending;
use tidegate_policy::import::Imported;

pub(crate) use crate::shelf::{Revision, SourceError, WriteError};

/// Where policy comes from.
///
/// It only fetches: whoever asks keeps the last good, validates, and swaps.
pub(crate) trait PolicyFetcher: Debug + Send + Sync {
    /// What it says now; nothing new where it is at `seen` still.
    fn load<'a>(&'a self, seen: Option<&'a Revision>)
    -> BoxFuture<'a, Result<Loaded, SourceError>>;

    /// Comes to an end when it is worth to load again: an interval went by, or somebody said so. What
    /// goes wrong with being told is its own affair: it is asked every interval anyway.
    fn changed(&self) -> BoxFuture<'_, ()>;

    /// Completes when a message says that it has changed; never where there are no messages. A source
    /// that could not be asked, and waits to be asked again, is asked at once then.
    fn told(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// What to serve while it has never been reached.
    fn fallback(&self) -> Option<Result<LoadedPart, SourceError>> {
        None
    }

    /// Whether there is something to serve while it has never been reached, sound or not.
    fn has_fallback(&self) -> bool {
        false
    }

    /// Writes to it, where that is possible.
    fn writer(&self) -> Option<&dyn Writer> {
        None
    }
}

/// Writes to a source.
pub(crate) trait Writer: Send + Sync {
    /// Makes all of these changes, or none, unless it has left the version `expected`; and tells which
    /// version that makes.
    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        edits: &'a [Edit],
    ) -> BoxFuture<'a, Result<Revision, WriteError>>;
}

/// What a source said.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// What it said before.
    Unchanged,
    /// Something else.
    Part(LoadedPart),
    /// Something that is not understood, whatever the rest of the configuration says.
    Wrong(SourceDefect),
}

/// Something to know about what a source says, which is served all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceNote {
    pub(crate) text: String,
    /// Whether somebody should put something right.
    pub(crate) is_warning: bool,
}

impl SourceNote {
    /// Something that only tells how things are.
    pub(crate) fn remark(text: String) -> Self {
        Self {
            text,
            is_warning: false,
        }
    }

    /// Something that somebody should put right.
    pub(crate) fn warning(text: String) -> Self {
        Self {
            text,
            is_warning: true,
        }
    }

    /// Those of a translation.
    pub(crate) fn of(imported: &Imported) -> Vec<Self> {
        let notes = imported.notes().iter().map(|note| Self {
            text: note.to_string(),
            is_warning: note.is_warning(),
        });
        notes.collect()
    }
}

/// Something that a source said, and is not understood.
#[derive(Clone, Debug)]
pub(crate) struct SourceDefect {
    pub(crate) version: Revision,
    /// Everything that is wrong with it.
    pub(crate) why: String,
    /// What it was made of, where it can be written to: so it can be put right from here.
    pub(crate) documents: Option<Documents>,
}

impl SourceDefect {
    /// Something of a source that is not written to.
    pub(crate) fn new(version: Revision, why: String) -> Self {
        Self {
            version,
            why,
            documents: None,
        }
    }
}

/// What one source says: text in our language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedPart {
    pub(crate) text: String,
    pub(crate) version: Revision,
    /// Whether it was translated from another language: of that, more than policies may be there.
    pub(crate) is_translated: bool,
    /// Whether a policy of it that clashes with others is left out, and the rest served.
    pub(crate) is_separable: bool,
    /// What there is to know about the translation.
    pub(crate) notes: Vec<SourceNote>,
    /// What of it was not understood, so that what it said of that before stands in the text.
    pub(crate) flaw: Option<String>,
    /// What the text was made of, where it can be written to.
    pub(crate) documents: Option<Documents>,
}

impl LoadedPart {
    /// What changes are made to where a source has what is none: nothing of it is served.
    pub(super) fn unread(version: Revision, documents: Documents) -> Self {
        Self {
            text: String::new(),
            version,
            is_translated: false,
            is_separable: false,
            notes: Vec::new(),
            flaw: None,
            documents: Some(documents),
        }
    }
}
