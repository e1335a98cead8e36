//! States that do not fit a word: sliding windows and logs, refundable buckets, coarse ticks.
//!
//! Shards of a hash table, each under a mutex. Memory is counted in bytes. A shard that has no room
//! for a new key drops what is as good as new; if nothing is, the key is turned away to an
//! overflow bucket. A log that grows while its shard is full is coarsened.

use crate::overflow::Overflow;
use crate::sync::{Mutex, MutexGuard};
use hashbrown::HashTable;
use tidegate_core::quota::Basis;
use tidegate_core::{Bucket, BucketState, Quota, Timestamp};

const SHARDS: usize = 64;

/// What a shard may take at least: a few dozen records.
const SHARD_BYTES_MIN: usize = 4096;

/// What a log is coarsened to when there is no more room.
const RUNS_WHEN_FULL: usize = 32;

/// What a log is coarsened to when there has been no more room for long.
const RUNS_WHEN_OVERFULL: usize = 4;

/// What an entry costs apart from a log's own memory. A hash table doubles when it is seven eighths
/// full, so that an entry takes up to twice its own size.
const ENTRY_BYTES: usize = 2 * size_of::<RecordEntry>();

/// How long to wait before sweeping a full shard again that had little to drop.
const SWEEP_PAUSE_US: u64 = 100_000;

/// The records.
#[derive(Debug)]
pub struct Records {
    shards: Box<[Mutex<Shard>]>,
    /// Locked after all shards, so that a thread that holds the place where a key would have been may
    /// lock it as well.
    overflow: Box<Mutex<Overflow>>,
}

/// A part of the records.
#[derive(Debug, Default)]
pub struct Shard {
    entries: HashTable<RecordEntry>,
    /// What the entries take, logs included.
    bytes: usize,
    /// What they may take.
    bytes_max: usize,
    /// Nothing here is as good as new before this instant.
    soonest: Timestamp,
    /// The last sweep freed little: no other before this instant.
    pause_until: Timestamp,
    /// The latest instant at which a state was dropped as being as good as new.
    dropped_at: Timestamp,
    /// Logs coarsened so far.
    coarsened: u64,
}

#[derive(Debug)]
struct RecordEntry {
    /// When the state is as good as new.
    fresh_at: Timestamp,
    fingerprint: u64,
    /// What the state holds beyond its own size, as counted in the shard's bytes.
    heap_bytes: usize,
    /// The basis of the quota that left the state: its code, and the length of sliding windows.
    basis_code: u64,
    period_us: u64,
    bucket: Bucket,
}

/// What to do with a new key when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Turn it away.
    IfRoom,
    /// Let it in: it is an overflow bucket, of which there are 64 for each band of a limit.
    Always,
}

/// How full the records are.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordUsage {
    /// Records kept.
    pub records: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// Logs that were coarsened for want of room.
    pub coarsened: u64,
}

impl Records {
    /// Records that take about `bytes_max` bytes at most, or a quarter of a megabyte if that is more.
    pub fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max / SHARDS;
        let shard = || Mutex::new(Shard::new(bytes_max));
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            overflow: Box::new(Mutex::new(Overflow::new(bytes_max))),
        }
    }

    /// Which shard keeps `fingerprint`. Callers that lock several
    /// do so in rising order.
    pub fn shard_of(&self, fingerprint: u64) -> usize {
        // The hash table in the shard goes by the highest and the lowest bits.
        usize::try_from(fingerprint >> 40).unwrap_or(0) % SHARDS
    }

    /// Locks a shard.
    #[expect(
        clippy::indexing_slicing,
        reason = "shards are named by `shard_of` alone, which stays within them"
    )]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock()
    }

    /// Locks the overflow buckets.
    pub(crate) fn lock_overflow(&self) -> MutexGuard<'_, Overflow> {
        self.overflow.lock()
    }

    /// How full they are at `now`.
    pub fn usage(&self, now: Timestamp) -> RecordUsage {
        let overflow = self.overflow.lock().usage(now);
        self.shards.iter().fold(overflow, |sum, shard| {
            let usage = shard.lock().usage(now);
            RecordUsage {
                records: sum.records.saturating_add(usage.records),
                bytes: sum.bytes.saturating_add(usage.bytes),
                coarsened: sum.coarsened.saturating_add(usage.coarsened),
            }
        })
    }
}

impl Shard {
    /// A shard that takes about `bytes_max` bytes at most, or a few records if that is more.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max: bytes_max.max(SHARD_BYTES_MIN),
            ..Self::default()
        }
    }

    /// How many states it has.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn usage(&self, now: Timestamp) -> RecordUsage {
        let live = self.entries.iter().filter(|entry| entry.fresh_at > now);
        RecordUsage {
            records: live.count(),
            bytes: self.bytes,
            coarsened: self.coarsened,
        }
    }

    /// Whether `fingerprint` has a state here.
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.entries.find(fingerprint, is(fingerprint)).is_some()
    }

    /// Whether `fingerprint` need not be as good as new at `now` although it has no state here: `now`
    /// is not now any more, and it may have come and gone since.
    pub fn may_have_dropped(&self, fingerprint: u64, now: Timestamp) -> bool {
        now < self.dropped_at && !self.contains(fingerprint)
    }

    /// Whether `fingerprint` has a state here, or there is room for one. Makes room if it can.
    pub fn has_room(&mut self, fingerprint: u64, entrance: Entrance, now: Timestamp) -> bool {
        if !self.is_full() || self.contains(fingerprint) {
            return true;
        }
        self.sweep(now);
        entrance == Entrance::Always || !self.is_full()
    }

    /// Takes the state of `fingerprint` out, to be [put back](Shard::put) under the same lock: a new
    /// one where there is none.
    pub fn take(&mut self, fingerprint: u64, quota: &Quota, now: Timestamp) -> Bucket {
        let new = Bucket::new(quota);
        match self.entries.find_mut(fingerprint, is(fingerprint)) {
            Some(entry) => {
                let kept = std::mem::replace(&mut entry.bucket, new);
                let state = entry
                    .basis()
                    .and_then(|basis| kept.adapted(basis, quota, now));
                state.unwrap_or_else(|| Bucket::new(quota))
            }
            None => new,
        }
    }

    /// Puts a state back, or forgets it if it is as good as new.
    pub fn put(&mut self, fingerprint: u64, mut bucket: Bucket, quota: &Quota, now: Timestamp) {
        let fresh_at = bucket.fresh_at(quota);
        if fresh_at <= now {
            if self.contains(fingerprint) {
                self.forget(fingerprint, now);
            }
            return;
        }
        self.coarsen_if_full(&mut bucket);
        let basis = quota.basis();
        let entry = RecordEntry {
            fresh_at,
            fingerprint,
            heap_bytes: bucket.heap_bytes(),
            basis_code: basis.code(),
            period_us: basis.period_us,
            bucket,
        };
        self.soonest = self.soonest.min(fresh_at);
        self.bytes = self.bytes.saturating_add(entry.bytes());
        match self.entries.find_mut(fingerprint, is(fingerprint)) {
            Some(old) => {
                self.bytes = self.bytes.saturating_sub(old.bytes());
                *old = entry;
            }
            None => {
                self.entries
                    .insert_unique(fingerprint, entry, |entry| entry.fingerprint);
            }
        }
    }

    /// The state of `fingerprint` as `quota` reads it, if it still matters at `now`.
    pub fn read(&self, fingerprint: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let entry = self.entries.find(fingerprint, is(fingerprint))?;
        let state = (entry.fresh_at > now).then(|| entry.bucket.clone())?;
        let state = state.adapted(entry.basis()?, quota, now)?;
        (state.fresh_at(quota) > now).then_some(state)
    }

    /// A copy of the state of `fingerprint`, if it still matters, for another key to begin with. A copy
    /// of a log is a coarse one.
    pub fn copy(&self, fingerprint: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let mut copy = self.read(fingerprint, quota, now)?;
        if let Bucket::Log(log) = &mut copy {
            log.coarsen(RUNS_WHEN_OVERFULL);
        }
        Some(copy)
    }

    /// Forgets a state that is as good as new, or that is kept elsewhere from `now` on.
    pub fn forget(&mut self, fingerprint: u64, now: Timestamp) {
        self.dropped_at = self.dropped_at.max(now);
        self.remove(fingerprint, now);
    }

    /// Forgets the state of `fingerprint`; tells whether there was one that still mattered.
    pub fn remove(&mut self, fingerprint: u64, now: Timestamp) -> bool {
        match self.entries.find_entry(fingerprint, is(fingerprint)) {
            Ok(entry) => {
                let entry = entry.remove().0;
                self.bytes = self.bytes.saturating_sub(entry.bytes());
                entry.fresh_at > now
            }
            Err(_) => false,
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.saturating_add(ENTRY_BYTES) > self.bytes_max
    }

    fn coarsen_if_full(&mut self, bucket: &mut Bucket) {
        let runs_max = if self.bytes > self.bytes_max.saturating_mul(2) {
            RUNS_WHEN_OVERFULL
        } else {
            RUNS_WHEN_FULL
        };
        if let Bucket::Log(log) = bucket
            && self.bytes > self.bytes_max
            && log.runs().count() > runs_max
        {
            log.coarsen(runs_max);
            self.coarsened = self.coarsened.saturating_add(1);
        }
    }

    /// Drops what is as good as new.
    fn sweep(&mut self, now: Timestamp) {
        if now < self.soonest || now < self.pause_until {
            return;
        }
        let before = self.entries.len();
        let (mut bytes, mut soonest) = (0_usize, Timestamp::from_micros(u64::MAX));
        self.entries.retain(|entry| {
            let kept = entry.fresh_at > now;
            if kept {
                bytes = bytes.saturating_add(entry.bytes());
                soonest = soonest.min(entry.fresh_at);
            }
            kept
        });
        self.bytes = bytes;
        self.soonest = soonest;
        self.dropped_at = self.dropped_at.max(now);
        // A shard that is full of what still matters must not be swept for every new key.
        if before.saturating_sub(self.entries.len()) < before / 8 {
            self.pause_until = now.plus(SWEEP_PAUSE_US);
        }
    }
}

impl RecordEntry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES.saturating_add(self.heap_bytes)
    }

    fn basis(&self) -> Option<Basis> {
        Basis::decode(Some(self.basis_code), self.period_us)
    }
}

fn is(fingerprint: u64) -> impl Fn(&RecordEntry) -> bool {
    move |entry| entry.fingerprint == fingerprint
}
