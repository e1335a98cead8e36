//! Document stores: where texts live by name, and how to reach them.

use crate::store::StoreSettings;
use crate::text::Secret;
use crate::tls::ClientTls;

/// A document store: texts by name, with one version for all of them, possibly writable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentStoreSettings {
    /// The place of the texts.
    pub place: DocumentLocation,
    /// True if Tidegate may write to it.
    pub writable: bool,
}

/// The place of a document store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentLocation {
    /// A hash in Redis, with a text in each field.
    Redis {
        /// The Redis to connect to. Default: that of the store.
        redis: Box<StoreSettings>,
        /// The hash.
        key: String,
    },
    /// etcd, with a text in each key.
    Etcd(Box<EtcdSource>),
    /// A single document in `MongoDB` with all texts.
    MongoDb(Box<MongoDocuments>),
}

/// Tidegate's documents in `MongoDB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MongoDocuments {
    /// `mongodb://` or `mongodb+srv://`.
    pub url: Secret,
    /// The database.
    pub database: String,
    /// The collection with the single document that contains all of them.
    pub collection: String,
}

/// etcd, through its JSON gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSource {
    /// The URLs of its members: `http://` or `https://`. They are tried in turn until one responds.
    pub endpoints: Vec<String>,
    /// The prefix of its keys.
    pub prefix: String,
    /// The user name, if etcd requires authentication.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<Secret>,
    /// The TLS settings for its members.
    pub tls: ClientTls,
}

impl DocumentStoreSettings {
    /// Returns the kind of store, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match self.place {
            DocumentLocation::Redis { .. } => "redis",
            DocumentLocation::Etcd(_) => "etcd",
            DocumentLocation::MongoDb(_) => "mongodb",
        }
    }
}

impl DocumentLocation {
    /// Returns true if both refer to the same texts, regardless of credentials.
    pub fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Redis { redis, key },
                Self::Redis {
                    redis: other,
                    key: named,
                },
            ) => key == named && is_same_redis(redis, other),
            (Self::Etcd(one), Self::Etcd(other)) => {
                one.endpoints == other.endpoints && one.prefix == other.prefix
            }
            // A URL that is a secret as a whole cannot be compared in parts.
            (one, other) => one == other,
        }
    }
}

/// Returns true if both stores are the same Redis.
pub fn is_same_redis(one: &StoreSettings, other: &StoreSettings) -> bool {
    let both = one.target.redis().zip(other.target.redis());
    both.is_some_and(|(one, other)| one.is_same_place(other))
}
