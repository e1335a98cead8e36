//! Resets one bucket.
//!
//! A key that is selected as a whole is deleted. A band within a key is reset through the store, so that the
//! other bands keep their state. Nothing is locked: a request that comes at the same time may charge the bucket
//! again right after.

use super::{BucketAddress, NamedBucket, place_of};
use crate::failure::Failure;
use tidegate::{AnyStore, Store};
use tidegate_policy::Band;
use tidegate_redis::RedisBuckets;

/// Resets every selected band in the store of a server, and returns how many existed.
pub(crate) async fn forget_in(
    store: &AnyStore,
    named: &NamedBucket,
    is_dry: bool,
) -> Result<u64, Failure> {
    match store.redis() {
        Some(store) => forget(store.buckets(), named, is_dry).await,
        None => forget_in_process(store, named, is_dry).await,
    }
}

/// Resets every selected band in a store other than Redis, and returns how many existed.
async fn forget_in_process(
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
///
/// A dry run removes nothing, and returns the same number.
///
/// # Errors
///
/// [`Failure::Runtime`] if Redis did not answer. Bands before the failing one are reset already; a second call
/// resets the rest.
pub async fn forget(
    store: &RedisBuckets,
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

async fn exists(store: &RedisBuckets, place: &BucketAddress) -> Result<bool, Failure> {
    let exists = store.connection().exists(&place.key).await;
    exists.map_err(Failure::runtime)
}

async fn inspect(store: &RedisBuckets, named: &NamedBucket, band: &Band) -> Result<bool, Failure> {
    let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
    Ok(seen.map_err(Failure::runtime)?.is_some())
}
