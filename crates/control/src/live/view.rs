//! A read-only view of the served configuration.

use tidegate_config::compose::{ConfigDocument, DocumentKind};

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
