//! Overflow buckets, shared by keys for which no slot is left, and the keys that they charged.
//!
//! Each quota of a limit has 64 of them, one for each group of keys. Keys with different quotas, in
//! a band whose numbers a plan sets, share none. An overflow bucket is always admitted. It is
//! dropped, together with the names of the keys that it charged, once it is full again. With its
//! two filters it takes less than 1 KiB, 64 KiB for each quota that overflows. The runs of a log
//! come on top of that, until they are coarsened.

use crate::filter::ChargedKeys;
#[cfg(not(loom))]
use crate::shard::KeptRecord;
use crate::shard::{NewKeyAdmission, RecordUsage, Shard};
use hashbrown::HashTable;
use tidegate_core::{Bucket, BucketState, Outcome, Quota, Timestamp};

/// Number of groups of the keys of a band, by their networks. Keys without a slot share a bucket
/// only within a group.
pub(crate) const GROUPS: u64 = 64;

/// Pause before a limit is noted again: the text is allocated.
const NOTE_PAUSE_US: u64 = 1_000_000;

/// Maximum length of a noted name. Names of limits are shorter, except in stores that are used
/// without a configuration.
const NOTED_BYTES_MAX: usize = 256;

/// Counts of decisions by overflow buckets since the store began.
///
/// A number that grows means that [`max_keys`](crate::MemoryStoreBuilder::max_keys) is too small
/// for the traffic, or that a flood of new keys is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverflowCounts {
    /// Asks that an overflow bucket allowed.
    pub allowed: u64,
    /// Asks that an overflow bucket refused.
    pub refused: u64,
    /// The store's instant of the last decision.
    pub last: Option<Timestamp>,
}

/// A limit that has overflowed, for people to read: it contains no key.
///
/// [`MemoryStore::overflowed`](crate::MemoryStore::overflowed) returns one for logs and alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverflowedLimit {
    /// Name of the limit, the common prefix of its bucket names.
    pub limit: String,
    /// Beginning of the client's address, if the keys of the limit have one: `192.0` or `2001:db8`.
    pub network: Option<String>,
}

/// The overflow buckets of a store, behind one mutex.
#[derive(Debug)]
pub(crate) struct Overflow {
    /// The buckets, by their names.
    buckets: Shard,
    /// Keys charged by each bucket, by the names of the buckets.
    charged: HashTable<(u64, Box<ChargedKeys>)>,
    /// Latest instant of a change.
    changed_at: Timestamp,
    /// Counts of decisions.
    shared: OverflowCounts,
    /// A limit that has overflowed of late, with the instant at which it was noted.
    noted: (Timestamp, OverflowedLimit),
}

impl OverflowCounts {
    /// Returns the number of asks that an overflow bucket decided.
    pub fn total(&self) -> u64 {
        self.allowed.saturating_add(self.refused)
    }
}

impl Overflow {
    /// Creates an empty set of overflow buckets. Beyond `bytes_max` bytes, logs are coarsened.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            buckets: Shard::new(bytes_max),
            charged: HashTable::new(),
            changed_at: Timestamp::from_micros(0),
            shared: OverflowCounts::default(),
            noted: (Timestamp::from_micros(0), OverflowedLimit::default()),
        }
    }

    /// Returns true if something was changed after `now`, so that `now` is outdated: a bucket or a
    /// key that still mattered at `now` may be forgotten.
    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        now < self.changed_at
    }

    /// Takes the overflow bucket `name` out, for the caller to [store](Self::put) again under the
    /// same lock. Creates one if there is none.
    pub(crate) fn take(&mut self, name: u64, quota: &Quota, now: Timestamp) -> Bucket {
        self.changed_at = self.changed_at.max(now);
        self.buckets.has_room(name, NewKeyAdmission::Always, now);
        // Not in `put`: a request notes its charges in all its buckets before it puts the first one back.
        if self.charged.len() > self.buckets.len() {
            self.charged
                .retain(|(name, _)| self.buckets.contains(*name));
        }
        let bucket = self.buckets.take(name, quota, now);
        if bucket.fresh_at(quota) <= now {
            self.forget_charged(name);
        }
        bucket
    }

    /// Stores an overflow bucket, or drops it if it is full again.
    pub(crate) fn put(&mut self, name: u64, bucket: Bucket, quota: &Quota, now: Timestamp) {
        // Later than in `take` if the clock was read once more in between.
        self.changed_at = self.changed_at.max(now);
        self.buckets.put(name, bucket, quota, now);
        if !self.buckets.contains(name) {
            self.forget_charged(name);
        }
    }

    /// Counts a decision, and notes the limit from time to time.
    pub(crate) fn count(
        &mut self,
        outcome: &Outcome,
        (limit, network): (&[u8], Option<&[u8]>),
        now: Timestamp,
    ) {
        let is_allowed = u64::from(outcome.is_allowed());
        self.shared.allowed = self.shared.allowed.saturating_add(is_allowed);
        self.shared.refused = self.shared.refused.saturating_add(1 - is_allowed);
        self.shared.last = self.shared.last.max(Some(now));
        if self.noted.0 <= now {
            let text = |bytes: &[u8]| {
                let bytes = bytes.get(..NOTED_BYTES_MAX).unwrap_or(bytes);
                String::from_utf8_lossy(bytes).into_owned()
            };
            let overflowed = OverflowedLimit {
                limit: text(limit),
                network: network.map(text),
            };
            self.noted = (now.plus(NOTE_PAUSE_US), overflowed);
        }
    }

    /// Returns the counts of decisions.
    pub(crate) fn shared(&self) -> OverflowCounts {
        self.shared
    }

    /// Returns the instant of the last decision, and a limit that overflowed then or up to a second
    /// before.
    pub(crate) fn overflowed(&self) -> Option<(Timestamp, &OverflowedLimit)> {
        self.shared.last.map(|last| (last, &self.noted.1))
    }

    /// Remembers that `key` was charged in the bucket, which the caller stores next.
    pub(crate) fn note_charge(
        &mut self,
        (name, key): (u64, u64),
        bucket: &Bucket,
        quota: &Quota,
        now: Timestamp,
    ) {
        let fresh_at = bucket.fresh_at(quota);
        if fresh_at > now {
            let (_, filter) = self
                .charged
                .entry(name, |(other, _)| *other == name, |(name, _)| *name)
                .or_insert_with(|| (name, Box::new(ChargedKeys::new())))
                .into_mut();
            filter.insert(key, (now, fresh_at));
        }
    }

    /// Returns a copy of the overflow bucket, as the first state of a key that was charged in it.
    /// `None` if the key was not, or if nothing of the bucket matters.
    pub(crate) fn copy(
        &self,
        (name, key): (u64, u64),
        quota: &Quota,
        now: Timestamp,
    ) -> Option<Bucket> {
        let (_, filter) = self.charged.find(name, |(other, _)| *other == name)?;
        if !filter.contains(key, now) {
            return None;
        }
        self.buckets.copy(name, quota, now)
    }

    /// Returns the names of all overflow buckets.
    #[cfg(not(loom))]
    pub(crate) fn names(&self) -> Vec<u64> {
        self.buckets.fingerprints()
    }

    /// Returns an overflow bucket and the keys that it charged, for a snapshot, if it still matters.
    #[cfg(not(loom))]
    pub(crate) fn to_keep(
        &self,
        name: u64,
        now: Timestamp,
    ) -> Option<(KeptRecord, Option<ChargedKeys>)> {
        let kept = self.buckets.to_keep(name, now)?;
        let charged = self.charged.find(name, |(other, _)| *other == name);
        Some((kept, charged.map(|(_, keys)| keys.as_ref().clone())))
    }

    /// Stores an overflow bucket of a snapshot. Returns false if it is invalid.
    #[cfg(not(loom))]
    pub(crate) fn restore(
        &mut self,
        kept: KeptRecord,
        charged: Option<ChargedKeys>,
        now: Timestamp,
    ) -> bool {
        let name = kept.fingerprint;
        let is_restored = self.buckets.restore(kept, NewKeyAdmission::Always, now);
        if let Some(charged) = charged.filter(|_| is_restored) {
            self.forget_charged(name);
            let entry = (name, Box::new(charged));
            self.charged.insert_unique(name, entry, |(name, _)| *name);
        }
        is_restored
    }

    /// Returns the usage at `now`, with the filters.
    pub(crate) fn usage(&self, now: Timestamp) -> RecordUsage {
        let usage = self.buckets.usage(now);
        // A hash table takes up to twice the size of its entries.
        let filter = size_of::<ChargedKeys>() + 2 * size_of::<(u64, Box<ChargedKeys>)>();
        let filters = self.charged.len().saturating_mul(filter);
        RecordUsage {
            bytes: usage.bytes.saturating_add(filters),
            ..usage
        }
    }

    /// Forgets the keys that the bucket `name` has charged.
    fn forget_charged(&mut self, name: u64) {
        if let Ok(entry) = self.charged.find_entry(name, |(other, _)| *other == name) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Overflow;
    use tidegate_core::{Quota, Timestamp};

    /// A bucket is written at a later instant than it was read at, if the clock had to be read
    /// again.
    #[test]
    fn lateness_is_judged_by_the_instant_of_the_change() {
        let quota = Quota::new(10, 1_000).build().unwrap();
        let at = Timestamp::from_micros;
        let mut overflow = Overflow::new(1 << 20);
        let bucket = overflow.take(1, &quota, at(100));
        overflow.put(1, bucket, &quota, at(200));
        assert!(overflow.is_late(at(150)));
        assert!(!overflow.is_late(at(200)));
    }
}
