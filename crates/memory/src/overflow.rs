//! Overflow buckets: what keys share for which no place is left, and which keys those were.
//!
//! Each quota of a limit has 64 of them, one for each group of keys. Keys whose quotas differ, in a band
//! of which a plan sets the numbers, share none. A bucket is always let in; it is dropped, together with
//! the names of the keys that it charged, once it is as good as new. With its two filters it takes less
//! than 1 KiB, 64 KiB for each quota that overflows. The runs of a log come on top of that, until they are
//! coarsened.

use crate::filter::ChargedKeys;
use crate::records::{Entrance, RecordUsage, Shard};
use hashbrown::HashTable;
use tidegate_core::{Bucket, BucketState, Outcome, Quota, Timestamp};

/// Groups of the keys of a band, by their networks. Keys without a place share only within one.
pub(crate) const GROUPS: u64 = 64;

/// How long to wait before noting a limit again: the text is allocated.
const NOTE_PAUSE_US: u64 = 1_000_000;

/// Names of limits are shorter, but for stores that are used without a configuration.
const NOTED_BYTES_MAX: usize = 256;

/// Decisions of overflow buckets since the store began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Asks that an overflow bucket allowed.
    pub allowed: u64,
    /// Asks that an overflow bucket refused.
    pub refused: u64,
    /// The store's instant of the last one.
    pub last: Option<Timestamp>,
}

/// A limit that has overflowed, for people to read: no key is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overflowed {
    /// The name of the limit, as bucket names begin.
    pub limit: String,
    /// The beginning of the client's address, if the keys of the limit have one: `192.0` or `2001:db8`.
    pub network: Option<String>,
}

/// The overflow buckets.
#[derive(Debug)]
pub(crate) struct Overflow {
    buckets: Shard,
    /// By the names of the buckets.
    charged: HashTable<(u64, Box<ChargedKeys>)>,
    /// The latest instant of a change.
    changed_at: Timestamp,
    shared: Shared,
    /// A limit that has overflowed of late, and when it was noted.
    noted: (Timestamp, Overflowed),
}

impl Shared {
    /// Asks that an overflow bucket decided.
    pub fn total(&self) -> u64 {
        self.allowed.saturating_add(self.refused)
    }
}

impl Overflow {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            buckets: Shard::new(bytes_max),
            charged: HashTable::new(),
            changed_at: Timestamp::from_micros(0),
            shared: Shared::default(),
            noted: (Timestamp::from_micros(0), Overflowed::default()),
        }
    }

    /// Whether something was changed after `now`, which is then not now any more: a bucket or a key may
    /// be forgotten that still mattered at `now`.
    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        now < self.changed_at
    }

    /// Takes the overflow bucket `name` out, to be [put back](Self::put) under the same lock: a new one
    /// where there is none.
    pub(crate) fn take(&mut self, name: u64, quota: &Quota, now: Timestamp) -> Bucket {
        self.changed_at = self.changed_at.max(now);
        self.buckets.has_room(name, Entrance::Always, now);
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

    /// Puts an overflow bucket back, or drops it if it is as good as new.
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
            let overflowed = Overflowed {
                limit: text(limit),
                network: network.map(text),
            };
            self.noted = (now.plus(NOTE_PAUSE_US), overflowed);
        }
    }

    pub(crate) fn shared(&self) -> Shared {
        self.shared
    }

    /// The instant of the last decision, and a limit that overflowed then or up to a second before.
    pub(crate) fn overflowed(&self) -> Option<(Timestamp, &Overflowed)> {
        self.shared.last.map(|last| (last, &self.noted.1))
    }

    /// Remembers that `key` was charged in the bucket that is about to be put back.
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

    /// A copy of the overflow bucket, for a key to begin with that was charged in it; `None` where it
    /// was not, or nothing of it matters.
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

    pub(crate) fn usage(&self, now: Timestamp) -> RecordUsage {
        let usage = self.buckets.usage(now);
        // A hash table takes up to twice what is in it.
        let filter = size_of::<ChargedKeys>() + 2 * size_of::<(u64, Box<ChargedKeys>)>();
        let filters = self.charged.len().saturating_mul(filter);
        RecordUsage {
            bytes: usage.bytes.saturating_add(filters),
            ..usage
        }
    }

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

    /// A bucket is put back at a later instant than it was taken at, if the clock had to be read again.
    #[test]
    fn a_change_is_late_by_the_instant_at_which_it_was_made() {
        let quota = Quota::new(10, 1_000).build().unwrap();
        let at = Timestamp::from_micros;
        let mut overflow = Overflow::new(1 << 20);
        let bucket = overflow.take(1, &quota, at(100));
        overflow.put(1, bucket, &quota, at(200));
        assert!(overflow.is_late(at(150)));
        assert!(!overflow.is_late(at(200)));
    }
}
