//! Moves between words and records, when a quota changes so that its buckets need the other form.
//!
//! A key of a token bucket, a fixed window or a calendar window has a state in at most one of the two places. A
//! request that finds it in neither creates one under the key's stripe, after it has searched the
//! other place under it. So a bucket follows its quota and never starts from zero, regardless of
//! which version of a policy comes first, and even while requests of both are in flight.

use super::MemoryStore;
use crate::records::Shard;
use crate::sync::MutexGuard;
use crate::table::SlotIndex;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use tidegate_core::algorithm::token_bucket::CreditCount;
use tidegate_core::quota::Basis;
use tidegate_core::{Algorithm, Bucket, BucketState, Clock, Quota, Timestamp};

/// Location of a bucket that was searched among the records.
pub(super) enum BucketLocation {
    /// It has a slot now.
    Word(SlotIndex),
    /// There is no slot for it: it stays where it is.
    Record,
    /// Nowhere.
    Nowhere,
}

/// Returns true if buckets of a quota like this one may be words, or may have been.
pub(super) fn can_move(quota: &Quota) -> bool {
    matches!(
        quota.algorithm(),
        Algorithm::TokenBucket | Algorithm::FixedWindow(_) | Algorithm::CalendarWindow
    )
}

impl<C: Clock> MemoryStore<C> {
    /// Returns true if any record can be of a key that is to be a word. The holder of the key's
    /// stripe sees it in time.
    #[inline]
    pub(super) fn has_movable(&self) -> bool {
        self.movable.load(Relaxed) != 0
    }

    /// Takes the key's word, if it has one, over into its shard. The caller holds the key's stripe.
    pub(super) fn fetch_word(
        &self,
        stripe: &mut MutexGuard<'_, u64>,
        shard: &mut Shard,
        (fingerprint, quota): (u64, &Quota),
    ) {
        if !self.has_movable() {
            self.movable.store(1, Relaxed);
        }
        if shard.contains(fingerprint) {
            return;
        }
        if self.table.find(fingerprint).is_none() {
            return;
        }
        let now = self.clock.now();
        let instant = self.since_epoch(now);
        // Before the word is gone, so that a snapshot that misses it sees this.
        self.movable.fetch_add(1, AcqRel);
        if let Some(word) = self.table.vacate(stripe, fingerprint, instant)
            && let Some(mut bucket) = self.unpack(word, quota).adapted(Basis::PLAIN, quota, now)
        {
            // A word has no credit count.
            match &mut bucket {
                Bucket::Tokens(tokens) if quota.is_refundable() => {
                    tokens.credits = CreditCount::unknown(now);
                }
                Bucket::Lent(lent) => lent.tokens.credits = CreditCount::unknown(now),
                Bucket::Tokens(_)
                | Bucket::Fixed(_)
                | Bucket::Calendar(_)
                | Bucket::Sliding(_)
                | Bucket::Log(_)
                | Bucket::Permits(_) => {}
            }
            bucket.clamp_to_now(quota, now);
            shard.put(fingerprint, bucket, quota, now);
        }
    }

    /// Takes the key's record, if it has one, over into a word. The caller holds the key's stripe, and
    /// the key has no slot.
    pub(super) fn fetch_record(
        &self,
        stripe: &mut MutexGuard<'_, u64>,
        (fingerprint, quota): (u64, &Quota),
    ) -> BucketLocation {
        let mut shard = self.records.lock(self.records.shard_of(fingerprint));
        if !shard.contains(fingerprint) {
            return BucketLocation::Nowhere;
        }
        let now = self.clock.now();
        let Some(mut bucket) = shard.read(fingerprint, quota, now) else {
            shard.forget(fingerprint, now);
            return BucketLocation::Nowhere;
        };
        bucket.clamp_to_now(quota, now);
        let (word, instant) = (self.pack(&bucket, quota), self.since_epoch(now));
        match self.table.claim(stripe, fingerprint, word, instant) {
            Ok((place, _)) => {
                self.moved_back.fetch_add(1, AcqRel);
                shard.forget(fingerprint, now);
                BucketLocation::Word(place)
            }
            Err(_) => BucketLocation::Record,
        }
    }

    /// Returns the state of a key as `quota` reads it, from either place.
    pub(super) fn kept(&self, fingerprint: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let word = || {
            let place = self.table.find(fingerprint).filter(|_| can_move(quota))?;
            let word = self.table.load(place, fingerprint).ok()?;
            self.unpack(word, quota).adapted(Basis::PLAIN, quota, now)
        };
        let record = || {
            let shard = self.records.lock(self.records.shard_of(fingerprint));
            shard.read(fingerprint, quota, now)
        };
        let bucket = if self.is_word(quota, now) {
            word().or_else(record)
        } else {
            record().or_else(word)
        };
        bucket.filter(|bucket| bucket.fresh_at(quota) > now)
    }
}
