//! Resets one bucket.

use super::ResetArgs;
use super::audit::{self, ResetRecord};
use crate::commands::bucket::{BucketAddress, NamedBucket, place_of};
use crate::commands::redis_store;
use crate::failure::Failure;
use tidegate::Store;
use tidegate_policy::config::Environment;
use tidegate_policy::{Band, Config};
use tidegate_redis::RedisStore;

/// Resets the bucket, and returns a message.
pub(super) fn run(
    args: &ResetArgs,
    mut config: Config,
    environment: &dyn Environment,
) -> Result<String, Failure> {
    let store = redis_store::redis(&config)?.to_string();
    // Before the limit is moved out of it.
    let settings = redis_store::settings(&config)?;
    let mut named = NamedBucket::find(&mut config, &args.bucket)?;
    let forgotten = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-reset").await?;
        let forgotten = async {
            named.choose(&store).await?;
            forget(&store, &named, args.dry_run).await
        };
        let forgotten = forgotten.await;
        store.connection().close().await;
        forgotten
    })?;
    let bucket = &named.bucket;
    if args.dry_run {
        return match forgotten {
            0 => Err(named.not_found()),
            _ => Ok(format!("{bucket} would be forgotten")),
        };
    }
    audit::log(
        &ResetRecord {
            store,
            policy: named.policy(),
            limit: named.limit().map_or("", |limit| &limit.name),
            key: &named.shown(),
            forgotten,
            is_complete: true,
        },
        environment,
    );
    match forgotten {
        0 => Err(named.not_found()),
        _ => Ok(format!("{bucket} is as good as new")),
    }
}

/// Resets every selected band in a store other than Redis, and returns how many existed.
pub(crate) async fn forget_in_process(
    store: &impl Store,
    named: &NamedBucket,
    is_dry: bool,
) -> Result<u64, Failure> {
    let mut forgotten = 0;
    for band in named.bands().into_iter().chain(named.block()) {
        let bucket = named.bucket.as_bytes();
        let was_there = if is_dry {
            store
                .inspect(bucket, &band.quota)
                .await
                .map(|seen| seen.is_some())
        } else {
            store.reset(bucket, &band.quota).await
        };
        forgotten += u64::from(was_there.map_err(Failure::runtime)?);
    }
    Ok(forgotten)
}

/// Resets every selected band, and returns the number of keys, or bands within keys, that existed.
pub(crate) async fn forget(
    store: &RedisStore,
    named: &NamedBucket,
    is_dry: bool,
) -> Result<u64, Failure> {
    let mut forgotten = 0;
    let mut done: Vec<BucketAddress> = Vec::new();
    for band in named.bands().into_iter().chain(named.block()) {
        let place = place_of(store, named, band);
        if done.contains(&place) && is_whole(named, &place) {
            continue;
        }
        let was_there = match (is_dry, is_whole(named, &place)) {
            (true, true) => exists(store, &place).await?,
            (true, false) => inspect(store, named, band).await?,
            (false, true) => {
                let deleted = store.connection().del(&[&place.key]).await;
                deleted.map_err(Failure::runtime)? > 0
            }
            (false, false) => {
                let reset = store.reset(named.bucket.as_bytes(), &band.quota).await;
                reset.map_err(Failure::runtime)?
            }
        };
        forgotten += u64::from(was_there);
        done.push(place);
    }
    Ok(forgotten)
}

/// Returns true if the whole content of a key is selected.
fn is_whole(named: &NamedBucket, place: &BucketAddress) -> bool {
    place.field.is_none() && !named.is_partial()
}

async fn exists(store: &RedisStore, place: &BucketAddress) -> Result<bool, Failure> {
    let exists = store.connection().exists(&place.key).await;
    exists.map_err(Failure::runtime)
}

async fn inspect(store: &RedisStore, named: &NamedBucket, band: &Band) -> Result<bool, Failure> {
    let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
    Ok(seen.map_err(Failure::runtime)?.is_some())
}
