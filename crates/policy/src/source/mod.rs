//! Where policy comes from, beside the file: sources, and what is composed of what they say.
//!
//! The file is always the first. It may list others (`sources`), whose policies, guards and routes come
//! after its own, in the order of the list. All of it is read as one configuration, by the same reader
//! as any file, and whatever is wrong is told by the name of the source and the line in it.
//!
//! | module | what it is |
//! |---|---|
//! | this one | a source, as a configuration names it |
//! | `compose` | a file and what its sources say, as one configuration |
//! | `document` | one policy, guard or route of it |
//! | `json` | a document as text |

mod compose;
mod document;
mod json;

pub use compose::{ComposedConfig, LeftOut, NamedText, SourcePart, digest, has_documents};
pub use document::{ConfigDocument, DocumentKind};

use crate::config::{Secret, StoreSettings};
use crate::route::UpstreamTls;
use std::time::Duration;

/// A source of policy, as `sources` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    /// What messages and metrics call it; no two are called the same.
    pub name: String,
    /// Where it is.
    pub origin: PolicyOrigin,
    /// How often it is asked.
    pub refresh: Duration,
    /// How long one answer may take.
    pub timeout: Duration,
    /// Whether nothing is served before it has answered once, or its fallback stood in for it.
    pub required: bool,
}

/// Where policy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// Under a key of a keeper.
    Keeper(Box<Keeper>),
    /// At a URL.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// What is presented as a bearer token.
        token: Option<Secret>,
        /// Whose language it speaks.
        format: DocumentFormat,
        /// How TLS is spoken to it.
        tls: UpstreamTls,
    },
    /// On a shelf, each document by its name.
    Shelf(DocumentStoreSettings),
    /// In hashes of Redis, as `FluxGate` keeps its rule sets.
    RuleSets(Box<RuleSets>),
    /// In a collection of `MongoDB`, as `FluxGate` keeps its rules.
    MongoDb(Box<MongoRules>),
}

/// Where texts are kept by name, with a version for all of them, and may be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentStoreSettings {
    /// Where it is.
    pub place: ShelfPlace,
    /// Whether it may be written to from here.
    pub writable: bool,
}

/// Where a shelf is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShelfPlace {
    /// In a hash of Redis, a text in each field.
    Redis {
        /// Which Redis: the store's, unless it says otherwise.
        redis: Box<StoreSettings>,
        /// The hash.
        key: String,
    },
    /// In etcd, a text in each key.
    Etcd(Box<EtcdSource>),
    /// In a document of `MongoDB`, all texts in it.
    MongoDb(Box<MongoDocuments>),
}

/// A keeper: documents by key, each with a version, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    /// `http://` or `https://`, without a path of its own.
    pub url: String,
    /// What stands between the URL and the key.
    pub endpoint: String,
    /// Under which key the document is.
    pub key: String,
    /// Who asks.
    pub user: String,
    /// The password of who asks; without one, nobody is named.
    pub password: Option<Secret>,
    /// What the policy is called that the document becomes.
    pub policy: String,
    /// The document to serve while the keeper has never been reached.
    pub fallback: Option<String>,
    /// Whose language it speaks.
    pub format: DocumentFormat,
    /// How TLS is spoken to it.
    pub tls: UpstreamTls,
}

/// Rule sets of `FluxGate`: a set of their ids, and a hash for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSets {
    /// Which Redis: the store's, unless it says otherwise.
    pub redis: StoreSettings,
    /// What its keys begin with: the set is `<prefix>:rulesets`, and a hash `<prefix>:ruleset:<id>`.
    pub prefix: String,
    /// Where changes are told.
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

/// Texts of ours in `MongoDB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MongoDocuments {
    /// `mongodb://` or `mongodb+srv://`.
    pub url: Secret,
    /// The database.
    pub database: String,
    /// The collection that has the document with all of them.
    pub collection: String,
}

/// etcd, as its JSON gateway is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSource {
    /// Where its members are: `http://` or `https://`. They are asked in turn until one answers.
    pub endpoints: Vec<String>,
    /// What its keys begin with.
    pub prefix: String,
    /// Who asks, where it wants to know.
    pub user: Option<String>,
    /// The password of who asks.
    pub password: Option<Secret>,
    /// How TLS is spoken to its members.
    pub tls: UpstreamTls,
}

/// Whose language a document is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentFormat {
    /// Ours.
    #[default]
    Tidegate,
    /// The limits of a Traefik plugin, as a keeper holds them.
    TraefikPlugin,
    /// Rule sets of `FluxGate`.
    Fluxgate,
}

impl PolicySource {
    /// How often a source is asked unless told.
    pub const REFRESH: Duration = Duration::from_secs(30);
    /// The same for sources that tell when they have changed, and are asked in case that was lost; and
    /// for those that tell nothing, and of which a version alone is asked.
    pub const REFRESH_TOLD: Duration = Duration::from_secs(5);
    /// How long one answer may take unless told.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// The same for a keeper.
    pub const KEEPER_TIMEOUT: Duration = Duration::from_mins(5);

    /// Where it is, in a word, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match &self.origin {
            PolicyOrigin::Keeper(_) => "keeper",
            PolicyOrigin::Http { .. } => "http",
            PolicyOrigin::Shelf(place) => place.kind(),
            PolicyOrigin::RuleSets(_) => "redis",
            PolicyOrigin::MongoDb(_) => "mongodb",
        }
    }

    /// Whether it is the same source as `other`: what one said last, the other would have said too. Who
    /// asks, and how often, may differ.
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

    /// Whether it may be written to from here.
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
    /// Where it is, in a word, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match self.place {
            ShelfPlace::Redis { .. } => "redis",
            ShelfPlace::Etcd(_) => "etcd",
            ShelfPlace::MongoDb(_) => "mongodb",
        }
    }
}

impl ShelfPlace {
    /// Whether both lead to the same texts, whoever asks.
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
            // Of a URL that is a secret as a whole, nobody knows what else in it is another.
            (one, other) => one == other,
        }
    }
}

fn is_same_redis(one: &StoreSettings, other: &StoreSettings) -> bool {
    let both = one.target.redis().zip(other.target.redis());
    both.is_some_and(|(one, other)| one.is_same_place(other))
}

impl PolicyOrigin {
    /// Whether both lead to the same documents, read in the same language, whoever asks.
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
            // Of a URL that is a secret as a whole, nobody knows what else in it is another.
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
