//! A hash of Redis with a document in each field.
//!
//! `policy/NAME`, `guard/NAME` and `route/ID` hold a document each, in JSON, and `version` counts the
//! changes. Whoever changes anything says so on a channel; in case that is lost, the version is looked
//! at every so often.

use super::channel::Channel;
use crate::live::documents::Documents;
use crate::live::edit::Edit;
use crate::live::source::{Loaded, Source, Trouble, Version, WriteError, Writer};
use futures_util::future::BoxFuture;
use std::time::Duration;
use tidegate::redis::{CallError, Connection};
use tidegate_policy::config::StoreSettings;
use tidegate_redis::{Changed, Class};

/// A hash of Redis.
#[derive(Debug)]
pub(super) struct RedisSource {
    connection: Connection,
    key: String,
    /// Where changes are told.
    channel: Channel,
    is_writable: bool,
    every: Duration,
}

impl RedisSource {
    pub(super) fn new(
        store: &StoreSettings,
        (key, is_writable): (&str, bool),
        time_max: Duration,
        every: Duration,
    ) -> Result<Self, String> {
        let (settings, _) = tidegate::redis::settings(store, &[]).map_err(|it| it.to_string())?;
        let settings = settings.connections(1).timeout(time_max);
        let connection = Connection::start(settings, Vec::new()).map_err(|it| it.to_string())?;
        Ok(Self {
            connection,
            key: key.to_owned(),
            channel: Channel::new(format!("{key}:changed")),
            is_writable,
            every,
        })
    }

    async fn ask(&self, seen: Option<&Version>) -> Result<Loaded, Trouble> {
        let settled = self.connection.settled().await;
        settled.map_err(|error| Trouble(error.to_string()))?;
        let key = self.key.as_bytes();
        if let Some(seen) = seen {
            let now = self.connection.documents_version(key).await.map_err(away)?;
            // Where nobody counts, that says nothing.
            if now == seen.0 && Documents::is_counted(seen) {
                return Ok(Loaded::Unchanged);
            }
        }
        let (version, fields) = self.connection.documents(key).await.map_err(away)?;
        if Documents::are_gone(&version, fields.len(), seen) {
            let key = &self.key;
            return Err(Trouble(format!(
                "the hash `{key}` is gone, and its version with it"
            )));
        }
        Ok(Documents::load(&version, fields, seen))
    }

    async fn change(&self, expected: &Version, edits: &[Edit]) -> Result<Version, WriteError> {
        let changes: Vec<(String, Option<&str>)> = edits
            .iter()
            .map(|edit| (Documents::key(edit), edit.document.as_deref()))
            .collect();
        let expected = Documents::counted(expected);
        let (key, channel) = (self.key.as_bytes(), self.channel.name().as_bytes());
        let made = self
            .connection
            .change_documents(key, expected, channel, &changes);
        match made.await {
            Ok(Changed::To(version)) => Ok(Version(version)),
            Ok(Changed::Conflict(_)) => Err(WriteError::Conflict),
            Err(error) if error.class() == Class::NotExecuted => {
                Err(WriteError::Away(error.to_string()))
            }
            Err(error) => Err(WriteError::Doubtful(error.to_string())),
        }
    }
}

impl Source for RedisSource {
    fn load<'a>(&'a self, seen: Option<&'a Version>) -> BoxFuture<'a, Result<Loaded, Trouble>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.channel.hear(&self.connection, self.every))
    }

    fn writer(&self) -> Option<&dyn Writer> {
        self.is_writable.then_some(self)
    }
}

impl Writer for RedisSource {
    fn write<'a>(
        &'a self,
        expected: &'a Version,
        edits: &'a [Edit],
    ) -> BoxFuture<'a, Result<Version, WriteError>> {
        Box::pin(self.change(expected, edits))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn away(error: CallError) -> Trouble {
    Trouble(error.to_string())
}
