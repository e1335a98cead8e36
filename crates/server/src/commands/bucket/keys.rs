//! Where a bucket is in Redis.

use super::NamedBucket;
use super::pattern::glob;
use tidegate_policy::config::RedisSettings;
use tidegate_policy::template::band_name;
use tidegate_policy::{Band, Limit, SlotTag};
use tidegate_redis::RedisStore;

/// Where the bucket of a band is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketAddress {
    pub(crate) key: Vec<u8>,
    /// The field, where the key is a hash that others have their buckets in, too.
    pub(crate) field: Option<Vec<u8>>,
}

/// Where the bucket of `band` is.
pub(crate) fn place_of(store: &RedisStore, named: &NamedBucket, band: &Band) -> BucketAddress {
    let (key, field) = store.place(named.bucket.as_bytes(), &band.quota);
    BucketAddress { key, field }
}

/// Patterns, in the words of `SCAN`, that match every key of a limit, and of no other limit.
pub(crate) fn keys_of_all(redis: &RedisSettings, policy: &str, limit: &Limit) -> Vec<String> {
    if limit.template.is_none() {
        return vec![packed(redis, policy, limit)];
    }
    let patterns = limit.shapes().iter();
    let patterns = patterns.filter_map(|band| glob(policy, limit, Some(band_name(band))));
    let mut patterns: Vec<String> = patterns.collect();
    patterns.dedup();
    patterns
}

/// The same for what blocks whoever was refused by a limit, where that has keys of its own: it is packed
/// in every layout.
pub(crate) fn keys_of_blocks(redis: &RedisSettings, policy: &str, limit: &Limit) -> Option<String> {
    let is_apart = limit.block.is_some() && limit.template.is_some();
    is_apart.then(|| packed(redis, policy, limit))
}

fn packed(redis: &RedisSettings, policy: &str, limit: &Limit) -> String {
    let (prefix, name) = (escape_glob(&redis.prefix), &limit.name);
    match redis.tag {
        // No subject holds a brace.
        SlotTag::Subject => format!("{prefix}{{*}}{policy}/{name}"),
        SlotTag::Policy => format!("{prefix}{{{policy}}}{name}/*"),
    }
}

/// Text as it is, in the words of `SCAN` and `ACL`.
pub(crate) fn escape_glob(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
