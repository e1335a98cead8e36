//! The Redis that a configuration names, for the commands that read it.

use crate::failure::Failure;
use std::future::Future;
use tidegate::redis::settings as settings_of;
use tidegate_policy::Config;
use tidegate_policy::config::RedisSettings;
use tidegate_redis::{ConnectionSettings, RedisOptions, RedisStore};

/// Returns the Redis settings of a configuration. Fails if buckets are stored elsewhere.
pub(super) fn redis(config: &Config) -> Result<&RedisSettings, Failure> {
    config.store.target.redis().ok_or_else(|| {
        Failure::input(
            "the store is `memory`: its buckets live in the process that serves, and no other \
             process can reach them\n   help: ask that process with a cost of 0, which only \
             looks, or name a Redis in `store.url`",
        )
    })
}

/// Returns the connection settings, and the storage options of buckets.
pub(super) fn settings(config: &Config) -> Result<(ConnectionSettings, RedisOptions), Failure> {
    let (settings, options) = settings_of(&config.store, &config.policies, &config.key_rules())
        .map_err(Failure::input)?;
    // A command that reads once does not need the deny cache.
    Ok((settings, options.deny_cache(0)))
}

/// Connects, as `name` in `CLIENT LIST`.
pub(super) async fn connect(
    (settings, options): (ConnectionSettings, RedisOptions),
    name: &str,
) -> Result<RedisStore, Failure> {
    let store = RedisStore::connect(settings.client_name(name), options).await;
    store.map_err(Failure::runtime)
}

/// Runs `work`, which talks to Redis, to completion.
pub(super) fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
