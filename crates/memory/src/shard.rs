//! A shard of the records: a hash table whose memory is counted in bytes.
//!
//! A shard that has no room for a new key drops the states that are full again. If there is none,
//! the key is turned away to an overflow bucket. A log that grows while its shard is full is
//! coarsened.

use hashbrown::HashTable;
use tidegate_core::quota::Basis;
use tidegate_core::{Ask, Bucket, BucketState, Op, Quota, Timestamp};

/// Minimum size of a shard: a few dozen records.
const SHARD_BYTES_MIN: usize = 4096;

/// Number of runs to which a log is coarsened if there is no more room.
const RUNS_WHEN_FULL: usize = 32;

/// Number of runs to which a log is coarsened if there has been no room for long.
const RUNS_WHEN_OVERFULL: usize = 4;

/// Size of an entry without a log's own memory. A hash table doubles when it is seven eighths full,
/// so that an entry takes up to twice its own size.
const ENTRY_BYTES: usize = 2 * size_of::<RecordEntry>();

/// Pause before another sweep of a full shard that had little to drop.
const SWEEP_PAUSE_US: u64 = 100_000;

/// A part of the records, behind one mutex.
///
/// Its size is bounded in bytes. A full shard first sweeps states that are full again, at most
/// every 100 ms if that frees little. Then it rejects new keys, and coarsens logs that grow.
#[derive(Debug, Default)]
pub struct Shard {
    /// The states, by fingerprint.
    entries: HashTable<RecordEntry>,
    /// Bytes of the entries, logs included.
    bytes: usize,
    /// Upper bound of `bytes`.
    bytes_max: usize,
    /// Earliest instant at which any state here is full again.
    soonest: Timestamp,
    /// Instant before which no other sweep happens, because the last one freed little.
    pause_until: Timestamp,
    /// Latest instant at which a state was dropped because it was full again.
    dropped_at: Timestamp,
    /// Number of logs coarsened so far.
    coarsened: u64,
}

/// One state with its fingerprint and the facts to read it under another quota.
#[derive(Debug)]
struct RecordEntry {
    /// Instant at which the state is full again.
    fresh_at: Timestamp,
    /// Fingerprint of the key.
    fingerprint: u64,
    /// Bytes of the state beyond its own size, as counted in the shard's bytes.
    heap_bytes: usize,
    /// Code of the basis of the quota that left the state; see [`Basis::decode`].
    basis_code: u64,
    /// Length of the quota's period, which a sliding window needs.
    period_us: u64,
    /// The state itself.
    bucket: Bucket,
}

/// A state as a snapshot carries it: without its quota.
#[cfg(not(loom))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptRecord {
    /// Fingerprint of the key.
    pub(crate) fingerprint: u64,
    /// Instant at which the state is full again.
    pub(crate) fresh_at: Timestamp,
    /// Code of the basis of the quota that left the state.
    pub(crate) basis_code: u64,
    /// Length of the quota's period.
    pub(crate) period_us: u64,
    /// The state itself.
    pub(crate) bucket: Bucket,
}

/// Admission of a new key when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NewKeyAdmission {
    /// Reject it.
    IfRoom,
    /// Admit it: it is an overflow bucket, of which there are 64 for each band of a limit. Or it is for
    /// permits: their guards take more memory than the record, and have to find it again.
    Always,
}

impl NewKeyAdmission {
    /// Returns the admission of the bucket of `ask`.
    ///
    /// A guard gives its units back to the bucket that it took them from, so such a bucket is never an overflow
    /// bucket that others share. There are no more of them than guards. Permits with an end have ids, which are
    /// found in any bucket, and nothing bounds how many keys acquire them.
    pub(crate) fn of(ask: &Ask<'_>) -> Self {
        let is_timed = matches!(ask.op, Op::Acquire(_) | Op::Renew { .. } | Op::Release(_));
        if ask.quota.algorithm().is_concurrent() && !is_timed {
            Self::Always
        } else {
            Self::IfRoom
        }
    }
}

/// Usage of the records.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordUsage {
    /// Number of records that still matter.
    pub records: usize,
    /// Bytes of all records.
    pub bytes: usize,
    /// Logs that were coarsened because there was no room.
    pub coarsened: u64,
}

impl Shard {
    /// Creates a shard that takes about `bytes_max` bytes at most, or a few records if that is
    /// more.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max: bytes_max.max(SHARD_BYTES_MIN),
            ..Self::default()
        }
    }

    /// Returns the number of states.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the usage at `now`. It counts all entries.
    pub(crate) fn usage(&self, now: Timestamp) -> RecordUsage {
        let live = self.entries.iter().filter(|entry| entry.fresh_at > now);
        RecordUsage {
            records: live.count(),
            bytes: self.bytes,
            coarsened: self.coarsened,
        }
    }

    /// Returns true if `fingerprint` has a state here.
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.entries.find(fingerprint, is(fingerprint)).is_some()
    }

    /// Returns true if `fingerprint`, which has no state here, may have had one at `now`: `now` is
    /// outdated, and the state may have been dropped since.
    pub fn may_have_dropped(&self, fingerprint: u64, now: Timestamp) -> bool {
        now < self.dropped_at && !self.contains(fingerprint)
    }

    /// Returns true if `fingerprint` has a state here, or there is room for one. Makes room if
    /// possible.
    ///
    /// A key with a state always has room. For a new key of a full shard, states that are full
    /// again are swept first. With [`NewKeyAdmission::Always`] the result is always true.
    pub fn has_room(
        &mut self,
        fingerprint: u64,
        entrance: NewKeyAdmission,
        now: Timestamp,
    ) -> bool {
        if !self.is_full() || self.contains(fingerprint) {
            return true;
        }
        self.sweep(now);
        entrance == NewKeyAdmission::Always || !self.is_full()
    }

    /// Takes the state of `fingerprint` out, for the caller to [store](Shard::put) again under the
    /// same lock. Creates one if there is none.
    ///
    /// The state is converted to `quota` if another quota of the band has left it.
    ///
    /// The caller must store it again, even after a refusal: until then the shard has no state of
    /// the key.
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

    /// Stores a state, or forgets it if it is full again. Coarsens a log if there is no room.
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
        self.insert(entry);
    }

    /// Inserts an entry in place of the one with the same fingerprint.
    fn insert(&mut self, entry: RecordEntry) {
        let fingerprint = entry.fingerprint;
        self.soonest = self.soonest.min(entry.fresh_at);
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

    /// Returns the state of `fingerprint` as `quota` reads it, if it still matters at `now`.
    pub fn read(&self, fingerprint: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let entry = self.entries.find(fingerprint, is(fingerprint))?;
        let state = (entry.fresh_at > now).then(|| entry.bucket.clone())?;
        let state = state.adapted(entry.basis()?, quota, now)?;
        (state.fresh_at(quota) > now).then_some(state)
    }

    /// Returns a copy of the state of `fingerprint`, if it still matters, as the first state of
    /// another key. A copy of a log is a coarse one.
    pub fn copy(&self, fingerprint: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let mut copy = self.read(fingerprint, quota, now)?;
        if let Bucket::Log(log) = &mut copy {
            log.coarsen(RUNS_WHEN_OVERFULL);
        }
        Some(copy)
    }

    /// Forgets a state that is full again, or that is kept elsewhere from `now` on.
    pub fn forget(&mut self, fingerprint: u64, now: Timestamp) {
        self.dropped_at = self.dropped_at.max(now);
        self.remove(fingerprint, now);
    }

    /// Forgets the state of `fingerprint`. Returns true if there was one that still mattered.
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

    /// Frees the permits of `fingerprint` that end by themselves, and keeps those that guards hold. Returns true
    /// if there were any.
    ///
    /// A guard gives its units back later. If they were forgotten here, it would then release permits of others.
    pub(crate) fn free_timed(&mut self, fingerprint: u64, quota: &Quota, now: Timestamp) -> bool {
        if !self.contains(fingerprint) {
            return false;
        }
        let Bucket::Permits(permits) = self.take(fingerprint, quota, now) else {
            return self.remove(fingerprint, now);
        };
        let had_any = permits.timed(now).next().is_some();
        self.put(
            fingerprint,
            Bucket::Permits(permits.without_timed()),
            quota,
            now,
        );
        had_any
    }

    /// Returns the fingerprints of all states.
    #[cfg(not(loom))]
    pub(crate) fn fingerprints(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.fingerprint).collect()
    }

    /// Returns the state of `fingerprint` for a snapshot, if it still matters at `now`.
    #[cfg(not(loom))]
    pub(crate) fn to_keep(&self, fingerprint: u64, now: Timestamp) -> Option<KeptRecord> {
        let entry = self.entries.find(fingerprint, is(fingerprint))?;
        let (bucket, fresh_at) = match &entry.bucket {
            // Guards end with their process.
            Bucket::Permits(permits) => {
                let permits = permits.clone().without_guards();
                let last = permits.last_end();
                (Bucket::Permits(permits), last.unwrap_or_default())
            }
            bucket @ (Bucket::Tokens(_)
            | Bucket::Fixed(_)
            | Bucket::Calendar(_)
            | Bucket::Sliding(_)
            | Bucket::Log(_)
            | Bucket::Lent(_)) => (bucket.clone(), entry.fresh_at),
        };
        (fresh_at > now).then_some(KeptRecord {
            fingerprint,
            fresh_at,
            basis_code: entry.basis_code,
            period_us: entry.period_us,
            bucket,
        })
    }

    /// Stores a state of a snapshot in place of the one that `fingerprint` has. Returns false if there
    /// is no room for it, or its basis is invalid.
    #[cfg(not(loom))]
    pub(crate) fn restore(
        &mut self,
        kept: KeptRecord,
        entrance: NewKeyAdmission,
        now: Timestamp,
    ) -> bool {
        let fingerprint = kept.fingerprint;
        let is_valid = Basis::decode(Some(kept.basis_code), kept.period_us).is_some();
        if !is_valid || !self.has_room(fingerprint, entrance, now) {
            return false;
        }
        let mut bucket = kept.bucket;
        self.coarsen_if_full(&mut bucket);
        self.insert(RecordEntry {
            fresh_at: kept.fresh_at,
            fingerprint,
            heap_bytes: bucket.heap_bytes(),
            basis_code: kept.basis_code,
            period_us: kept.period_us,
            bucket,
        });
        true
    }

    /// Returns true if another entry would exceed the bound.
    fn is_full(&self) -> bool {
        self.bytes.saturating_add(ENTRY_BYTES) > self.bytes_max
    }

    /// Coarsens a log if the shard is over its bound: to 32 runs, or to 4 if it takes twice its
    /// bound.
    ///
    /// A coarse log counts units for longer and never shorter, so the limit is kept.
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

    /// Drops states that are full again.
    ///
    /// It reads all entries of the shard. If it frees less than an eighth, the next sweep waits for
    /// 100 ms, so that a full shard does not sweep at every new key.
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
    /// Returns the bytes of the entry, its heap included.
    fn bytes(&self) -> usize {
        ENTRY_BYTES.saturating_add(self.heap_bytes)
    }

    /// Returns the basis of the quota that left the state; `None` if the code is invalid.
    fn basis(&self) -> Option<Basis> {
        Basis::decode(Some(self.basis_code), self.period_us)
    }
}

/// Returns a comparison with `fingerprint`, for the hash table.
fn is(fingerprint: u64) -> impl Fn(&RecordEntry) -> bool {
    move |entry| entry.fingerprint == fingerprint
}
