//! Deny cache: a "no" that Redis would give as well, given here.
//!
//! Nothing but time and a reset makes a bucket that refuses refuse less, and a refusal writes
//! nothing (but for blocks, which `refuse` looks after). So the state that refused tells for how long it goes on refusing: at least until the
//! instant *before the question was sent* plus the wait, for Redis decided after that. A "yes" is
//! never remembered.
//!
//! What is told of a refusal is true of all its buckets, of those with room as well; so they are
//! remembered too, and where nothing is known of one, Redis is asked. A bucket without a unit left is
//! as it was until time brings one back: nobody can take from it. Such an entry is believed for a
//! second at most, so that a reset (an operator's `DEL` too) acts within a second. Any other may be
//! changed by somebody else: it has units left, charges can be given back to it, or it has an overdraft
//! and is no fixed window, which reads the same however deep it is. It is
//! believed for 50 ms, and no longer than until this process asks for something of the bucket.
//!
//! What is remembered is the state and not the verdict: it is asked with the quota and cost of the
//! question at hand, so that a changed policy needs no clearing.

use crate::request::RedisKey;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Bucket, BucketState, Outcome, Quota, Timestamp, Wait};
use tokio::time::Instant;

/// How long an entry is believed.
const LIFE_MAX: Duration = Duration::from_secs(1);

/// How long an entry is believed of a bucket that others may change meanwhile.
const LIFE_LOOSE: Duration = Duration::from_millis(50);

const SHARDS: usize = 16;

/// Refused buckets, as they were last seen. Bounded.
#[derive(Debug)]
pub(crate) struct DenyCache {
    shards: [Mutex<HashMap<u64, DenyEntry, RandomState>>; SHARDS],
    /// Entries in all shards, so that a cache that is empty costs nothing.
    len: AtomicUsize,
    /// Until when, in microseconds after `born`, any entry is believed that others may change: so that
    /// where there is none, nobody looks for one to forget.
    loose_until: AtomicU64,
    born: Instant,
    max_per_shard: usize,
    hasher: RandomState,
}

#[derive(Clone, Debug)]
struct DenyEntry {
    /// When the question was sent that this answered.
    sent: Instant,
    /// When this is no more believed.
    until: Instant,
    /// The store's instant at which it was seen.
    at: Timestamp,
    seen: CachedState,
}

/// What was seen of a bucket.
#[derive(Clone, Debug)]
enum CachedState {
    State(Bucket),
    Log(SeenLog),
}

/// A log may be large; only what it said is kept, which holds until a unit comes back.
#[derive(Clone, Debug)]
struct SeenLog {
    quota: Quota,
    /// What was asked for, and what it said to that.
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

/// What the cache knows of a bucket.
pub(crate) enum CachedAnswer {
    /// Redis would refuse; at the latest at this instant of its.
    Refuses(Outcome, Timestamp),
    /// It did not refuse when last seen; fit to be shown beside another that does.
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

    /// Whether nothing is remembered, so that there is no use asking.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    /// What is known of a bucket that is to give `cost`.
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
            // What it remembers beyond its debt is of no use here.
            Bucket::Lent(lent) => CachedState::State(Bucket::Tokens(lent.tokens)),
            state @ (Bucket::Tokens(_) | Bucket::Fixed(_) | Bucket::Sliding(_)) => {
                CachedState::State(state.clone())
            }
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
                // Whoever is dropped costs Redis one more question.
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

    /// Forgets one bucket that is about to be changed, or just was, unless nobody can change it.
    #[inline]
    pub(crate) fn disturb(&self, key: &RedisKey, quota: &Quota, now: Instant) {
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

    fn hash(&self, key: &RedisKey, quota: &Quota) -> u64 {
        // A state is read by these: under others it would mean something else.
        self.hasher
            .hash_one((key.as_slice(), quota.id(), quota.basis()))
    }

    fn shard(&self, hash: u64) -> Option<&Mutex<HashMap<u64, DenyEntry, RandomState>>> {
        // The map uses the low bits.
        self.shards.get((hash >> 60) as usize % SHARDS)
    }
}

/// For how long a state is believed, from when its question was sent.
fn life(refused: &RefusedBucket<'_>, at: Timestamp) -> Duration {
    let RefusedBucket { quota, bucket, .. } = refused;
    let until = |wait: Wait| wait.as_duration().unwrap_or(LIFE_MAX);
    // A fixed window that is used up reads the same however deep it is.
    let has_depth = quota.overdraft() > 0 && !matches!(bucket, Bucket::Fixed(_));
    let is_out_of_reach = !quota.is_refundable() && !has_depth;
    // Until there is a unit again, nobody takes one.
    let empty = match bucket.wait(quota, 1, at) {
        wait if is_out_of_reach && !wait.is_none() => until(wait).min(LIFE_MAX),
        _ => Duration::ZERO,
    };
    let life = empty.max(LIFE_LOOSE);
    match bucket {
        Bucket::Log(_) => life.min(until(next(refused, at))),
        Bucket::Tokens(_) | Bucket::Lent(_) | Bucket::Fixed(_) | Bucket::Sliding(_) => life,
    }
}

/// When a unit comes back.
fn next(refused: &RefusedBucket<'_>, at: Timestamp) -> Wait {
    let one_more = refused.outcome.remaining.saturating_add(1);
    refused.bucket.wait(refused.quota, one_more, at)
}

impl DenyEntry {
    fn ask(&self, quota: &Quota, cost: u64, now: Instant) -> CachedAnswer {
        let passed_us = now.saturating_duration_since(self.sent).as_micros();
        let passed_us = u64::try_from(passed_us).unwrap_or(u64::MAX);
        // Not earlier than the store's present instant, for it decided after `sent`.
        let latest = self.at.plus(passed_us);
        let outcome = match &self.seen {
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
    /// What it says `passed_us` later, before a unit has come back.
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
