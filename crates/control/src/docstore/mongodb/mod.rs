//! A document of `MongoDB` with all texts in it.
//!
//! Not every deployment supports notifications of changes. So the document's version is read at an
//! interval, and the rest of it only if that has changed.
//!
//! | module | what it is |
//! |---|---|
//! | this one | reading |
//! | `write` | changes |
//! | `texts` | the layout of the texts in the document |
//! | `json` | conversion of JSON to BSON, and back |

mod json;
mod texts;
mod write;

#[cfg(test)]
mod tests;

use super::{
    DocumentChange, DocumentSnapshot, DocumentStore, Revision, SourceError, StoreEmptied,
    WriteError,
};
use crate::mongo::{connect, shown};
use futures_util::future::BoxFuture;
use mongodb::bson::{Document as Fields, doc};
use mongodb::options::{
    Acknowledgment, CollectionOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection};
use std::time::Duration;
use texts::{ID, StoredDocument, VERSION};
use tidegate_policy::documents::MongoDocuments;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

/// A document of `MongoDB`.
#[derive(Debug)]
pub(super) struct MongoDocumentStore {
    place: MongoDocuments,
    client: OnceCell<Client>,
    time_max: Duration,
}

impl MongoDocumentStore {
    pub(super) fn new(place: &MongoDocuments, time_max: Duration) -> Self {
        Self {
            place: place.clone(),
            client: OnceCell::new(),
            time_max,
        }
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<Option<DocumentSnapshot>, SourceError> {
        // Without a count, the version does not identify the content.
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
            .map_err(|StoreEmptied| self.wrong("it is missing, and so is its version"))
    }

    /// Reads the whole document, if it exists.
    async fn stored(&self) -> Result<Option<StoredDocument>, SourceError> {
        let fields = self.find(&[]).await?;
        let stored = fields.map(StoredDocument::new).transpose();
        stored.map_err(|why| self.wrong(&why))
    }

    /// Reads the document, or these fields of it.
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

    /// Returns the collection. Unless the URL configures otherwise, reads and writes are such that data
    /// once read or acknowledged is durable.
    async fn collection(&self) -> Result<Collection<Fields>, String> {
        let client = self
            .client
            .get_or_try_init(|| connect(&self.place.url, self.time_max))
            .await?;
        let database = client.database(&self.place.database);
        let read = database.read_concern().cloned();
        // Without an acknowledgment, the result of a change would be unknown.
        let is_answered = |it: &WriteConcern| it.w != Some(Acknowledgment::Nodes(0));
        let write = database.write_concern().cloned().filter(is_answered);
        let options = CollectionOptions::builder()
            .read_concern(read.unwrap_or_else(ReadConcern::majority))
            .write_concern(write.unwrap_or_else(WriteConcern::majority))
            // Secondaries may lag behind: a recent change would appear and disappear.
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .build();
        Ok(database.collection_with_options(&self.place.collection, options))
    }

    fn too_slow(&self) -> String {
        format!("no response within {:?}", self.time_max)
    }

    /// Returns the error for an invalid document.
    fn wrong(&self, why: &str) -> SourceError {
        let name = &self.place.collection;
        SourceError(format!("document `{ID}` of collection `{name}`: {why}"))
    }
}

impl DocumentStore for MongoDocumentStore {
    fn read<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Option<DocumentSnapshot>, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self, most: Duration) -> BoxFuture<'_, ()> {
        // A little early, so that a change now is read, and served, by the time `most` has elapsed.
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
