//! Config sources in addition to the file, and the composition of their documents.
//!
//! The file always comes first. It may list others (`sources`), whose policies, guards and routes follow its
//! own, in the order of the list. All of them are parsed as one configuration, by the same parser as any
//! file. Errors refer to the name of the source and the line in it.
//!
//! | module | contents |
//! |---|---|
//! | this one | a source in the configuration |
//! | `compose` | a file and the texts of its sources, as one configuration |
//! | `document` | one policy, guard or route |
//! | `json` | a document as text |

mod compose;
mod document;
mod json;

pub use compose::{ComposedConfig, LeftOut, NamedText, SourcePart, digest, has_documents};
pub use document::{ConfigDocument, DocumentKind};

use crate::config::{Secret, StoreSettings};
use crate::route::UpstreamTls;
use std::time::Duration;

/// A source of policy in `sources`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    /// The name in messages and metrics, unique among sources.
    pub name: String,
    /// The place of the documents.
    pub origin: PolicyOrigin,
    /// The interval between two reads.
    pub refresh: Duration,
    /// The timeout of one read.
    pub timeout: Duration,
    /// True if serving starts only after the source has been read once, or its fallback has replaced it.
    pub required: bool,
}

/// The place of policy documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// A key of a keeper.
    Keeper(Box<Keeper>),
    /// A URL.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// The bearer token of the request.
        token: Option<Secret>,
        /// The format of the document.
        format: DocumentFormat,
        /// The TLS settings.
        tls: UpstreamTls,
    },
    /// A document store, with each document under its name.
    Shelf(DocumentStoreSettings),
    /// Hashes in Redis, in the format of `FluxGate`'s rule sets.
    RuleSets(Box<RuleSets>),
    /// A collection in `MongoDB`, in the format of `FluxGate`'s rules.
    MongoDb(Box<MongoRules>),
}

/// A document store: texts by name, with one version for all of them, possibly writable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentStoreSettings {
    /// The place of the texts.
    pub place: ShelfPlace,
    /// True if Tidegate may write to it.
    pub writable: bool,
}

/// The place of a document store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShelfPlace {
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

/// A keeper: an HTTP service with documents by key, each with a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    /// `http://` or `https://`, without a path.
    pub url: String,
    /// The path between the URL and the key.
    pub endpoint: String,
    /// The key of the document.
    pub key: String,
    /// The user name.
    pub user: String,
    /// The user's password. Without one, no credentials are sent.
    pub password: Option<Secret>,
    /// The name of the policy that the document becomes.
    pub policy: String,
    /// The document to use until the keeper has been reached once.
    pub fallback: Option<String>,
    /// The format of the document.
    pub format: DocumentFormat,
    /// The TLS settings.
    pub tls: UpstreamTls,
}

/// Rule sets of `FluxGate`: a set of their ids, and a hash for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSets {
    /// The Redis to connect to. Default: that of the store.
    pub redis: StoreSettings,
    /// The prefix of its keys: the set is `<prefix>:rulesets`, and a hash is `<prefix>:ruleset:<id>`.
    pub prefix: String,
    /// The channel on which changes are published.
    pub channel: String,
}

/// Rules of `FluxGate` in `MongoDB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MongoRules {
    /// `mongodb://` or `mongodb+srv://`.
    pub url: Secret,
    /// The database.
    pub database: String,
    /// The collection, a rule in each document.
    pub collection: String,
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
    pub tls: UpstreamTls,
}

/// The format of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentFormat {
    /// Tidegate's own.
    #[default]
    Tidegate,
    /// The limits of a Traefik plugin, in the format of a keeper.
    TraefikPlugin,
    /// Rule sets of `FluxGate`.
    Fluxgate,
}

impl PolicySource {
    /// The default interval between two reads.
    pub const REFRESH: Duration = Duration::from_secs(30);
    /// The default interval for sources that publish changes, which are read again in case a notification was
    /// lost, and for sources without notifications that return a version alone.
    pub const REFRESH_TOLD: Duration = Duration::from_secs(5);
    /// The default timeout of one read.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// The default timeout of one read from a keeper.
    pub const KEEPER_TIMEOUT: Duration = Duration::from_mins(5);

    /// Returns the kind of source, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match &self.origin {
            PolicyOrigin::Keeper(_) => "keeper",
            PolicyOrigin::Http { .. } => "http",
            PolicyOrigin::Shelf(place) => place.kind(),
            PolicyOrigin::RuleSets(_) => "redis",
            PolicyOrigin::MongoDb(_) => "mongodb",
        }
    }

    /// Returns true if it is the same source as `other`, so that the last document of one is valid for the
    /// other. Credentials and intervals may differ.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.name == other.name && self.origin.is_same_place(&other.origin)
    }

    /// Returns true if it has rules of `FluxGate`.
    pub fn is_fluxgate(&self) -> bool {
        match &self.origin {
            PolicyOrigin::RuleSets(_) | PolicyOrigin::MongoDb(_) => true,
            PolicyOrigin::Http { format, .. } => *format == DocumentFormat::Fluxgate,
            PolicyOrigin::Keeper(_) | PolicyOrigin::Shelf(_) => false,
        }
    }

    /// Returns true if Tidegate may write to it.
    pub fn is_writable(&self) -> bool {
        match &self.origin {
            PolicyOrigin::Keeper(_)
            | PolicyOrigin::Http { .. }
            | PolicyOrigin::RuleSets(_)
            | PolicyOrigin::MongoDb(_) => false,
            PolicyOrigin::Shelf(place) => place.writable,
        }
    }
}

impl DocumentStoreSettings {
    /// Returns the kind of store, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match self.place {
            ShelfPlace::Redis { .. } => "redis",
            ShelfPlace::Etcd(_) => "etcd",
            ShelfPlace::MongoDb(_) => "mongodb",
        }
    }
}

impl ShelfPlace {
    /// Returns true if both refer to the same texts, regardless of credentials.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
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

fn is_same_redis(one: &StoreSettings, other: &StoreSettings) -> bool {
    let both = one.target.redis().zip(other.target.redis());
    both.is_some_and(|(one, other)| one.is_same_place(other))
}

impl PolicyOrigin {
    /// Returns true if both refer to the same documents in the same format, regardless of credentials.
    fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keeper(one), Self::Keeper(other)) => {
                let place = |it: &Keeper| (it.url.clone(), it.endpoint.clone(), it.key.clone());
                let is_same_language = one.format == other.format && one.policy == other.policy;
                is_same_language && place(one) == place(other)
            }
            (
                Self::Http { url, format, .. },
                Self::Http {
                    url: other,
                    format: spoken,
                    ..
                },
            ) => url == other && format == spoken,
            (Self::Shelf(one), Self::Shelf(other)) => one.place.is_same_place(&other.place),
            (Self::RuleSets(one), Self::RuleSets(other)) => {
                one.prefix == other.prefix && is_same_redis(&one.redis, &other.redis)
            }
            // A URL that is a secret as a whole cannot be compared in parts.
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PolicySource;
    use crate::Config;
    use crate::config::NoEnvironment;
    use crate::source::NamedText;

    fn source(text: &str) -> PolicySource {
        let text = format!("sources: [{{ {text} }}]");
        let own = NamedText {
            name: "x",
            text: &text,
        };
        let sources = Config::sources_of(own, &NoEnvironment);
        let sources = sources.unwrap_or_else(|errors| panic!("{errors}"));
        sources.into_iter().next().unwrap()
    }

    #[test]
    fn a_source_stays_what_it_is_whoever_asks_and_how_often() {
        for (one, other, is_same) in [
            (
                "keeper: { url: 'http://k', key: a, password: x }",
                "keeper: { url: 'http://k', key: a, password: y, refresh: 1s, fallback: '{}' }",
                true,
            ),
            (
                "keeper: { url: 'http://k', key: a }",
                "keeper: { url: 'http://k', key: b }",
                false,
            ),
            (
                "keeper: { url: 'http://k', key: a }",
                "keeper: { url: 'http://k', key: a, policy: p }",
                false,
            ),
            (
                "http: { url: 'http://h/a', token: x }",
                "http: { url: 'http://h/a', token: y }",
                true,
            ),
            (
                "http: { url: 'http://h/a' }",
                "http: { url: 'http://h/b' }",
                false,
            ),
            (
                "http: { url: 'http://h/a' }",
                "http: { url: 'http://h/a', format: fluxgate }",
                false,
            ),
            (
                "http: { url: 'http://h/a' }",
                "name: other, http: { url: 'http://h/a' }",
                false,
            ),
            (
                "redis: { url: 'redis://:x@r' }",
                "redis: { url: 'redis://:y@r', writable: false }",
                true,
            ),
            (
                "redis: { url: 'redis://r' }",
                "redis: { url: 'redis://r/1' }",
                false,
            ),
            (
                "redis: { url: 'redis://r' }",
                "redis: { url: 'redis://r', rulesets: f }",
                false,
            ),
            (
                "etcd: { endpoints: 'http://e', user: u, password: x }",
                "etcd: { endpoints: 'http://e', user: u, password: y }",
                true,
            ),
            (
                "etcd: { endpoints: 'http://e' }",
                "etcd: { endpoints: 'http://e', prefix: /a/ }",
                false,
            ),
        ] {
            let (one, other) = (source(one), source(other));
            assert_eq!(one.is_same_place(&other), is_same, "{one:?} {other:?}");
            assert!(one.is_same_place(&one));
        }
    }
}
