//! What is served, for those who look.

use std::time::Duration;
use tidegate_policy::source::{ConfigDocument, DocumentKind};

/// What is served now, and of which parts it was composed. It never changes once made.
#[derive(Debug)]
pub(crate) struct ServedConfig {
    /// Differs whenever any part does; the same on every instance that serves the same.
    pub(crate) version: String,
    /// In the order of composition; the file is the first.
    pub(crate) parts: Vec<PartView>,
    /// Policies, guards and routes, each kind in the order in which it counts.
    pub(crate) documents: Vec<ConfigDocument>,
}

/// One part of what is served.
#[derive(Clone, Debug)]
pub(crate) struct PartView {
    /// As messages and metrics call it.
    pub(crate) name: String,
    /// `file`, `keeper`, `http`, `redis`, `etcd`, …
    pub(crate) kind: &'static str,
    /// Whether it can be changed through this server.
    pub(crate) is_writable: bool,
}

/// How it stands with a source.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each of them is told by itself"
)]
#[derive(Clone, Debug)]
pub(crate) struct SourceView {
    /// As messages and metrics call it.
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) is_writable: bool,
    /// Which version of it is served.
    pub(crate) version: Option<String>,
    /// Since it last answered, whether or not with something new; none where it never did.
    pub(crate) age: Option<Duration>,
    /// Since what is served of it was taken.
    pub(crate) applied: Option<Duration>,
    /// Whether it failed when it was last asked, so that what is served of it may be out of date.
    pub(crate) is_stale: bool,
    /// Whether what it says now was refused, and what it said before is served on.
    pub(crate) is_refused: bool,
    /// What is served of it did not come from there, but was written beside its address.
    pub(crate) is_fallback: bool,
    /// What was last wrong with it, if anything is.
    pub(crate) trouble: Option<String>,
}

impl ServedConfig {
    /// The document of that kind and name.
    pub(crate) fn document(&self, kind: DocumentKind, name: &str) -> Option<&ConfigDocument> {
        let is_it = |it: &&ConfigDocument| it.kind == kind && it.name == name;
        self.documents.iter().find(is_it)
    }

    /// The part that a document stands in.
    pub(crate) fn part_of(&self, document: &ConfigDocument) -> Option<&PartView> {
        self.parts.get(document.part)
    }
}
