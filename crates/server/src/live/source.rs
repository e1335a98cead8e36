//! What a source of policy is.

use super::documents::Documents;
use super::edit::Edit;
use futures_util::future::BoxFuture;
use std::fmt::{self, Debug};

/// Where policy comes from.
///
/// It only fetches: whoever asks keeps the last good, validates, and swaps.
pub(crate) trait Source: Debug + Send + Sync {
    /// What it says now; nothing new where it is at `seen` still.
    fn load<'a>(&'a self, seen: Option<&'a Version>) -> BoxFuture<'a, Result<Loaded, Trouble>>;

    /// Comes to an end when it is worth to load again: an interval went by, or somebody said so. What
    /// goes wrong with being told is its own affair: it is asked every interval anyway.
    fn changed(&self) -> BoxFuture<'_, ()>;

    /// What to serve while it has never been reached.
    fn fallback(&self) -> Option<Result<Part, Trouble>> {
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
        expected: &'a Version,
        edits: &'a [Edit],
    ) -> BoxFuture<'a, Result<Version, WriteError>>;
}

/// Which state of a source something is of; only ever compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(pub(crate) String);

/// What a source said.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// What it said before.
    Unchanged,
    /// Something else.
    Part(Part),
    /// Something that is not understood, whatever the rest of the configuration says.
    Wrong {
        version: Version,
        /// Everything that is wrong with it.
        why: String,
    },
}

/// What one source says: text in our language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) version: Version,
    /// Whether it was translated from another language: of that, more than policies may be there.
    pub(crate) is_translated: bool,
    /// What there is to know about the translation.
    pub(crate) notes: Vec<String>,
    /// What of it was not understood, so that what it said of that before stands in the text.
    pub(crate) flaw: Option<String>,
    /// What the text was made of, where it can be written to.
    pub(crate) documents: Option<Documents>,
}

/// Why a source could not be loaded, in words for people. Never a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble(pub(crate) String);

/// Why nothing was written, as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// Somebody else changed it meanwhile.
    Conflict,
    /// It cannot be reached, or does not take it: nothing was written.
    Away(String),
    /// Nobody knows whether it was written.
    Doubtful(String),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}
