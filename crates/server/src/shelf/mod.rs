//! Shelves: texts by name, with a version for all of them, outside this process. Whoever wants to keep
//! something where all instances see it, and where it can be changed while it is served, keeps it on
//! one: policies, guards and routes, and what consumers have.
//!
//! | module | what it is |
//! |---|---|
//! | this one | what a shelf is, and whichever a configuration names |
//! | `redis` | a hash of Redis with a text in each field |
//! | `etcd` | keys of etcd with a text in each |
//! | `mongodb` | a document of `MongoDB` with all texts in it, with the feature `mongodb` |
//! | `channel` | a channel of Redis on which changes are told |

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
use tidegate_policy::source::{self as settings, ShelfPlace, digest};

/// What stands for a shelf that is not there.
const NOTHING: &str = "0";

/// What the version begins with where nobody counts.
const UNCOUNTED: &str = "0~";

/// Where texts are kept by name.
pub(crate) trait DocumentStore: Debug + Send + Sync {
    /// All that is there, unless it is at `seen` still. One that had something, or counted at least, and
    /// has nothing at all now was lost: that is trouble, and no word of anybody's.
    fn read<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Option<DocumentSnapshot>, SourceError>>;

    /// Comes to an end when it is worth to read again: `most` went by, or somebody said so. What goes
    /// wrong with being told is its own affair.
    fn changed(&self, most: Duration) -> BoxFuture<'_, ()>;

    /// Completes when a message says that it has changed; never where there are no messages.
    fn told(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// Makes all of these changes, or none, unless it has left the version `expected`; and tells which
    /// version that makes.
    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        changes: &'a [DocumentChange],
    ) -> BoxFuture<'a, Result<Revision, WriteError>>;
}

/// What is on a shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentSnapshot {
    pub(crate) version: Revision,
    /// In the order of their names.
    pub(crate) texts: Vec<(String, String)>,
}

/// One change: this text from now on, or none of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentChange {
    pub(crate) key: String,
    pub(crate) text: Option<String>,
}

/// Which state of something elsewhere is meant; only ever compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) String);

/// Why something elsewhere could not be read, in words for people. Never a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceError(pub(crate) String);

/// Why nothing was written, as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// Somebody else changed it meanwhile.
    Conflict,
    /// It cannot be reached, or does not take it: nothing was written.
    Away(String),
    /// Nobody knows whether it was written.
    Doubtful(String),
}

/// The shelf that `settings` name, or what is wrong with them. Asks nobody yet. Each answer is waited
/// for as long as `time_max`.
pub(crate) fn open(
    settings: &settings::DocumentStoreSettings,
    time_max: Duration,
) -> Result<Box<dyn DocumentStore>, String> {
    Ok(match &settings.place {
        ShelfPlace::Redis { redis, key } => Box::new(redis::RedisShelf::new(redis, key, time_max)?),
        ShelfPlace::Etcd(etcd) => Box::new(etcd::EtcdShelf::new(etcd, time_max)?),
        #[cfg(feature = "mongodb")]
        ShelfPlace::MongoDb(place) => Box::new(mongodb::MongoShelf::new(place, time_max)),
        #[cfg(not(feature = "mongodb"))]
        ShelfPlace::MongoDb(_) => return Err(crate::sources::WITHOUT_MONGODB.to_owned()),
    })
}

// === impl Shelved ===

impl DocumentSnapshot {
    /// What a shelf has that counts itself to be at `version`; none where that is what was `seen`. The
    /// error is that it is gone.
    fn new(
        version: &str,
        mut texts: Vec<(String, String)>,
        seen: Option<&Revision>,
    ) -> Result<Option<Self>, StoreEmptied> {
        let is_nothing = version == NOTHING && texts.is_empty();
        if is_nothing && seen.is_some_and(|seen| seen.0 != NOTHING) {
            return Err(StoreEmptied);
        }
        // Redis tells them in any order.
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

/// A shelf had something, or counted at least, and has nothing at all now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoreEmptied;

// === impl Version ===

impl Revision {
    /// Of texts that somebody wrote without counting: told by what they say.
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

    /// Whether it was counted, so that it differs from all before it.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted() != NOTHING
    }

    /// It as the shelf itself counts.
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
            Self::Conflict => f.write_str("somebody else changed it meanwhile"),
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
    fn what_nobody_counted_is_known_by_what_it_says() {
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
    fn a_shelf_that_had_something_and_has_nothing_is_gone_unless_it_counts_on() {
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
