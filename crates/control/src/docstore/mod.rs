//! Document stores: texts by name, with one version for all of them, outside this process. They hold data
//! that all instances share and that can be changed while it is served: policies, guards and routes, and
//! the plans of consumers.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the interface of a document store, and the constructor for those that a configuration names |
//! | `redis` | a hash of Redis with a text in each field |
//! | `etcd` | keys of etcd with a text in each |
//! | `mongodb` | a document of `MongoDB` with all texts in it, with the feature `mongodb` |
//! | `channel` | a Redis channel on which changes are announced |

mod channel;
mod etcd;
#[cfg(feature = "mongodb")]
mod mongodb;
mod redis;

pub(crate) use channel::Channel;

use futures_util::future::BoxFuture;
use std::fmt::{self, Debug};
use std::future::pending;
use std::time::Duration;
use tidegate_config::compose::digest;
use tidegate_policy::documents as settings;
use tidegate_policy::documents::DocumentLocation;

/// The version of a store that does not exist.
const NOTHING: &str = "0";

/// The prefix of a version that is not counted.
const UNCOUNTED: &str = "0~";

/// A store of texts by name.
pub(crate) trait DocumentStore: Debug + Send + Sync {
    /// Reads everything, unless the version is still `seen`. A store that had texts, or at least a count,
    /// and has nothing at all now was lost: that is an error, and not an intended change.
    fn read<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Option<DocumentSnapshot>, SourceError>>;

    /// Completes when the store should be read again: after `most`, or on a notification. Failures of
    /// notifications are handled internally.
    fn changed(&self, most: Duration) -> BoxFuture<'_, ()>;

    /// Completes when a message announces a change; never, if there are no messages.
    fn notified(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// Makes all of these changes, or none if the version is no longer `expected`. Returns the new
    /// version.
    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        changes: &'a [DocumentChange],
    ) -> BoxFuture<'a, Result<Revision, WriteError>>;
}

/// The content of a document store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentSnapshot {
    pub(crate) version: Revision,
    /// In the order of their names.
    pub(crate) texts: Vec<(String, String)>,
}

/// One change: sets the text of that name, or removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentChange {
    pub(crate) key: String,
    pub(crate) text: Option<String>,
}

/// An opaque revision of a remote document set, which is only compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) String);

/// The reason why a remote document set could not be read, for people. It never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceError(pub(crate) String);

/// The reason why a write has no confirmed result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// A concurrent change was made.
    Conflict,
    /// The store is unreachable, or rejected the write: nothing was written.
    Away(String),
    /// The result of the write is unknown.
    Doubtful(String),
}

/// Opens the document store that `settings` name, or returns why they are invalid. Does not connect yet.
/// Each response may take up to `time_max`.
pub(crate) fn open(
    settings: &settings::DocumentStoreSettings,
    time_max: Duration,
) -> Result<Box<dyn DocumentStore>, String> {
    Ok(match &settings.place {
        DocumentLocation::Redis { redis, key } => {
            Box::new(redis::RedisDocumentStore::new(redis, key, time_max)?)
        }
        DocumentLocation::Etcd(etcd) => Box::new(etcd::EtcdDocumentStore::new(etcd, time_max)?),
        #[cfg(feature = "mongodb")]
        DocumentLocation::MongoDb(place) => {
            Box::new(mongodb::MongoDocumentStore::new(place, time_max))
        }
        #[cfg(not(feature = "mongodb"))]
        DocumentLocation::MongoDb(_) => return Err(crate::mongo::WITHOUT_MONGODB.to_owned()),
    })
}

// === impl DocumentSnapshot ===

impl DocumentSnapshot {
    /// Returns the content of a store that counts itself at `version`; `None` if that was `seen` already.
    /// Fails if the content was lost.
    fn new(
        version: &str,
        mut texts: Vec<(String, String)>,
        seen: Option<&Revision>,
    ) -> Result<Option<Self>, StoreEmptied> {
        let is_nothing = version == NOTHING && texts.is_empty();
        if is_nothing && seen.is_some_and(|seen| seen.0 != NOTHING) {
            return Err(StoreEmptied);
        }
        // Redis returns them in any order.
        texts.sort_unstable();
        let version = match version {
            NOTHING if !texts.is_empty() => Revision::of_texts(&texts),
            version => Revision(version.to_owned()),
        };
        if seen == Some(&version) {
            return Ok(None);
        }
        Ok(Some(Self { version, texts }))
    }
}

/// The store had texts, or at least a count, and has nothing at all now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoreEmptied;

// === impl Revision ===

impl Revision {
    /// Returns the revision of texts that were written without a count: a hash of their content.
    fn of_texts(texts: &[(String, String)]) -> Self {
        let mut raw = String::new();
        for (key, text) in texts {
            for text in [key, text] {
                raw.push_str(text);
                raw.push('\0');
            }
        }
        Self(format!("{UNCOUNTED}{}", digest(&raw)))
    }

    /// Returns true if it was counted, so that it differs from all earlier ones.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted() != NOTHING
    }

    /// Returns the store's own count.
    fn counted(&self) -> &str {
        if self.0.starts_with(UNCOUNTED) {
            NOTHING
        } else {
            &self.0
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("it was changed concurrently"),
            Self::Away(why) | Self::Doubtful(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for WriteError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rate: &str) -> Vec<(String, String)> {
        vec![
            ("b".to_owned(), rate.to_owned()),
            ("a".to_owned(), String::new()),
        ]
    }

    #[test]
    fn uncounted_documents_are_versioned_by_their_text() {
        let first = DocumentSnapshot::new("0", texts("1/s"), None)
            .unwrap()
            .unwrap();
        let seen = Some(&first.version);
        assert_eq!(first.texts[0].0, "a", "in the order of names");
        assert_eq!(DocumentSnapshot::new("0", texts("1/s"), seen), Ok(None));
        let second = DocumentSnapshot::new("0", texts("2/s"), seen)
            .unwrap()
            .unwrap();
        assert_ne!(first.version, second.version);
        assert_eq!(first.version.counted(), "0");
        assert!(!first.version.is_counted());
    }

    #[test]
    fn an_emptied_store_is_an_error_unless_its_counter_advanced() {
        let seen = Revision("7".to_owned());
        assert_eq!(
            DocumentSnapshot::new("0", Vec::new(), Some(&seen)),
            Err(StoreEmptied)
        );
        let emptied = DocumentSnapshot::new("8", Vec::new(), Some(&seen)).unwrap();
        assert!(emptied.is_some_and(|it| it.version.is_counted()));
        assert!(
            DocumentSnapshot::new("0", Vec::new(), None)
                .unwrap()
                .is_some()
        );
    }
}
