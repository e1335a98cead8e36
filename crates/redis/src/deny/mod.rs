//! Deny cache: a "no" that Redis would give as well, given here.
//!
//! Nothing but time and a reset makes a bucket that refuses refuse less, and a refusal writes
//! nothing (but for blocks, which `refuse` looks after). So the state that refused tells for how long it goes on refusing: at least until the
//! instant *before the question was sent* plus the wait, for Redis decided after that. A "yes" is
//! never remembered.
//!
//! An entry is believed for a second at most, so that a reset (an operator's `DEL` too) acts within
//! a second, and for 50 ms where charges can be given back. What is remembered is the state and not
//! the verdict: it is asked with the quota and cost of the question at hand, so that a changed
//! policy needs no clearing.

use crate::request::Key;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Bucket, Meter, Outcome, Quota, Timestamp, Wait};
use tokio::time::Instant;

/// How long an entry is believed.
const LIFE_MAX: Duration = Duration::from_secs(1);

/// How long an entry is believed of a bucket that charges can be given back to.
const LIFE_REFUNDABLE: Duration = Duration::from_millis(50);

const SHARDS: usize = 16;

/// Refused buckets, as they were last seen. Bounded.
#[derive(Debug)]
pub(crate) struct DenyCache {
    shards: [Mutex<HashMap<u64, Entry, RandomState>>; SHARDS],
    /// Entries in all shards, so that a cache that is empty costs nothing.
    len: AtomicUsize,
    max_per_shard: usize,
    hasher: RandomState,
}

#[derive(Clone, Debug)]
struct Entry {
    /// When the question was sent that this answered.
    sent: Instant,
    /// When this is no more believed.
    until: Instant,
    /// The store's instant at which it was seen.
    at: Timestamp,
    seen: Seen,
}

/// What was seen of a bucket.
#[derive(Clone, Debug)]
enum Seen {
    State(Bucket),
    /// A log may be large; only what it said is kept.
    Verdict {
        quota: Quota,
        cost: u64,
        outcome: Outcome,
    },
}

/// A bucket that took part in a request that was refused.
pub(crate) struct Refused<'a> {
    pub(crate) key: &'a Key,
    pub(crate) quota: &'a Quota,
    pub(crate) cost: u64,
    pub(crate) outcome: Outcome,
    pub(crate) bucket: &'a Bucket,
}

/// What the cache knows of a bucket.
pub(crate) enum Known {
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
            max_per_shard: max.div_ceil(SHARDS),
            hasher: RandomState::default(),
        }
    }

    /// Whether nothing is remembered, so that there is no use asking.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    /// What is known of a bucket that is to give `cost`.
    pub(crate) fn ask(&self, key: &Key, quota: &Quota, cost: u64, now: Instant) -> Known {
        let hash = self.hash(key, quota);
        let Some(shard) = self.shard(hash) else {
            return Known::Nothing;
        };
        let entries = shard.lock();
        match entries.get(&hash).filter(|entry| now < entry.until) {
            Some(entry) => entry.ask(quota, cost, now),
            None => Known::Nothing,
        }
    }

    /// Remembers a bucket of a refused request, which was sent at `sent` and decided at `at`.
    pub(crate) fn remember(&self, refused: &Refused<'_>, at: Timestamp, sent: Instant) {
        if self.max_per_shard == 0 {
            return;
        }
        let life = life(refused);
        let seen = match refused.bucket {
            Bucket::Log(_) if refused.outcome.is_allowed() => return,
            Bucket::Log(_) => Seen::Verdict {
                quota: *refused.quota,
                cost: refused.cost,
                outcome: refused.outcome,
            },
            // What it remembers beyond its debt is of no use here.
            Bucket::Lent(lent) => Seen::State(Bucket::Tokens(lent.tokens)),
            state => Seen::State(state.clone()),
        };
        let until = sent.checked_add(life).unwrap_or(sent);
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
        let entry = Entry {
            sent,
            until,
            at,
            seen,
        };
        entries.insert(hash, entry);
        self.count(before, entries.len());
    }

    /// Forgets one bucket.
    pub(crate) fn forget(&self, key: &Key, quota: &Quota) {
        let hash = self.hash(key, quota);
        if let Some(shard) = self.shard(hash) {
            let mut entries = shard.lock();
            let before = entries.len();
            entries.remove(&hash);
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

    fn hash(&self, key: &Key, quota: &Quota) -> u64 {
        self.hasher.hash_one((key.as_slice(), quota.id()))
    }

    fn shard(&self, hash: u64) -> Option<&Mutex<HashMap<u64, Entry, RandomState>>> {
        // The map uses the low bits.
        self.shards.get((hash >> 60) as usize % SHARDS)
    }
}

/// For how long a state is believed, from when its question was sent.
fn life(refused: &Refused<'_>) -> Duration {
    let most = if refused.quota.is_refundable() {
        LIFE_REFUNDABLE
    } else {
        LIFE_MAX
    };
    match refused.outcome.wait.as_duration() {
        // Beside one that refuses: only to be shown.
        Some(Duration::ZERO) | None => most,
        Some(wait) => wait.min(most),
    }
}

impl Entry {
    fn ask(&self, quota: &Quota, cost: u64, now: Instant) -> Known {
        let passed_us = now.saturating_duration_since(self.sent).as_micros();
        let passed_us = u64::try_from(passed_us).unwrap_or(u64::MAX);
        // Not earlier than the store's present instant, for it decided after `sent`.
        let latest = self.at.plus(passed_us);
        match &self.seen {
            Seen::State(bucket) => {
                let wait = if cost > quota.cost_max() {
                    Wait::NEVER
                } else {
                    bucket.wait(quota, cost, latest)
                };
                let outcome = Outcome::of(wait, bucket.reading(quota, latest));
                if wait.is_none() {
                    Known::Reads(outcome, latest)
                } else {
                    Known::Refuses(outcome, latest)
                }
            }
            Seen::Verdict {
                quota: seen,
                cost: refused,
                outcome,
            } => {
                let left = |us: u64| us.saturating_sub(passed_us);
                let wait = match outcome.wait.as_micros() {
                    Some(us) => Wait::from_micros(left(us)),
                    None => Wait::NEVER,
                };
                if seen != quota || *refused != cost || wait.is_none() {
                    return Known::Nothing;
                }
                let outcome = Outcome {
                    wait,
                    reset_us: left(outcome.reset_us),
                    ..*outcome
                };
                Known::Refuses(outcome, latest)
            }
        }
    }
}

#[cfg(test)]
mod tests;
