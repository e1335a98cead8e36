//! A read-only view of the served configuration.

use std::time::Duration;
use tidegate_policy::source::{ConfigDocument, DocumentKind};

/// The served configuration, and the parts that it was composed of. It is immutable.
#[derive(Debug)]
pub(crate) struct ServedConfig {
    /// Differs whenever any part does; the same on every instance that serves the same.
    pub(crate) version: String,
    /// In the order of composition; the file is the first.
    pub(crate) parts: Vec<PartView>,
    /// Policies, guards and routes, each kind in evaluation order.
    pub(crate) documents: Vec<ConfigDocument>,
}

/// One part of the served configuration.
#[derive(Clone, Debug)]
pub(crate) struct PartView {
    /// The name in messages and metrics.
    pub(crate) name: String,
    /// `file`, `keeper`, `http`, `redis`, `etcd`, …
    pub(crate) kind: &'static str,
    /// The part can be changed through this server.
    pub(crate) is_writable: bool,
}

/// The status of a source.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each of them is told by itself"
)]
#[derive(Clone, Debug)]
pub(crate) struct SourceView {
    /// The name in messages and metrics.
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) is_writable: bool,
    /// The version that is served.
    pub(crate) version: Option<String>,
    /// The time since it last answered, with a new version or not; `None` if it never did.
    pub(crate) age: Option<Duration>,
    /// The time since the served part was applied.
    pub(crate) applied: Option<Duration>,
    /// The last load failed, so the served part may be out of date.
    pub(crate) is_stale: bool,
    /// The latest version was rejected, and the previous one is served.
    pub(crate) is_refused: bool,
    /// The fallback is served, because the source has never been reached.
    pub(crate) is_fallback: bool,
    /// The current problem, if there is one.
    pub(crate) trouble: Option<String>,
}

impl ServedConfig {
    /// Returns the document of that kind and name.
    pub(crate) fn document(&self, kind: DocumentKind, name: &str) -> Option<&ConfigDocument> {
        let is_it = |it: &&ConfigDocument| it.kind == kind && it.name == name;
        self.documents.iter().find(is_it)
    }

    /// Returns the part that a document is in.
    pub(crate) fn part_of(&self, document: &ConfigDocument) -> Option<&PartView> {
        self.parts.get(document.part)
    }
}
