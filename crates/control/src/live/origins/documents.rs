//! Documents in a document store: `policy/NAME`, `guard/NAME` and `route/NAME`, each in JSON.

use crate::docstore::{self, DocumentChange, DocumentStore};
use crate::live::documents::Documents;
use crate::live::edit::Edit;
use crate::live::source::{LoadResult, PolicyFetcher, Revision, SourceError, WriteError, Writer};
use futures_util::future::BoxFuture;
use std::time::Duration;
use tidegate_policy::documents as settings;

/// A document store with configuration documents.
#[derive(Debug)]
pub(super) struct ShelvedSource {
    shelf: Box<dyn DocumentStore>,
    is_writable: bool,
    every: Duration,
}

impl ShelvedSource {
    pub(super) fn new(
        settings: &settings::DocumentStoreSettings,
        time_max: Duration,
        every: Duration,
    ) -> Result<Self, String> {
        Ok(Self {
            shelf: docstore::open(settings, time_max)?,
            is_writable: settings.writable,
            every,
        })
    }
}

impl PolicyFetcher for ShelvedSource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(async move {
            let shelved = self.shelf.read(seen).await?;
            Ok(shelved.map_or(LoadResult::Unchanged, Documents::load))
        })
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.shelf.changed(self.every)
    }

    fn notified(&self) -> BoxFuture<'_, ()> {
        self.shelf.notified()
    }

    fn writer(&self) -> Option<&dyn Writer> {
        self.is_writable.then_some(self)
    }
}

impl Writer for ShelvedSource {
    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        edits: &'a [Edit],
    ) -> BoxFuture<'a, Result<Revision, WriteError>> {
        Box::pin(async move {
            let changes: Vec<DocumentChange> = edits.iter().map(Documents::change).collect();
            self.shelf.write(expected, &changes).await
        })
    }
}
