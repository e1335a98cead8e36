//! The location of a bucket in Redis.

use super::NamedBucket;
use super::pattern::glob;
use tidegate_policy::store::RedisSettings;
use tidegate_policy::template::band_name;
use tidegate_policy::{Band, Limit, SlotTag};
use tidegate_redis::RedisBuckets;

/// The location of a band's bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketAddress {
    pub(crate) key: Vec<u8>,
    /// The field, if the key is a hash that contains other buckets, too.
    pub(crate) field: Option<Vec<u8>>,
}

/// Returns the location of the bucket of `band`.
pub(crate) fn place_of(store: &RedisBuckets, named: &NamedBucket, band: &Band) -> BucketAddress {
    let (key, field) = store.place(named.bucket.as_bytes(), &band.quota);
    BucketAddress { key, field }
}

/// Returns patterns, in the syntax of `SCAN`, that match every key of a limit, and of no other limit.
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

/// Returns a pattern that matches the keys of the blocks of a limit, if they have separate keys. Blocks
/// have the packed layout in every store.
pub(crate) fn keys_of_blocks(redis: &RedisSettings, policy: &str, limit: &Limit) -> Option<String> {
    let is_apart = limit.block.is_some() && limit.template.is_some();
    is_apart.then(|| packed(redis, policy, limit))
}

fn packed(redis: &RedisSettings, policy: &str, limit: &Limit) -> String {
    let (prefix, name) = (escape_glob(&redis.prefix), &limit.name);
    match redis.tag {
        // No subject contains a brace.
        SlotTag::Subject => format!("{prefix}{{*}}{policy}/{name}"),
        SlotTag::Policy => format!("{prefix}{{{policy}}}{name}/*"),
    }
}

/// Escapes text for the syntax of `SCAN` and `ACL`.
pub fn escape_glob(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
