//! The content of a bucket, as data.
//!
//! It reads the store's state and decides nothing: the units left are those at the time of reading. The same
//! data is the JSON of `tidegate inspect` and of the admin API.

use super::{BucketAddress, NamedBucket, place_of};
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use tidegate::{Algorithm, Align, AnyStore, Store, StoreError, StoreErrorKind, Timestamp};
use tidegate_core::algorithm::TokenBucket;
use tidegate_core::quota::WindowSpan;
use tidegate_core::{Bucket, BucketState, Inspection};
use tidegate_policy::Band;
use tidegate_policy::calendar::with_starts_around;
use tidegate_redis::RedisBuckets;
use tidegate_redis_client::protocol;
use tidegate_redis_client::{Connection, NodeChoice, RedisTopology, Ttl};

/// The report about a bucket.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BucketReport {
    /// Its name.
    pub bucket: String,
    /// The policy of the limit.
    pub policy: String,
    /// The limit.
    pub limit: String,
    /// The key of the limit, with its values.
    pub subject: String,
    /// The unit that the limit counts. Absent if it counts requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// False if the store has no record of the bucket: it is full, or another one is meant.
    pub found: bool,
    /// The reason why there are no bands, if their rate comes from a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// A warning about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The remaining time for which the limit blocks the subject; `None` if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_for_ms: Option<u64>,
    /// The selected bands.
    pub bands: Vec<BandSight>,
    /// The keys in Redis that have its state.
    pub keys: Vec<KeySight>,
}

/// The state of a band. Times are rounded up to milliseconds, as in decisions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BandSight {
    /// The band as it is written.
    pub band: String,
    /// Its label.
    pub label: Option<String>,
    /// Its algorithm.
    pub algorithm: &'static str,
    /// Its capacity.
    pub capacity: u64,
    /// The amount that is left.
    pub remaining: u64,
    /// The amount that it owes below empty; absent if it owes nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub overdrawn: u64,
    /// The length of its period.
    pub period_ms: u64,
    /// The time until a cost of 1 would pass; `None` if never.
    pub retry_after_ms: Option<u64>,
    /// The time until the bucket is full.
    pub reset_ms: u64,
    /// True if it is like a new one.
    pub as_good_as_new: bool,
    /// The store's clock at the time of reading, in microseconds.
    pub at_us: Option<u64>,
    /// The stored state, in its own units.
    pub state: Option<StoredState>,
    /// The key in Redis.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The field, if the key is a hash of many buckets.
    pub field: Option<String>,
}

/// The stored state of a bucket, in its own units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StoredState {
    /// A token bucket.
    #[schemars(title = "token-bucket")]
    Tokens {
        /// The last whole tick before its debt is paid off.
        at: u64,
        /// The debt that is left at that tick.
        fraction: u64,
    },
    /// A fixed window.
    #[schemars(title = "fixed-window")]
    Fixed {
        /// The time at which the window began, in microseconds.
        start: u64,
        /// The units used in it.
        used: u64,
    },
    /// A window of the calendar.
    #[schemars(title = "calendar-window")]
    Calendar {
        /// The time at which the window ends, in microseconds.
        end: u64,
        /// The units used in it.
        used: u64,
        /// The time of the last charge, in microseconds.
        at: u64,
    },
    /// A sliding window.
    #[schemars(title = "sliding-window")]
    Sliding {
        /// The number of the current window.
        index: u64,
        /// The units used in it.
        current: u64,
        /// The units used in the window before it.
        previous: u64,
    },
    /// Requests in flight.
    #[schemars(title = "concurrent")]
    Permits {
        /// The permits of requests in flight.
        held: u64,
        /// The end, in microseconds, and the units of the permits that end by themselves, earliest first.
        timed: Vec<(u64, u64)>,
    },
    /// A sliding log, or a bucketed window.
    #[schemars(title = "sliding-log")]
    Log {
        /// The time stamp and the units of each run of requests.
        runs: Vec<(u64, u64)>,
    },
}

/// The state of a key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeySight {
    /// The key.
    pub key: String,
    /// True if Redis has it.
    pub exists: bool,
    /// The time until Redis expires it; `None` for a key that does not exist, or never expires.
    pub expires_in_ms: Option<u64>,
    /// The bytes of a string value, in hexadecimal.
    pub value: Option<String>,
    /// Its slot in a Cluster.
    pub slot: Option<u16>,
    /// The node that has it.
    pub node: Option<String>,
}

/// Reads every selected band in the store of a server.
pub(crate) async fn look_in(
    store: &AnyStore,
    named: &NamedBucket,
) -> Result<BucketReport, Failure> {
    match store.redis() {
        Some(store) => look(store.buckets(), named).await,
        None => levels(store, named).await,
    }
}

/// Reads every selected band and the block, in any store, and not where a store keeps them.
pub(super) async fn levels(
    store: &impl Store,
    named: &NamedBucket,
) -> Result<BucketReport, Failure> {
    let nowhere = |_: &Band| BucketAddress {
        key: Vec::new(),
        field: None,
    };
    let seen = BandSights::read(store, named, nowhere).await?;
    Ok(BucketReport::of(named, seen, Vec::new()))
}

/// Reads every selected band in Redis.
///
/// # Errors
///
/// [`Failure::Runtime`] if Redis did not answer, or if a value is corrupt: the message then names its key.
pub async fn look(store: &RedisBuckets, named: &NamedBucket) -> Result<BucketReport, Failure> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let place = |band: &Band| {
        let place = place_of(store, named, band);
        if !keys.contains(&place.key) {
            keys.push(place.key.clone());
        }
        place
    };
    let seen = BandSights::read(store, named, place).await?;
    let mut key_sights = Vec::new();
    for key in &keys {
        key_sights.push(key_sight(store.connection(), key).await?);
    }
    Ok(BucketReport::of(named, seen, key_sights))
}

/// The content of a bucket as it was read.
struct BandSights {
    bands: Vec<BandSight>,
    block: Option<BandSight>,
}

impl BandSights {
    /// Reads every selected band and the block, which are at `place`.
    async fn read(
        store: &impl Store,
        named: &NamedBucket,
        mut place: impl FnMut(&Band) -> BucketAddress,
    ) -> Result<Self, Failure> {
        let mut sights = Vec::new();
        let bands = named.bands();
        let count = bands.len();
        for band in bands.into_iter().chain(named.block()) {
            let place = place(band);
            let seen = store.inspect(named.bucket.as_bytes(), &band.quota).await;
            let seen = seen.map_err(|error| failure(&error, &place.key))?;
            sights.push(band_sight(band, seen, &place));
        }
        let block = sights.split_off(count).pop();
        Ok(Self {
            bands: sights,
            block,
        })
    }
}

impl BucketReport {
    fn of(
        named: &NamedBucket,
        BandSights { mut bands, block }: BandSights,
        keys: Vec<KeySight>,
    ) -> Self {
        let limit = named.limit().map(|limit| limit.name.clone());
        let unit = named.limit().and_then(|limit| limit.unit.reported());
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
            unit: unit.map(str::to_owned),
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
    if error.kind() != StoreErrorKind::Corrupt || key.is_empty() {
        return Failure::runtime(error);
    }
    let key = String::from_utf8_lossy(key);
    Failure::runtime(format!(
        "{error}: `{key}`\n   help: inspect it with redis-cli; `tidegate reset` removes it"
    ))
}

fn band_sight(band: &Band, seen: Option<Inspection>, place: &BucketAddress) -> BandSight {
    let state = seen.as_ref().map(|seen| StoredState::of(&seen.bucket));
    let at = seen.as_ref().map(|seen| seen.at);
    let now = at.unwrap_or_default();
    let quota = &at.map_or(band.quota, |at| with_starts_around(&band.quota, at));
    let window = quota.window_at(now).map(WindowSpan::length_us);
    let mut bucket = seen.map_or_else(|| Bucket::new(quota), |seen| seen.bucket);
    if bucket.is_beyond_reach(quota, now) {
        // A decision would do the same.
        bucket.clamp_to_now(quota, now);
    }
    let reading = bucket.reading(quota, now);
    BandSight {
        band: band.text.clone(),
        label: band.label.clone(),
        algorithm: algorithm(quota.algorithm()),
        capacity: quota.capacity(),
        remaining: reading.remaining,
        overdrawn: reading.overdrawn,
        period_ms: window.unwrap_or(quota.period_us()).div_ceil(1_000),
        retry_after_ms: bucket.wait(quota, 1, now).as_millis(),
        reset_ms: reading.reset_us.div_ceil(1_000),
        as_good_as_new: reading.reset_us == 0,
        at_us: at.map(Timestamp::as_micros),
        state,
        key: shown(&place.key),
        field: place.field.as_deref().map(shown),
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl StoredState {
    /// Reads the state of `bucket`.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn of(bucket: &Bucket) -> Self {
        match bucket {
            Bucket::Tokens(it) => Self::of_tokens(it),
            Bucket::Lent(it) => Self::of_tokens(&it.tokens),
            Bucket::Fixed(it) => Self::Fixed {
                start: it.start,
                used: it.used,
            },
            Bucket::Calendar(it) => Self::Calendar {
                end: it.end,
                used: it.used,
                at: it.at,
            },
            Bucket::Sliding(it) => Self::Sliding {
                index: it.index,
                current: it.current,
                previous: it.previous,
            },
            Bucket::Log(it) => Self::Log {
                runs: it.runs().map(|run| (run.stamp, run.units)).collect(),
            },
            Bucket::Permits(it) => Self::Permits {
                held: it.held(),
                timed: it
                    .timed(Timestamp::default())
                    .map(|it| (it.end.as_micros(), it.units))
                    .collect(),
            },
        }
    }

    fn of_tokens(bucket: &TokenBucket) -> Self {
        Self::Tokens {
            at: bucket.at,
            fraction: bucket.fraction,
        }
    }
}

impl fmt::Display for StoredState {
    /// Writes the state as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}

#[deny(clippy::wildcard_enum_match_arm)]
fn algorithm(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::TokenBucket => "token-bucket",
        Algorithm::FixedWindow(Align::FirstRequest) => "fixed-window",
        Algorithm::FixedWindow(Align::Clock) => "fixed-window, by the clock",
        Algorithm::SlidingWindow => "sliding-window",
        Algorithm::SlidingLog => "sliding-log",
        Algorithm::BucketedWindow => "bucketed-window",
        Algorithm::CalendarWindow => "fixed-window, by the calendar",
        Algorithm::Concurrent => "concurrent",
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
    let slot =
        (*connection.mode() == RedisTopology::Cluster).then(|| tidegate_redis_client::slot(key));
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
