//! A hash of Redis with a text in each field.
//!
//! The field `version` counts the changes. A writer announces each change on a channel; in case a message
//! is lost, the version is read at an interval.

use super::{
    Channel, DocumentChange, DocumentSnapshot, DocumentStore, Revision, SourceError, WriteError,
};
use futures_util::future::BoxFuture;
use std::time::Duration;
use tidegate::redis::{CallError, Connection, KeyRules};
use tidegate_policy::store::StoreSettings;
use tidegate_redis_client::CallEffect;
use tidegate_redis_shared::{RedisDocuments, WriteOutcome};

/// A hash of Redis.
#[derive(Debug)]
pub(super) struct RedisDocumentStore {
    documents: RedisDocuments,
    key: String,
    /// The channel on which changes are announced.
    channel: Channel,
}

impl RedisDocumentStore {
    pub(super) fn new(
        store: &StoreSettings,
        key: &str,
        time_max: Duration,
    ) -> Result<Self, String> {
        let (settings, _) = tidegate::redis::settings(store, &[], &KeyRules::default())
            .map_err(|it| it.to_string())?;
        let settings = settings.connections(1).timeout(time_max);
        let connection = Connection::start(settings, Vec::new()).map_err(|it| it.to_string())?;
        Ok(Self {
            documents: RedisDocuments::new(connection, key),
            key: key.to_owned(),
            channel: Channel::new(format!("{key}:changed")),
        })
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<Option<DocumentSnapshot>, SourceError> {
        let settled = self.documents.connection().settled().await;
        settled.map_err(|error| SourceError(error.to_string()))?;
        if let Some(seen) = seen {
            let now = self.documents.version().await.map_err(unreachable)?;
            // Without a count, the version does not identify the content.
            if now == seen.0 && seen.is_counted() {
                return Ok(None);
            }
        }
        let (version, fields) = self.documents.read().await.map_err(unreachable)?;
        DocumentSnapshot::new(&version, fields, seen).map_err(|_| {
            let key = &self.key;
            SourceError(format!(
                "the hash `{key}` is missing, and so is its version"
            ))
        })
    }

    async fn change(
        &self,
        expected: &Revision,
        changes: &[DocumentChange],
    ) -> Result<Revision, WriteError> {
        let changes: Vec<(&str, Option<&str>)> = changes
            .iter()
            .map(|change| (change.key.as_str(), change.text.as_deref()))
            .collect();
        let channel = self.channel.name().as_bytes();
        let made = self.documents.change(expected.counted(), channel, &changes);
        match made.await {
            Ok(WriteOutcome::To(version)) => Ok(Revision(version)),
            Ok(WriteOutcome::Conflict(_)) => Err(WriteError::Conflict),
            Err(error) if error.class() == CallEffect::NotExecuted => {
                Err(WriteError::Away(error.to_string()))
            }
            Err(error) => Err(WriteError::Doubtful(error.to_string())),
        }
    }
}

impl DocumentStore for RedisDocumentStore {
    fn read<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Option<DocumentSnapshot>, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(
            self.channel
                .wait_for_change(self.documents.connection(), most),
        )
    }

    fn notified(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.channel.message(self.documents.connection()))
    }

    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        changes: &'a [DocumentChange],
    ) -> BoxFuture<'a, Result<Revision, WriteError>> {
        Box::pin(self.change(expected, changes))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn unreachable(error: CallError) -> SourceError {
    SourceError(error.to_string())
}
