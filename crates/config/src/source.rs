//! Config sources in addition to the file, as plain data.
//!
//! The file always comes first. It may list others (`sources`), whose policies, guards and routes follow its
//! own, in the order of the list. All of them are parsed as one configuration, by the same parser as any
//! file. Errors refer to the name of the source and the line in it.

use std::time::Duration;
use tidegate_policy::ChargeTime;
use tidegate_policy::documents::{DocumentStoreSettings, is_same_redis};
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;

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
        tls: ClientTls,
    },
    /// A document store, with each document under its name.
    Shelf(DocumentStoreSettings),
    /// Hashes in Redis, in the format of `FluxGate`'s rule sets.
    RuleSets(Box<RuleSets>),
    /// A collection in `MongoDB`, in the format of `FluxGate`'s rules.
    MongoDb(Box<MongoRules>),
    /// An xDS server that sends the configuration of envoyproxy/ratelimit.
    Xds(Box<XdsServer>),
}

/// An xDS server that sends the configuration of envoyproxy/ratelimit, a domain in each resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdsServer {
    /// `http://` for HTTP/2 without TLS, or `https://`; without a path.
    pub url: String,
    /// The id of the node for which the server has a configuration.
    pub node_id: String,
    /// The cluster of the node; empty if there is none.
    pub node_cluster: String,
    /// The metadata of the node.
    pub node_metadata: Vec<(String, String)>,
    /// Additional headers of the call.
    pub headers: Vec<(String, Secret)>,
    /// The TLS settings.
    pub tls: ClientTls,
    /// The options of the translation.
    pub translation: XdsTranslation,
}

/// The options of translating the configuration of envoyproxy/ratelimit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdsTranslation {
    /// True if several resources may describe the same domain.
    pub merge_domains: bool,
    /// True if every limit counts independently of the others.
    pub each: bool,
    /// The time at which limits charge a cost that does not fit.
    pub charge: ChargeTime,
    /// True if every limit that is not in shadow mode is a quota.
    pub quota: bool,
}

/// A keeper: an HTTP service with documents by key, each with a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    /// `http://` or `https://`, without a path.
    pub url: String,
    /// The path between the URL and the key.
    pub path: String,
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
    pub tls: ClientTls,
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
    pub const KEEPER_TIMEOUT: Duration = Duration::from_secs(300);

    /// Returns the kind of source, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match &self.origin {
            PolicyOrigin::Keeper(_) => "keeper",
            PolicyOrigin::Http { .. } => "http",
            PolicyOrigin::Shelf(place) => place.kind(),
            PolicyOrigin::RuleSets(_) => "redis",
            PolicyOrigin::MongoDb(_) => "mongodb",
            PolicyOrigin::Xds(_) => "xds",
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
            PolicyOrigin::Keeper(_) | PolicyOrigin::Shelf(_) | PolicyOrigin::Xds(_) => false,
        }
    }

    /// Returns true if Tidegate may write to it.
    pub fn is_writable(&self) -> bool {
        match &self.origin {
            PolicyOrigin::Keeper(_)
            | PolicyOrigin::Http { .. }
            | PolicyOrigin::RuleSets(_)
            | PolicyOrigin::MongoDb(_)
            | PolicyOrigin::Xds(_) => false,
            PolicyOrigin::Shelf(place) => place.writable,
        }
    }
}

impl PolicyOrigin {
    /// Returns true if both refer to the same documents in the same format, regardless of credentials.
    fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keeper(one), Self::Keeper(other)) => {
                let place = |it: &Keeper| (it.url.clone(), it.path.clone(), it.key.clone());
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
            (Self::Xds(one), Self::Xds(other)) => {
                let place = |it: &XdsServer| (it.url.clone(), it.node_id.clone(), it.translation);
                place(one) == place(other)
            }
            // A URL that is a secret as a whole cannot be compared in parts.
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PolicySource;
    use crate::compose::NamedText;
    use crate::config::Config;
    use crate::environment::NoEnvironment;

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
    fn credentials_and_intervals_do_not_change_a_sources_identity() {
        for (one, other, is_same) in [
            (
                "keeper: { url: 'http://k', key: a, password: x }",
                "keeper: { url: 'http://k', key: a, password: y, fallback: '{}' }, refresh: 1s",
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

    #[test]
    fn an_xds_source_is_identified_by_its_server_and_node() {
        for (one, other, is_same) in [
            (
                "xds: { url: 'x:18000', headers: { authorization: x } }",
                "xds: { url: 'http://x:18000', headers: { authorization: y } }",
                true,
            ),
            (
                "xds: { url: 'x:18000', node_id: a }",
                "xds: { url: 'x:18000', node_id: b }",
                false,
            ),
        ] {
            let (one, other) = (source(one), source(other));
            assert_eq!(one.is_same_place(&other), is_same, "{one:?} {other:?}");
        }
    }
}
