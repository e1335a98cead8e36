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

pub use compose::{Composed, Named, Part, digest, has_documents};
pub use document::{Document, DocumentKind};

use crate::config::{Secret, StoreSettings};
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
        format: Format,
    },
    /// On a shelf, each document by its name.
    Shelf(Shelf),
    /// In hashes of Redis, as `FluxGate` keeps its rule sets.
    RuleSets(Box<RuleSets>),
    /// In a collection of `MongoDB`, as `FluxGate` keeps its rules.
    MongoDb(Box<MongoRules>),
}

/// Where texts are kept by name, with a version for all of them, and may be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf {
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
    Etcd(Box<Etcd>),
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
    pub format: Format,
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
pub struct Etcd {
    /// Where its members are: `http://` or `https://`. They are asked in turn until one answers.
    pub endpoints: Vec<String>,
    /// What its keys begin with.
    pub prefix: String,
    /// Who asks, where it wants to know.
    pub user: Option<String>,
    /// The password of who asks.
    pub password: Option<Secret>,
}

/// Whose language a document is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
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

impl Shelf {
    /// Where it is, in a word, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match self.place {
            ShelfPlace::Redis { .. } => "redis",
            ShelfPlace::Etcd(_) => "etcd",
            ShelfPlace::MongoDb(_) => "mongodb",
        }
    }
}
