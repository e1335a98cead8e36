use super::{CachedAnswer, DenyCache, RefusedBucket};
use crate::request::RedisKey;
use std::time::Duration;
use tidegate_core::{Algorithm, Align, Bucket, BucketState, Outcome, Quota, Timestamp, Wait};
use tokio::time::Instant;

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn key(name: &str) -> RedisKey {
    RedisKey::from_slice(name.as_bytes())
}

/// Empties a bucket, refuses one more unit, and caches the refusal.
fn remember(cache: &DenyCache, key: &RedisKey, quota: &Quota, sent: Instant) -> (Bucket, Outcome) {
    let mut bucket = Bucket::new(quota);
    bucket.charge(quota, quota.capacity(), AT);
    let outcome = Outcome::of(bucket.wait(quota, 1, AT), bucket.reading(quota, AT));
    let refused = RefusedBucket {
        key,
        quota,
        cost: 1,
        outcome,
        bucket: &bucket,
    };
    cache.remember(&refused, AT, sent);
    (bucket, outcome)
}

fn refuses(cache: &DenyCache, key: &RedisKey, quota: &Quota, now: Instant) -> Option<Outcome> {
    match cache.ask(key, quota, 1, now) {
        CachedAnswer::Refuses(outcome, _) => Some(outcome),
        CachedAnswer::Reads(..) | CachedAnswer::Nothing => None,
    }
}

#[test]
fn the_cache_refuses_exactly_as_long_as_the_store_would() {
    // 10/s: a unit refills in 100 ms.
    let quota = Quota::new(10, 1_000_000).burst(3).build().unwrap();
    let (cache, name, sent) = (DenyCache::new(100), key("a"), Instant::now());
    let (bucket, _) = remember(&cache, &name, &quota, sent);
    for us in [0, 1, 50_000, 99_999] {
        let outcome = refuses(&cache, &name, &quota, sent + Duration::from_micros(us));
        let wait = bucket.wait(&quota, 1, AT.plus(us));
        assert_eq!(outcome.map(|it| it.wait), Some(wait), "after {us} µs");
    }
    let back = sent + Duration::from_millis(100);
    assert!(refuses(&cache, &name, &quota, back).is_none());
}

#[test]
fn a_reset_acts_within_a_second_and_a_refund_within_50_ms() {
    let slow = Quota::new(1, 3_600_000_000);
    let sent = Instant::now();
    for (refundable, life_ms) in [(false, 1_000), (true, 50)] {
        let quota = slow.refundable(refundable).build().unwrap();
        let (cache, name) = (DenyCache::new(100), key("a"));
        remember(&cache, &name, &quota, sent);
        let after = |ms| sent + Duration::from_millis(ms);
        assert!(refuses(&cache, &name, &quota, after(life_ms - 1)).is_some());
        assert!(refuses(&cache, &name, &quota, after(life_ms)).is_none());
    }
}

#[test]
fn cached_refusals_of_shared_buckets_last_50_ms_or_until_a_local_change() {
    let hour = Quota::new(3, 3_600_000_000);
    let overdrawn = hour.overdraft(1).build().unwrap();
    let window = hour.algorithm(Algorithm::FixedWindow(Align::Clock));
    let window = window.overdraft(1).build().unwrap();
    let log = hour.algorithm(Algorithm::SlidingLog).build().unwrap();
    let (hour, sent) = (hour.build().unwrap(), Instant::now());
    let after = |ms| sent + Duration::from_millis(ms);
    for (quota, taken, is_firm) in [
        (hour, 3, true),
        (hour, 2, false),
        (hour, 0, false),
        (overdrawn, 3, false),
        (window, 3, true),
        (window, 2, false),
        (log, 3, true),
        (log, 2, false),
        (log, 0, false),
    ] {
        let (cache, name) = (DenyCache::new(100), key("a"));
        let mut bucket = Bucket::new(&quota);
        if taken > 0 {
            bucket.charge(&quota, taken, AT);
        }
        let refused = RefusedBucket {
            key: &name,
            quota: &quota,
            cost: 1,
            outcome: Outcome::of(bucket.wait(&quota, 1, AT), bucket.reading(&quota, AT)),
            bucket: &bucket,
        };
        cache.remember(&refused, AT, sent);
        let left = |ms| match cache.ask(&name, &quota, 1, after(ms)) {
            CachedAnswer::Refuses(outcome, _) | CachedAnswer::Reads(outcome, _) => {
                Some(outcome.remaining)
            }
            CachedAnswer::Nothing => None,
        };
        assert_eq!(left(49), Some(3 - taken), "{quota:?}");
        assert_eq!(left(50).is_some(), is_firm, "{quota:?}");
        cache.invalidate(&name, &quota, sent);
        assert_eq!(left(0).is_some(), is_firm, "{quota:?}");
    }
}

#[test]
fn a_larger_cost_waits_longer_and_a_cost_that_never_fits_never_does() {
    let quota = Quota::new(10, 1_000_000).burst(3).build().unwrap();
    let (cache, name, sent) = (DenyCache::new(100), key("a"), Instant::now());
    remember(&cache, &name, &quota, sent);
    for (cost, wait) in [
        (1, Wait::from_micros(100_000)),
        (3, Wait::from_micros(300_000)),
        (4, Wait::NEVER),
    ] {
        match cache.ask(&name, &quota, cost, sent) {
            CachedAnswer::Refuses(outcome, _) => assert_eq!(outcome.wait, wait, "{cost}"),
            CachedAnswer::Reads(..) | CachedAnswer::Nothing => panic!("{cost} does not fit"),
        }
    }
}

#[test]
fn a_raised_limit_counts_at_once() {
    let quota = |burst| Quota::new(10, 1_000_000).burst(burst).build().unwrap();
    let (cache, name, sent) = (DenyCache::new(100), key("a"), Instant::now());
    remember(&cache, &name, &quota(3), sent);
    assert!(refuses(&cache, &name, &quota(3), sent).is_some());
    assert!(refuses(&cache, &name, &quota(4), sent).is_none());
}

#[test]
fn for_a_log_only_the_same_request_is_answered_from_the_cache() {
    let log = |amount| {
        let quota = Quota::new(amount, 1_000_000).algorithm(Algorithm::SlidingLog);
        quota.build().unwrap()
    };
    let (cache, name, sent) = (DenyCache::new(100), key("a"), Instant::now());
    let (_, outcome) = remember(&cache, &name, &log(3), sent);
    let later = sent + Duration::from_micros(400);
    let known = refuses(&cache, &name, &log(3), later).unwrap();
    assert_eq!(known.reset_us, outcome.reset_us - 400);
    assert!(refuses(&cache, &name, &log(4), later).is_none());
    assert!(matches!(
        cache.ask(&name, &log(3), 2, later),
        CachedAnswer::Nothing
    ));
}

#[test]
fn the_cache_refuses_only_known_buckets_and_asks_again_after_eviction() {
    let quota = Quota::new(1, 3_600_000_000).build().unwrap();
    let other = Quota::new(1, 60_000_000).build().unwrap();
    let (cache, name, sent) = (DenyCache::new(100), key("a"), Instant::now());
    assert!(cache.is_empty());
    remember(&cache, &name, &quota, sent);
    assert!(!cache.is_empty());
    assert!(refuses(&cache, &key("b"), &quota, sent).is_none());
    assert!(refuses(&cache, &name, &other, sent).is_none());
    cache.forget(&name, &quota);
    assert!(refuses(&cache, &name, &quota, sent).is_none() && cache.is_empty());
    remember(&cache, &name, &quota, sent);
    cache.clear();
    assert!(refuses(&cache, &name, &quota, sent).is_none() && cache.is_empty());
}

#[test]
fn unique_keys_cannot_fill_the_cache() {
    let quota = Quota::new(1, 3_600_000_000).build().unwrap();
    let (cache, sent) = (DenyCache::new(64), Instant::now());
    for nth in 0..10_000 {
        remember(&cache, &key(&nth.to_string()), &quota, sent);
    }
    let len = cache.len.load(std::sync::atomic::Ordering::Relaxed);
    assert!((1..=64).contains(&len), "{len}");
    let held: usize = cache.shards.iter().map(|shard| shard.lock().len()).sum();
    assert_eq!(held, len);

    let off = DenyCache::new(0);
    remember(&off, &key("a"), &quota, sent);
    assert!(off.is_empty());
}
