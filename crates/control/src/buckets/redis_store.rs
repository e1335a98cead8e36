//! The Redis that a configuration names, for the commands that read it.
//!
//! Commands open their own connection, with the deny cache off: they read once, and a cached refusal would be
//! shown in place of the bucket. A server never uses this module; it has its store already.

use crate::failure::Failure;
pub use crate::sources::once::wait_for;
use tidegate::redis::settings as settings_of;
use tidegate_config::Config;
use tidegate_policy::store::RedisSettings;
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::ConnectionSettings;

/// Returns the Redis settings of a configuration. Fails if buckets are stored elsewhere.
///
/// # Errors
///
/// [`Failure::Input`] if the store is `memory`: only the serving process can read its buckets.
pub fn redis(config: &Config) -> Result<&RedisSettings, Failure> {
    config.store.target.redis().ok_or_else(|| {
        Failure::input(
            "the store is `memory`: only the serving process can read its buckets\n   help: send \
             that process a check request with cost 0, or set `store.url` to a Redis",
        )
    })
}

/// Returns the connection settings, and the storage options of buckets.
///
/// # Errors
///
/// [`Failure::Input`] if the store is `memory`, or if one of its settings cannot be used.
pub fn settings(config: &Config) -> Result<(ConnectionSettings, RedisOptions), Failure> {
    let (settings, options) = settings_of(&config.store, &config.policies, &config.key_rules())
        .map_err(Failure::input)?;
    // A command that reads once does not need the deny cache.
    Ok((settings, options.deny_cache(0)))
}

/// Connects, as `name` in `CLIENT LIST`.
///
/// # Errors
///
/// [`Failure::Runtime`] if Redis is unreachable or rejects the credentials.
pub async fn connect(
    (settings, options): (ConnectionSettings, RedisOptions),
    name: &str,
) -> Result<RedisBuckets, Failure> {
    let store = RedisBuckets::connect(settings.client_name(name), options).await;
    store.map_err(Failure::runtime)
}
