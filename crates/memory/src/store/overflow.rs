//! Where no place is left: the bucket that all new keys of a limit share.
//!
//! It is always let in, in a shard of its own. A key that finds a place later begins with a copy of
//! it while it still matters, for what the key used there counts.

use super::MemoryStore;
use crate::records::{Entrance, OVERFLOW, Shard};
use crate::word;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_core::{Ask, Bucket, Clock, Meter, Outcome, Timestamp, step};

impl<C: Clock> MemoryStore<C> {
    /// Where no place is left: the bucket that all new keys of the limit share. The caller holds the
    /// place that the key does not have.
    #[cold]
    pub(super) fn decide_overflow(&self, ask: &Ask<'_>, now: Timestamp) -> Outcome {
        let mut shard = self.records.lock(OVERFLOW);
        let mut bucket = self.take_overflow(&mut shard, ask, now);
        let now = self.settle([(&mut bucket, ask.quota)], now);
        let outcome = step::decide_one(ask.quota, &mut bucket, ask.op, now);
        self.put_overflow(&mut shard, ask, bucket, now);
        outcome
    }

    /// Takes out the limit's overflow bucket, to be put back under the same lock; counts that it was
    /// needed.
    pub(super) fn take_overflow(&self, shard: &mut Shard, ask: &Ask<'_>, now: Timestamp) -> Bucket {
        self.overflowed.fetch_add(1, Relaxed);
        let fingerprint = self.overflow_of(ask);
        shard.has_room(fingerprint, Entrance::Always, now);
        shard.take(fingerprint, ask.quota, now)
    }

    pub(super) fn put_overflow(
        &self,
        shard: &mut Shard,
        ask: &Ask<'_>,
        bucket: Bucket,
        now: Timestamp,
    ) {
        let until = bucket.fresh_at(ask.quota).as_micros();
        self.overflow_until.fetch_max(until, Relaxed);
        shard.put(self.overflow_of(ask), bucket, ask.quota, now);
    }

    /// The fingerprint of the limit's overflow bucket.
    pub(super) fn overflow_of(&self, ask: &Ask<'_>) -> u64 {
        let scope = ask.bucket.get(..ask.scope).unwrap_or_default();
        self.fingerprint(scope, ask.quota)
    }

    /// Whether some overflow bucket still matters. A key that then finds room may have used it, so
    /// it begins with a copy of it: it is in no case owed more. It keeps the copy even if that
    /// refuses it, so that it need not wait until nobody uses the overflow bucket any more.
    #[inline]
    pub(super) fn is_overflowing(&self, now: Timestamp) -> bool {
        now.as_micros() < self.overflow_until.load(Relaxed)
    }

    /// The word that a new key begins with. The caller holds its stripe.
    pub(super) fn first_word(&self, ask: &Ask<'_>, now: Timestamp) -> u64 {
        if self.is_overflowing(now) {
            let overflow = self.records.lock(OVERFLOW);
            let bucket = overflow.copy(self.overflow_of(ask), ask.quota, now);
            if bucket.fresh_at(ask.quota) > now {
                return self.pack(&bucket, ask.quota);
            }
        }
        word::fresh(self.since_epoch(now))
    }
}
