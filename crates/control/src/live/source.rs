//! The interface of a configuration source.

use super::documents::Documents;
use super::edit::Edit;
use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::future::pending;
use tidegate_import::ImportedConfig;

pub(crate) use crate::docstore::{Revision, SourceError, WriteError};

/// A source of configuration.
///
/// A source only loads. The caller keeps the last good version, validates, and replaces.
pub(crate) trait PolicyFetcher: Debug + Send + Sync {
    /// Loads the current version. Returns [`LoadResult::Unchanged`] if it is still `seen`.
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>>;

    /// Completes when the source should be loaded again: after an interval, or on a notification.
    /// Failures of notifications are handled internally: the source is loaded at every interval anyway.
    fn changed(&self) -> BoxFuture<'_, ()>;

    /// Completes when a notification reports a change; never, if there are no notifications. A source
    /// that failed and waits for its next retry is then loaded immediately.
    fn notified(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// Receives the verdict on a loaded version: it is served, or the reason why it is rejected. May be called
    /// again with the same verdict, and with another one: a rejected version is served later if only a conflict
    /// kept it out.
    fn decided(&self, _version: &Revision, _verdict: Result<(), &str>) {}

    /// Returns the part to serve while the source has never been reached.
    fn fallback(&self) -> Option<Result<LoadedPart, SourceError>> {
        None
    }

    /// Returns true if there is a fallback, valid or not.
    fn has_fallback(&self) -> bool {
        false
    }

    /// Returns the writer, if the source is writable.
    fn writer(&self) -> Option<&dyn Writer> {
        None
    }
}

/// Writes to a source.
pub(crate) trait Writer: Send + Sync {
    /// Makes all of these changes, or none if the version is no longer `expected`. Returns the new
    /// version.
    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        edits: &'a [Edit],
    ) -> BoxFuture<'a, Result<Revision, WriteError>>;
}

/// The result of loading a source.
#[derive(Debug)]
pub(crate) enum LoadResult {
    /// The version is unchanged.
    Unchanged,
    /// A new version.
    Part(LoadedPart),
    /// A version that cannot be parsed, regardless of the rest of the configuration.
    Wrong(SourceDefect),
}

/// A note about the content of a source, which is served nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceNote {
    pub(crate) text: String,
    /// An operator should fix something.
    pub(crate) is_warning: bool,
}

impl SourceNote {
    /// Returns a note that is for information only.
    pub(crate) fn remark(text: String) -> Self {
        Self {
            text,
            is_warning: false,
        }
    }

    /// Returns a note about something that an operator should fix.
    pub(crate) fn warning(text: String) -> Self {
        Self {
            text,
            is_warning: true,
        }
    }

    /// Returns the notes of a translation.
    pub(crate) fn of(imported: &ImportedConfig) -> Vec<Self> {
        let notes = imported.notes().iter().map(|note| Self {
            text: note.to_string(),
            is_warning: note.is_warning(),
        });
        notes.collect()
    }
}

/// A version of a source that cannot be parsed.
#[derive(Clone, Debug)]
pub(crate) struct SourceDefect {
    pub(crate) version: Revision,
    /// All errors.
    pub(crate) why: String,
    /// The documents, if the source is writable, so that they can be fixed through this server.
    pub(crate) documents: Option<Documents>,
}

impl SourceDefect {
    /// Returns a defect of a read-only source.
    pub(crate) fn new(version: Revision, why: String) -> Self {
        Self {
            version,
            why,
            documents: None,
        }
    }
}

/// The content of one source: configuration text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedPart {
    pub(crate) text: String,
    pub(crate) version: Revision,
    /// The text was translated from another format, which may contain more than policies.
    pub(crate) is_translated: bool,
    /// A policy of it that conflicts with others is left out, and the rest is served.
    pub(crate) is_separable: bool,
    /// Notes about the translation.
    pub(crate) notes: Vec<SourceNote>,
    /// The errors of rule sets that could not be parsed. The text has their earlier versions.
    pub(crate) flaw: Option<String>,
    /// The documents that the text was made of, if the source is writable.
    pub(crate) documents: Option<Documents>,
}

impl LoadedPart {
    /// Returns an empty part that contains invalid documents, as the base of edits. None of them is
    /// served.
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
