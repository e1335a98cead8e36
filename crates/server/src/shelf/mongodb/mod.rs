//! A document of `MongoDB` with all texts in it.
//!
//! Nobody tells of changes on every deployment, so the document's version is asked for every so often,
//! and the rest of it only where that has changed.
//!
//! | module | what it is |
//! |---|---|
//! | this one | reading it |
//! | `write` | changes to it |
//! | `texts` | how texts lie in it |
//! | `json` | JSON as BSON, and back again |

mod json;
mod texts;
mod write;

#[cfg(test)]
mod tests;

use super::{
    DocumentChange, DocumentSnapshot, DocumentStore, Revision, SourceError, StoreEmptied,
    WriteError,
};
use crate::sources::mongodb::{connect, shown};
use futures_util::future::BoxFuture;
use mongodb::bson::{Document as Fields, doc};
use mongodb::options::{
    Acknowledgment, CollectionOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection};
use std::time::Duration;
use texts::{ID, StoredDocument, VERSION};
use tidegate_policy::source::MongoDocuments;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

/// A document of `MongoDB`.
#[derive(Debug)]
pub(super) struct MongoShelf {
    place: MongoDocuments,
    client: OnceCell<Client>,
    time_max: Duration,
}

impl MongoShelf {
    pub(super) fn new(place: &MongoDocuments, time_max: Duration) -> Self {
        Self {
            place: place.clone(),
            client: OnceCell::new(),
            time_max,
        }
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<Option<DocumentSnapshot>, SourceError> {
        // Where nobody counts, a version says nothing.
        if let Some(seen) = seen.filter(|seen| seen.is_counted()) {
            let fields = self.find(&[VERSION]).await?;
            let now =
                texts::version(&fields.unwrap_or_default()).map_err(|why| self.wrong(&why))?;
            if now.to_string() == seen.0 {
                return Ok(None);
            }
        }
        self.stored()
            .await?
            .unwrap_or_default()
            .shelved(seen)
            .map_err(|StoreEmptied| self.wrong("it is gone, and its version with it"))
    }

    /// All of the document, if it is there.
    async fn stored(&self) -> Result<Option<StoredDocument>, SourceError> {
        let fields = self.find(&[]).await?;
        let stored = fields.map(StoredDocument::new).transpose();
        stored.map_err(|why| self.wrong(&why))
    }

    /// The document, or these fields of it.
    async fn find(&self, fields: &[&str]) -> Result<Option<Fields>, SourceError> {
        let asked = async {
            let collection = self.collection().await?;
            let mut find = collection.find_one(doc! { "_id": ID });
            if !fields.is_empty() {
                let wanted = fields.iter().map(|name| ((*name).to_owned(), 1.into()));
                find = find.projection(wanted.collect::<Fields>());
            }
            find.await.map_err(shown)
        };
        let found = timeout(self.time_max, asked).await;
        let found = found.unwrap_or_else(|_| Err(self.too_slow()));
        found.map_err(|why| {
            let name = &self.place.collection;
            SourceError(format!("collection `{name}`: {why}"))
        })
    }

    /// The collection, read and written such that what was seen or answered stays, unless the URL says
    /// otherwise.
    async fn collection(&self) -> Result<Collection<Fields>, String> {
        let client = self
            .client
            .get_or_try_init(|| connect(&self.place.url, self.time_max))
            .await?;
        let database = client.database(&self.place.database);
        let read = database.read_concern().cloned();
        // Whoever is not answered does not know what became of a change.
        let is_answered = |it: &WriteConcern| it.w != Some(Acknowledgment::Nodes(0));
        let write = database.write_concern().cloned().filter(is_answered);
        let options = CollectionOptions::builder()
            .read_concern(read.unwrap_or_else(ReadConcern::majority))
            .write_concern(write.unwrap_or_else(WriteConcern::majority))
            // Others may lag behind: what was just changed would change back and forth.
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .build();
        Ok(database.collection_with_options(&self.place.collection, options))
    }

    fn too_slow(&self) -> String {
        format!("there was no answer within {:?}", self.time_max)
    }

    /// That something is wrong with the document.
    fn wrong(&self, why: &str) -> SourceError {
        let name = &self.place.collection;
        SourceError(format!("document `{ID}` of collection `{name}`: {why}"))
    }
}

impl DocumentStore for MongoShelf {
    fn read<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Option<DocumentSnapshot>, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self, most: Duration) -> BoxFuture<'_, ()> {
        // A little early, so that what changes now is read, and served, when `most` has gone by.
        Box::pin(sleep(most.mul_f64(0.9)))
    }

    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        changes: &'a [DocumentChange],
    ) -> BoxFuture<'a, Result<Revision, WriteError>> {
        Box::pin(self.change(expected, changes))
    }
}
