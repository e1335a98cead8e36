//! The content of a bucket, as data.

use crate::commands::bucket::{BucketAddress, NamedBucket, place_of};
use crate::failure::Failure;
use serde::Serialize;
use serde_json::{Value, json};
use tidegate::{Algorithm, Align, Store, StoreError, StoreErrorKind, Timestamp};
use tidegate_core::{Bucket, BucketState, Inspection};
use tidegate_policy::Band;
use tidegate_redis::protocol;
use tidegate_redis::{Connection, NodeChoice, RedisStore, RedisTopology, Ttl};

/// The report about a bucket.
#[derive(Debug, Serialize)]
pub(crate) struct BucketReport {
    pub(crate) bucket: String,
    pub(crate) policy: String,
    pub(crate) limit: String,
    pub(crate) subject: String,
    /// False if the store has no record of the bucket: it is full, or another one is meant.
    pub(crate) found: bool,
    /// The reason why there are no bands, if their rate comes from a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<String>,
    /// A warning about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The remaining time for which the limit blocks the subject; `None` if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blocked_for_ms: Option<u64>,
    pub(crate) bands: Vec<BandSight>,
    pub(crate) keys: Vec<KeySight>,
}

/// The state of a band. Times are rounded up to milliseconds, as in decisions.
#[derive(Debug, Serialize)]
pub(crate) struct BandSight {
    pub(crate) band: String,
    pub(crate) label: Option<String>,
    pub(crate) algorithm: &'static str,
    pub(crate) capacity: u64,
    pub(crate) remaining: u64,
    /// The time until a cost of 1 would pass; `None` if never.
    pub(crate) retry_after_ms: Option<u64>,
    /// The time until the bucket is full.
    pub(crate) reset_ms: u64,
    pub(crate) as_good_as_new: bool,
    /// The store's clock at the time of reading, in microseconds.
    pub(crate) at_us: Option<u64>,
    /// The stored state, in its own units.
    pub(crate) state: Option<Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) key: String,
    /// The field, if the key is a hash of many buckets.
    pub(crate) field: Option<String>,
}

/// The state of a key.
#[derive(Debug, Serialize)]
pub(crate) struct KeySight {
    pub(crate) key: String,
    pub(crate) exists: bool,
    /// The time until Redis expires it; `None` for a key that does not exist, or never expires.
    pub(crate) expires_in_ms: Option<u64>,
    /// The bytes of a string value, in hexadecimal.
    pub(crate) value: Option<String>,
    pub(crate) slot: Option<u16>,
    pub(crate) node: Option<String>,
}

/// Reads every selected band, in a store other than Redis.
pub(crate) async fn look_in_process(
    store: &impl Store,
    named: &NamedBucket,
) -> Result<BucketReport, Failure> {
    let nowhere = BucketAddress {
        key: Vec::new(),
        field: None,
    };
    let mut bands = Vec::new();
    for band in named.bands() {
        let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
        let seen = seen.map_err(Failure::runtime)?;
        bands.push(band_sight(band, seen, &nowhere));
    }
    let mut block = None;
    if let Some(band) = named.block() {
        let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
        block = Some(band_sight(band, seen.map_err(Failure::runtime)?, &nowhere));
    }
    Ok(BucketReport::of(named, block, (bands, Vec::new())))
}

/// Reads every selected band.
pub(crate) async fn look(store: &RedisStore, named: &NamedBucket) -> Result<BucketReport, Failure> {
    let mut bands = Vec::new();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for band in named.bands() {
        let place = place_of(store, named, band);
        let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
        let seen = seen.map_err(|error| failure(&error, &place.key))?;
        bands.push(band_sight(band, seen, &place));
        if !keys.contains(&place.key) {
            keys.push(place.key);
        }
    }
    let mut block = None;
    if let Some(band) = named.block() {
        let place = place_of(store, named, band);
        let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
        let seen = seen.map_err(|error| failure(&error, &place.key))?;
        block = Some(band_sight(band, seen, &place));
        if !keys.contains(&place.key) {
            keys.push(place.key);
        }
    }
    let mut key_sights = Vec::new();
    for key in &keys {
        key_sights.push(key_sight(store.connection(), key).await?);
    }
    Ok(BucketReport::of(named, block, (bands, key_sights)))
}

impl BucketReport {
    fn of(
        named: &NamedBucket,
        block: Option<BandSight>,
        (mut bands, keys): (Vec<BandSight>, Vec<KeySight>),
    ) -> Self {
        let limit = named.limit().map(|limit| limit.name.clone());
        let is_kept = |band: &BandSight| band.state.is_some();
        // A hash of many buckets exists regardless of this one.
        let has_key = |key: &KeySight| key.exists && key.value.is_some();
        let found = bands.iter().chain(&block).any(is_kept) || keys.iter().any(has_key);
        let rate = named.without_rate().map(str::to_owned);
        if rate.is_some() {
            // Their numbers are not the plan's.
            bands.clear();
        }
        Self {
            bucket: named.bucket.clone(),
            policy: named.policy().to_owned(),
            limit: limit.unwrap_or_default(),
            subject: named.subject().to_owned(),
            found,
            rate,
            note: None,
            blocked_for_ms: block
                .and_then(|block| block.retry_after_ms)
                .filter(|left| *left > 0),
            bands,
            keys,
        }
    }
}

/// Returns the failure for a bucket that could not be read.
fn failure(error: &StoreError, key: &[u8]) -> Failure {
    if error.kind() != StoreErrorKind::Corrupt {
        return Failure::runtime(error);
    }
    let key = String::from_utf8_lossy(key);
    Failure::runtime(format!(
        "{error}: `{key}`\n   help: look at it with redis-cli; `tidegate reset` removes it"
    ))
}

fn band_sight(band: &Band, seen: Option<Inspection>, place: &BucketAddress) -> BandSight {
    let quota = &band.quota;
    let state = seen.as_ref().map(|seen| state(&seen.bucket));
    let at = seen.as_ref().map(|seen| seen.at);
    let now = at.unwrap_or_default();
    let mut bucket = seen.map_or_else(|| Bucket::new(quota), |seen| seen.bucket);
    if bucket.is_ahead(quota, now) {
        // A decision would do the same.
        bucket.settle(quota, now);
    }
    let reading = bucket.reading(quota, now);
    BandSight {
        band: band.text.clone(),
        label: band.label.clone(),
        algorithm: algorithm(quota.algorithm()),
        capacity: quota.capacity(),
        remaining: reading.remaining,
        retry_after_ms: bucket.wait(quota, 1, now).as_millis(),
        reset_ms: reading.reset_us.div_ceil(1_000),
        as_good_as_new: reading.reset_us == 0,
        at_us: at.map(Timestamp::as_micros),
        state,
        key: shown(&place.key),
        field: place.field.as_deref().map(shown),
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the stored state of a bucket, in its own units.
fn state(bucket: &Bucket) -> Value {
    match bucket {
        Bucket::Tokens(it) => json!({ "at": it.at, "fraction": it.fraction }),
        Bucket::Lent(it) => json!({ "at": it.tokens.at, "fraction": it.tokens.fraction }),
        Bucket::Fixed(it) => json!({ "start": it.start, "used": it.used }),
        Bucket::Sliding(it) => {
            json!({ "index": it.index, "current": it.current, "previous": it.previous })
        }
        Bucket::Log(it) => {
            let runs = it.runs().map(|run| json!([run.stamp, run.units]));
            json!({ "runs": runs.collect::<Vec<_>>() })
        }
    }
}

fn algorithm(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::TokenBucket => "token-bucket",
        Algorithm::FixedWindow(Align::FirstRequest) => "fixed-window",
        Algorithm::FixedWindow(Align::Clock) => "fixed-window, by the clock",
        Algorithm::SlidingWindow => "sliding-window",
        Algorithm::SlidingLog => "sliding-log",
        Algorithm::BucketedWindow => "bucketed-window",
    }
}

async fn key_sight(connection: &Connection, key: &[u8]) -> Result<KeySight, Failure> {
    let ttl = connection.ttl(key).await.map_err(Failure::runtime)?;
    let mut get = protocol::cmd("GET");
    get.arg(key);
    // A key of the open layout is not a string: then its bytes are not shown.
    let value = match connection.command(NodeChoice::Key(key), &get).await {
        Ok(protocol::Value::BulkString(value)) => Some(hex(&value)),
        _ => None,
    };
    let slot = (*connection.mode() == RedisTopology::Cluster).then(|| tidegate_redis::slot(key));
    Ok(KeySight {
        key: shown(key),
        exists: ttl != Ttl::Missing,
        expires_in_ms: match ttl {
            Ttl::In(time) => u64::try_from(time.as_millis()).ok(),
            Ttl::Missing | Ttl::Never => None,
        },
        value,
        slot,
        node: node(connection, slot),
    })
}

/// Returns the master that serves the slot, or the only one.
fn node(connection: &Connection, slot: Option<u16>) -> Option<String> {
    let nodes = connection.nodes();
    let has = |slots: &[std::ops::RangeInclusive<u16>]| {
        slot.is_none_or(|slot| slots.iter().any(|range| range.contains(&slot)))
    };
    let node = nodes.iter().find(|node| has(&node.slots))?;
    Some(node.address.to_string())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
