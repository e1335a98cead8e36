//! Buckets in Redis: converts a configuration into the settings of a Redis store, and exports the types to
//! open one by hand.
//!
//! Most programs need none of this: [`LimiterBuilder::start`](crate::LimiterBuilder::start) opens the store
//! that a configuration or [`LimiterBuilder::store_url`](crate::LimiterBuilder::store_url) names. A store
//! with custom settings is opened here and passed to
//! [`LimiterBuilder::build_with`](crate::LimiterBuilder::build_with):
//!
//! ```no_run
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use std::time::Duration;
//! use tidegate::redis::{Address, RedisTopology, RedisOptions, RedisStore, ConnectionSettings};
//! use tidegate::{LimitSpec, Limiter};
//!
//! let address = Address::new("127.0.0.1", 6379);
//! let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]).timeout(Duration::from_millis(5));
//! let store = RedisStore::connect(settings, RedisOptions::default().prefix("shop:")).await?;
//! let limiter = Limiter::builder()
//!     .limit(LimitSpec::new("everyone").band("100/s"))
//!     .build_with(store)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod store;

use crate::error::BuildError;
use std::collections::BTreeMap;
use tidegate_policy::literal::literal_characters;
use tidegate_policy::matching::bucket_scope;
use tidegate_policy::store::{LayoutWord, RedisMode, RedisSettings, StoreSettings};
use tidegate_policy::template::{self, band_name};
use tidegate_policy::text::Secret;
use tidegate_policy::{Policy, SlotTag};

pub use store::RedisStore;
pub use tidegate_policy::matching::KeyRules;
pub use tidegate_redis::{
    Counter, HashTag as KeyTag, KeyPiece, Layout, OpenLayout, OpenLimit, RedisBuckets,
    RedisOptions, RedisStats, TokenFields,
};
pub use tidegate_redis_client::{
    Address, CallError, ConnectError, ConnectErrorKind, Connection, ConnectionSettings,
    Credentials, Password, RedisTopology, TlsSettings,
};
pub use tidegate_redis_shared::{Heartbeat, Instance, InstanceConfig, RedisSets, Roll};

/// Returns the connection settings for Redis and the options for buckets that `store` specifies. The buckets
/// belong to `policies` and are named by `keys`. Reads no files: `store` already holds the contents of the
/// files of `store.redis.tls`.
///
/// # Errors
///
/// [`BuildError::Store`] if `store` names the in-memory store.
pub fn settings(
    store: &StoreSettings,
    policies: &[Policy],
    keys: &KeyRules,
) -> Result<(ConnectionSettings, RedisOptions), BuildError> {
    let Some(redis) = store.target.redis() else {
        return Err(BuildError::Store {
            url: store.target.to_string(),
        });
    };
    let options = RedisOptions::default()
        .prefix(redis.prefix.clone())
        .tag(match redis.tag {
            SlotTag::Subject => KeyTag::Subject,
            SlotTag::Policy => KeyTag::Policy,
        })
        .deny_cache(redis.deny_cache)
        .layout(match redis.layout {
            LayoutWord::Packed => Layout::Packed,
            LayoutWord::Open => Layout::Open(open_layout(policies, keys)),
        });
    Ok((connection(redis).timeout(store.timeout), options))
}

/// Returns the names of the keys of `policies` in the open layout, in which other programs can read the
/// buckets: one template per limit (`template` in the configuration). Buckets are named by `keys`.
///
/// A reload renames the keys of a store that [`LimiterBuilder::start`](crate::LimiterBuilder::start) opened.
/// A program that opened the store passes the result to `RedisStore::rename`.
pub fn open_layout(policies: &[Policy], keys: &KeyRules) -> OpenLayout {
    let mut layout = OpenLayout::new();
    let mut literal = BTreeMap::new();
    if keys.literal {
        let keys = *keys;
        layout = layout.hashing(move |label, value| keys.hash(label, value));
        literal = literal_characters(policies);
    }
    // Joined policies use the buckets of their origins, which are in this list themselves.
    for policy in policies.iter().filter(|policy| !policy.is_joined()) {
        for limit in &policy.limits {
            let Some(template) = &limit.template else {
                continue;
            };
            let bands = limit.shapes().iter();
            let bands = bands.map(|band| (band.quota.family(), band_name(band).to_owned()));
            let scope = bucket_scope(&policy.name, &limit.name);
            let open = OpenLimit {
                template: template.pieces().iter().map(piece).collect(),
                bands: bands.collect(),
                literal: literal.remove(&scope).unwrap_or_default(),
            };
            layout = layout.limit(&scope, open);
        }
    }
    layout
}

fn piece(piece: &template::TemplatePiece) -> KeyPiece {
    match piece {
        template::TemplatePiece::Text(text) => KeyPiece::Text(text.clone()),
        template::TemplatePiece::Policy => KeyPiece::Policy,
        template::TemplatePiece::Limit => KeyPiece::Limit,
        template::TemplatePiece::Band => KeyPiece::Band,
        template::TemplatePiece::Subject => KeyPiece::Subject,
        template::TemplatePiece::Key => KeyPiece::Key,
        template::TemplatePiece::Part { label, .. } => KeyPiece::Part(label.clone()),
    }
}

pub(crate) fn connection(redis: &RedisSettings) -> ConnectionSettings {
    let addresses = redis.addresses.iter();
    let addresses = addresses.map(|it| Address::new(it.host.clone(), it.port));
    let mode = match &redis.mode {
        RedisMode::Standalone => RedisTopology::Standalone,
        RedisMode::Cluster => RedisTopology::Cluster,
        RedisMode::Sentinel { master, .. } => RedisTopology::Sentinel {
            master: master.clone(),
        },
    };
    let mut settings = ConnectionSettings::new(mode, addresses.collect())
        .database(redis.database)
        .connections(redis.connections.into())
        .connect_timeout(redis.connect_timeout)
        .retries(redis.retries.into());
    settings.user.clone_from(&redis.user);
    settings.password = redis.password.as_ref().map(password);
    if let RedisMode::Sentinel {
        user,
        password: secret,
        ..
    } = &redis.mode
        && (user.is_some() || secret.is_some())
    {
        settings.sentinel = Some(Credentials {
            user: user.clone(),
            password: secret.as_ref().map(password),
        });
    }
    if let Some(pem) = &redis.tls {
        let mut tls = TlsSettings::new();
        if let Some(ca) = &pem.ca {
            tls = tls.ca(ca.expose());
        }
        if let Some(name) = &pem.server_name {
            tls = tls.server_name(name);
        }
        if let Some(identity) = &pem.identity {
            tls = tls.identity(identity.cert.expose(), identity.key.expose());
        }
        settings = settings.tls(tls);
    }
    settings
}

fn password(secret: &Secret) -> Password {
    Password::new(secret.expose())
}
