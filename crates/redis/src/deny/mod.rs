//! Deny cache: a "no" that Redis would give as well, given here.
//!
//! Only time and a reset make a bucket that refuses refuse less, and a refusal writes nothing (except for
//! blocks, which `refuse` handles). So the state that refused determines how long it keeps refusing: at
//! least until the instant *before the request was sent* plus the wait, because Redis decided after that.
//! A "yes" is never cached.
//!
//! A cached refusal reports all buckets of the request, including those with room. So these are cached
//! too, and if one is missing, Redis decides. A bucket without a unit left stays as it is until time
//! brings one back: no request can take from it. Such an entry is valid for a second at most, so that a
//! reset (an operator's `DEL` too) takes effect within a second. Any other bucket may be changed by other
//! requests: it has units left, charges can be refunded to it, or it has an overdraft and is no fixed
//! window, which reads the same at any depth. Such an entry is valid for 50 ms, and only until this
//! process takes from the bucket.
//!
//! The cache holds the state and not the verdict. The state is evaluated with the quota and cost of the
//! present request, so a changed policy needs no clearing.

pub(crate) mod refuse;

use crate::request::RedisKey;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Bucket, BucketState, Outcome, Quota, Timestamp, Wait};
use tokio::time::Instant;

/// The longest validity of an entry.
const LIFE_MAX: Duration = Duration::from_secs(1);

/// The validity of an entry for a bucket that other requests may change.
const LIFE_LOOSE: Duration = Duration::from_millis(50);

/// The number of shards, each under its own mutex.
const SHARDS: usize = 16;

/// Refused buckets, as they were last seen. Bounded.
#[derive(Debug)]
pub(crate) struct DenyCache {
    shards: [Mutex<HashMap<u64, DenyEntry, RandomState>>; SHARDS],
    /// Entries in all shards, so that a cache that is empty costs nothing.
    len: AtomicUsize,
    /// The end of validity, in microseconds after `born`, of all entries that other requests may change.
    /// While there is none, there is nothing to look for.
    loose_until: AtomicU64,
    born: Instant,
    max_per_shard: usize,
    hasher: RandomState,
}

/// A cached bucket. It is valid until an instant that depends on who may change it.
#[derive(Clone, Debug)]
struct DenyEntry {
    /// The time at which the request was sent.
    sent: Instant,
    /// The end of validity.
    until: Instant,
    /// The store's instant at which it was seen.
    at: Timestamp,
    seen: CachedState,
}

/// The cached state of a bucket.
#[derive(Clone, Debug)]
enum CachedState {
    State(Bucket),
    Log(SeenLog),
}

/// A log may be large, so only its outcome is kept, which is valid until a unit comes back.
#[derive(Clone, Debug)]
struct SeenLog {
    quota: Quota,
    /// The cost of the request, and the outcome.
    cost: u64,
    outcome: Outcome,
    /// When a unit comes back.
    next: Wait,
}

/// A bucket that took part in a request that was refused.
pub(crate) struct RefusedBucket<'a> {
    pub(crate) key: &'a RedisKey,
    pub(crate) quota: &'a Quota,
    pub(crate) cost: u64,
    pub(crate) outcome: Outcome,
    pub(crate) bucket: &'a Bucket,
}

/// The cache's answer for a bucket.
pub(crate) enum CachedAnswer {
    /// Redis would refuse; at the latest at this instant of its.
    Refuses(Outcome, Timestamp),
    /// It did not refuse when last seen. Reported together with another bucket that does.
    Reads(Outcome, Timestamp),
    /// Nothing.
    Nothing,
}

impl DenyCache {
    /// A cache of up to `max` buckets; 0 remembers nothing.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            len: AtomicUsize::new(0),
            loose_until: AtomicU64::new(0),
            born: Instant::now(),
            max_per_shard: max.div_ceil(SHARDS),
            hasher: RandomState::default(),
        }
    }

    /// Returns true if the cache is empty, so that a lookup is useless.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    /// Returns the cached answer of a bucket for `cost` units.
    pub(crate) fn ask(
        &self,
        key: &RedisKey,
        quota: &Quota,
        cost: u64,
        now: Instant,
    ) -> CachedAnswer {
        let hash = self.hash(key, quota);
        let Some(shard) = self.shard(hash) else {
            return CachedAnswer::Nothing;
        };
        let entries = shard.lock();
        match entries.get(&hash).filter(|entry| now < entry.until) {
            Some(entry) => entry.ask(quota, cost, now),
            None => CachedAnswer::Nothing,
        }
    }

    /// Remembers a bucket of a refused request, which was sent at `sent` and decided at `at`.
    pub(crate) fn remember(&self, refused: &RefusedBucket<'_>, at: Timestamp, sent: Instant) {
        if self.max_per_shard == 0 {
            return;
        }
        let seen = match refused.bucket {
            Bucket::Log(_) => CachedState::Log(SeenLog {
                quota: *refused.quota,
                cost: refused.cost,
                outcome: refused.outcome,
                next: next(refused, at),
            }),
            // Only its debt matters here.
            Bucket::Lent(lent) => CachedState::State(Bucket::Tokens(lent.tokens)),
            state @ (Bucket::Tokens(_)
            | Bucket::Fixed(_)
            | Bucket::Calendar(_)
            | Bucket::Sliding(_)
            | Bucket::Permits(_)) => CachedState::State(state.clone()),
        };
        let life = life(refused, at);
        let until = sent.checked_add(life).unwrap_or(sent);
        if life <= LIFE_LOOSE {
            self.loose_until.fetch_max(self.micros(until), Relaxed);
        }
        let hash = self.hash(refused.key, refused.quota);
        let Some(shard) = self.shard(hash) else {
            return;
        };
        let mut entries = shard.lock();
        let before = entries.len();
        if before >= self.max_per_shard && !entries.contains_key(&hash) {
            entries.retain(|_, entry| sent < entry.until);
            if entries.len() >= self.max_per_shard {
                // A dropped entry costs Redis one more call.
                entries.clear();
            }
        }
        let entry = DenyEntry {
            sent,
            until,
            at,
            seen,
        };
        entries.insert(hash, entry);
        self.count(before, entries.len());
    }

    /// Removes a bucket that is about to change, or just changed, unless nothing can change it.
    #[inline]
    pub(crate) fn invalidate(&self, key: &RedisKey, quota: &Quota, now: Instant) {
        if self.micros(now) < self.loose_until.load(Relaxed) {
            self.forget_if(key, quota, |entry| {
                entry.until.saturating_duration_since(entry.sent) <= LIFE_LOOSE
            });
        }
    }

    /// Forgets one bucket.
    pub(crate) fn forget(&self, key: &RedisKey, quota: &Quota) {
        self.forget_if(key, quota, |_| true);
    }

    /// Removes the entry of a bucket if `is_meant` is true for it.
    fn forget_if(&self, key: &RedisKey, quota: &Quota, is_meant: impl Fn(&DenyEntry) -> bool) {
        let hash = self.hash(key, quota);
        if let Some(shard) = self.shard(hash) {
            let mut entries = shard.lock();
            let before = entries.len();
            if entries.get(&hash).is_some_and(is_meant) {
                entries.remove(&hash);
            }
            self.count(before, entries.len());
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let mut entries = shard.lock();
            let before = entries.len();
            entries.clear();
            self.count(before, 0);
        }
    }

    /// Adjusts the total length by the change of one shard.
    fn count(&self, before: usize, after: usize) {
        if after >= before {
            self.len.fetch_add(after - before, Relaxed);
        } else {
            self.len.fetch_sub(before - after, Relaxed);
        }
    }

    /// An instant, in microseconds since this was made.
    fn micros(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.born);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns the hash of a bucket under a quota. A state is only valid under the same band and basis:
    /// under others it would mean something else.
    fn hash(&self, key: &RedisKey, quota: &Quota) -> u64 {
        // A state is read by these: under others it would mean something else.
        self.hasher
            .hash_one((key.as_slice(), quota.id(), quota.basis()))
    }

    /// Returns the shard of a hash.
    fn shard(&self, hash: u64) -> Option<&Mutex<HashMap<u64, DenyEntry, RandomState>>> {
        // The map uses the low bits.
        self.shards.get((hash >> 60) as usize % SHARDS)
    }
}

/// Returns the validity of a state, from the time at which its request was sent.
fn life(refused: &RefusedBucket<'_>, at: Timestamp) -> Duration {
    let RefusedBucket { quota, bucket, .. } = refused;
    let until = |wait: Wait| wait.as_duration().unwrap_or(LIFE_MAX);
    // A fixed window that is used up reads the same however deep it is.
    let is_flat = matches!(bucket, Bucket::Fixed(_) | Bucket::Calendar(_));
    let has_depth = quota.overdraft() > 0 && !is_flat;
    let is_out_of_reach = !quota.is_refundable() && !has_depth;
    // Until a unit comes back, no request takes one.
    let empty = match bucket.wait(quota, 1, at) {
        wait if is_out_of_reach && !wait.is_none() => until(wait).min(LIFE_MAX),
        _ => Duration::ZERO,
    };
    let life = empty.max(LIFE_LOOSE);
    match bucket {
        Bucket::Log(_) => life.min(until(next(refused, at))),
        Bucket::Tokens(_)
        | Bucket::Lent(_)
        | Bucket::Fixed(_)
        | Bucket::Calendar(_)
        | Bucket::Sliding(_)
        | Bucket::Permits(_) => life,
    }
}

/// When a unit comes back.
fn next(refused: &RefusedBucket<'_>, at: Timestamp) -> Wait {
    let one_more = refused.outcome.remaining.saturating_add(1);
    refused.bucket.wait(refused.quota, one_more, at)
}

impl DenyEntry {
    /// Returns the answer for `cost` units at `now`, as the engine computes it from the cached state.
    fn ask(&self, quota: &Quota, cost: u64, now: Instant) -> CachedAnswer {
        let passed_us = now.saturating_duration_since(self.sent).as_micros();
        let passed_us = u64::try_from(passed_us).unwrap_or(u64::MAX);
        // At least the store's present instant, because it decided after `sent`.
        let latest = self.at.plus(passed_us);
        let outcome = match &self.seen {
            // Redis picks the window, or makes it one of other starts.
            CachedState::State(bucket @ Bucket::Calendar(_))
                if quota.is_outside(latest) || bucket.is_beyond_reach(quota, latest) =>
            {
                None
            }
            CachedState::State(bucket) => {
                let wait = match cost {
                    0 => Wait::NONE,
                    cost => bucket.wait(quota, cost, latest),
                };
                Some(Outcome::of(wait, bucket.reading(quota, latest)))
            }
            CachedState::Log(log) => log.ask(quota, cost, passed_us),
        };
        match outcome {
            Some(outcome) if outcome.is_allowed() => CachedAnswer::Reads(outcome, latest),
            Some(outcome) => CachedAnswer::Refuses(outcome, latest),
            None => CachedAnswer::Nothing,
        }
    }
}

impl SeenLog {
    /// Returns the outcome `passed_us` later, before a unit has come back.
    fn ask(&self, quota: &Quota, cost: u64, passed_us: u64) -> Option<Outcome> {
        let mut outcome = self.outcome;
        let wait = match cost {
            _ if self.quota != *quota => return None,
            cost if cost <= outcome.remaining => Wait::NONE,
            cost if cost == outcome.remaining.saturating_add(1) => self.next,
            cost if cost == self.cost => outcome.wait,
            _ => return None,
        };
        let left = |us: u64| us.saturating_sub(passed_us);
        outcome.wait = wait
            .as_micros()
            .map_or(wait, |us| Wait::from_micros(left(us)));
        outcome.reset_us = left(outcome.reset_us);
        Some(outcome)
    }
}

#[cfg(test)]
mod tests;
