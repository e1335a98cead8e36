//! The store: where a bucket goes, and how requests are decided.

mod moving;
mod one;
mod overflow;
mod several;
mod words;

use crate::clock::SystemClock;
use crate::overflow::{Overflowed, Shared};
use crate::records::Records;
use crate::shared_state::ProcessState;
use crate::sync::AtomicU64;
use crate::table::WordTable;
use crate::word::{self, Narrow, with_state};
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::future::{Future, ready};
#[cfg(not(loom))]
use std::hash::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;
use tidegate_core::quota::Basis;
use tidegate_core::{
    AppliedAsks, Ask, Bucket, BucketState, ChargedOutcome, Clock, Inspection, LimitMode, Op,
    Outcome, Quota, Reply, SharedState, Store, StoreError, Timestamp,
};

/// Memory for records, for each of `max_keys`: one that is no log takes 160 bytes, and shards fill
/// unevenly.
const RECORD_BYTES_PER_KEY: usize = 240;

/// Buckets in this process.
///
/// Decisions never wait for I/O, so beside the asynchronous [`Store`] it has
/// [`decide_one`](Self::decide_one) and [`decide_now`](Self::decide_now) for callers that are not
/// asynchronous. It is shared by reference or in an `Arc`.
///
/// # Bounds
///
/// Memory is bounded by [`max_keys`](MemoryStoreBuilder::max_keys). A bucket gives up its place only once it
/// is as good as new. When no place is left, the new keys of a limit share overflow buckets, counted
/// in [`MemoryStats::shared`]: one for all keys of a network, of 64 for each quota. They are limited
/// together, and no key that was limited is forgotten. A key that finds a place begins fresh, unless it
/// was itself charged in its overflow bucket: then it begins with a copy of that bucket.
///
/// Keys are told apart by a 64-bit hash with a seed of this process. Two keys that collide share a
/// bucket, so neither ever gets more than its limit.
#[derive(Debug)]
pub struct MemoryStore<C = SystemClock> {
    clock: C,
    /// When the store began, in microseconds: words count from here.
    epoch: u64,
    /// When words can hold no later instant.
    words_end: u64,
    /// This process's own, so that nobody outside can choose keys that collide.
    seed: u64,
    table: WordTable,
    records: Records,
    /// No overflow bucket matters from this instant on, in microseconds. Raised while the place is
    /// held that a key turned away does not have, and so in time for whoever claims it next.
    overflow_until: AtomicU64,
    /// 1 once there has been a record of a key that might have been a word, or may become one.
    movable: AtomicU64,
    state: ProcessState,
}

/// Settings of a [`MemoryStore`].
#[derive(Clone, Debug)]
pub struct MemoryStoreBuilder<C = SystemClock> {
    max_keys: usize,
    clock: C,
}

/// How full a [`MemoryStore`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Buckets that still matter, at this moment.
    pub buckets: usize,
    /// Bytes that records take, beside the table, whose size is fixed.
    pub record_bytes: usize,
    /// Slots of the table.
    pub slots: usize,
    /// Decisions of overflow buckets since the store began.
    pub shared: Shared,
    /// Logs made coarser for want of room since the store began.
    pub coarsened: u64,
}

impl MemoryStore {
    /// A store with room for a million keys.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins a store with other settings.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            max_keys: 1_000_000,
            clock: SystemClock::new(),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Builder ===

impl<C> MemoryStoreBuilder<C> {
    /// Keeps up to `max_keys` buckets: 32 bytes each, taken from the system as they are used, and
    /// up to 240 more for each that does not fit a word.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> MemoryStoreBuilder<D> {
        MemoryStoreBuilder {
            max_keys: self.max_keys,
            clock,
        }
    }

    /// The store.
    ///
    /// # Panics
    ///
    /// If the system has no room for a table of that many keys; see [`try_build`](Self::try_build).
    pub fn build(self) -> MemoryStore<C>
    where
        C: Clock,
    {
        self.try_build()
            .expect("memory for a table of `max_keys` keys")
    }

    /// The store, or `None` where the system has no room for a table of that many keys.
    pub fn try_build(self) -> Option<MemoryStore<C>>
    where
        C: Clock,
    {
        let record_bytes = self.max_keys.saturating_mul(RECORD_BYTES_PER_KEY);
        let epoch = self.clock.now().as_micros();
        Some(MemoryStore {
            epoch,
            words_end: epoch.saturating_add(word::INSTANT_END),
            clock: self.clock,
            seed: seed(),
            table: WordTable::new(self.max_keys)?,
            records: Records::new(record_bytes),
            overflow_until: AtomicU64::new(0),
            movable: AtomicU64::new(0),
            state: ProcessState::default(),
        })
    }
}

/// The asks that a request of one ask carried out.
#[inline]
fn applied_alone(op: Op, units: u64) -> AppliedAsks {
    let mut applied = AppliedAsks::NONE;
    match op {
        // Changed its bucket even if the overdraft left nothing to charge.
        Op::Force(1..) | Op::Debit(1..) => applied.charge(0, op, units),
        Op::Take(_) | Op::GiveBack(_) | Op::Return { .. } if units > 0 => applied.add(0),
        Op::Take(_)
        | Op::GiveBack(_)
        | Op::Return { .. }
        | Op::Look
        | Op::Test(_)
        | Op::Block
        | Op::Force(0)
        | Op::Debit(0) => {}
    }
    applied
}

// === impl MemoryStore ===

impl<C: Clock> MemoryStore<C> {
    /// Decides one ask by itself. A shadow is decided like any other: there is no request that it
    /// could refuse.
    #[inline]
    pub fn decide_one(&self, ask: &Ask<'_>) -> Outcome {
        self.decide_one_at(ask, self.clock.now()).outcome
    }

    /// Decides a request in one step, all or nothing.
    // Not inlined: it writes its reply, which is large, to where the caller keeps it.
    #[inline(never)]
    pub fn decide_now(&self, asks: &[Ask<'_>]) -> Reply {
        let at = self.clock.now();
        if let [ask] = asks
            && !(ask.mode == LimitMode::Shadow && ask.op.is_forced())
        {
            let ChargedOutcome { outcome, units } = self.decide_one_at(ask, at);
            let passed = outcome.is_allowed() || ask.mode == LimitMode::Shadow;
            let applied = applied_alone(ask.op, units);
            return Reply::of_one(at, passed, outcome, applied);
        }
        let mut reply = Reply::new(at, true);
        match self.decide_words(asks, &mut reply.outcomes, at) {
            Some(passed) => reply.passed = passed,
            None => return self.decide_several(asks, at),
        }
        if reply.passed {
            reply.applied = AppliedAsks::first(asks.len());
        }
        reply
    }

    /// What is kept of a bucket, or `None` where nothing is.
    pub fn inspect_now(&self, bucket: &[u8], quota: &Quota) -> Option<Inspection> {
        let at = self.clock.now();
        let fingerprint = self.fingerprint(bucket, quota);
        let bucket = self.kept(fingerprint, quota, at)?;
        Some(Inspection { at, bucket })
    }

    /// Makes a bucket as good as new; tells whether there was anything to forget.
    pub fn reset_now(&self, bucket: &[u8], quota: &Quota) -> bool {
        let at = self.clock.now();
        let fingerprint = self.fingerprint(bucket, quota);
        let record = {
            let shard = self.records.shard_of(fingerprint);
            self.records.lock(shard).remove(fingerprint, at)
        };
        let Some(place) = self
            .table
            .find(fingerprint)
            .filter(|_| moving::can_move(quota))
        else {
            return record;
        };
        while let Ok(word) = self.table.load(place, fingerprint) {
            let fresh = word::fresh(self.since_epoch(at));
            if self.table.swap(place, word, fresh) {
                let state = self.unpack(word, quota).adapted(Basis::PLAIN, quota, at);
                return record || state.is_some_and(|state| state.fresh_at(quota) > at);
            }
        }
        record
    }

    /// How full it is. Reads the whole table, so it is for operators and not for every request.
    pub fn stats(&self) -> MemoryStats {
        let now = self.clock.now();
        let usage = self.records.usage(now);
        let words = self.table.live(self.since_epoch(now));
        MemoryStats {
            buckets: words.saturating_add(usage.records),
            record_bytes: usage.bytes,
            slots: self.table.slots(),
            shared: self.shared(),
            coarsened: usage.coarsened,
        }
    }

    /// Decisions of overflow buckets since the store began. Costs a lock, unlike [`stats`](Self::stats).
    pub fn shared(&self) -> Shared {
        self.records.lock_overflow().shared()
    }

    /// A limit that has overflowed within the last `time`, for people to read. Costs a lock.
    pub fn overflowed(&self, time: Duration) -> Option<Overflowed> {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = self.clock.now();
        self.records
            .lock_overflow()
            .overflowed()
            .filter(|(last, _)| now < last.plus(time))
            .map(|(_, overflowed)| overflowed.clone())
    }

    /// Returns true while an overflow bucket matters: a key without a bucket may then be limited by one.
    pub fn has_overflow(&self) -> bool {
        self.is_overflowing(self.clock.now())
    }

    /// Whether buckets of `quota` are words in the table. The same for all buckets of a quota at
    /// any time, but for a process that has run for 70 years.
    #[inline]
    fn is_word(&self, quota: &Quota, now: Timestamp) -> bool {
        // Neither comes near the end of a word's 64 bits.
        let latest = now.as_micros().wrapping_add(quota.lifetime_us_max());
        quota.is_narrow() && latest < self.words_end
    }

    /// Tells buckets apart; never 0. The seed is this process's own, so that nobody outside can
    /// choose keys that collide.
    #[inline]
    fn fingerprint(&self, bucket: &[u8], quota: &Quota) -> u64 {
        let mut hasher = self.hasher(quota);
        hasher.write(bucket);
        hasher.finish().max(1)
    }

    /// Begins a hash of something that belongs to the band of `quota`.
    #[inline]
    fn hasher(&self, quota: &Quota) -> impl Hasher {
        let seed = self.seed ^ quota.id().as_u64();
        #[cfg(not(loom))]
        let shared = SharedSeed::global_random();
        #[cfg(loom)]
        let shared = SharedSeed::global_fixed();
        // Of the quality kind: every bit of it chooses a place somewhere.
        SeedableRandomState::with_seed(seed, shared).build_hasher()
    }

    #[inline]
    fn since_epoch(&self, now: Timestamp) -> u64 {
        now.as_micros().saturating_sub(self.epoch)
    }

    fn unpack(&self, word: u64, quota: &Quota) -> Bucket {
        with_state!(quota, State => State::BUCKET(State::unpack(word, self.epoch, quota)))
    }

    fn pack(&self, bucket: &Bucket, quota: &Quota) -> u64 {
        match bucket {
            Bucket::Fixed(window) => window.pack(self.epoch, quota),
            Bucket::Tokens(tokens) => tokens.pack(self.epoch, quota),
            // `unpack` makes no others.
            Bucket::Sliding(_) | Bucket::Log(_) | Bucket::Lent(_) => 0,
        }
    }
}

#[cfg(not(loom))]
fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// The same in every run of a model, for a run must be repeatable.
#[cfg(loom)]
fn seed() -> u64 {
    crate::sync::SEED.get()
}

impl<C: Clock> Store for MemoryStore<C> {
    fn decide(&self, asks: &[Ask<'_>]) -> impl Future<Output = Result<Reply, StoreError>> + Send {
        ready(Ok(self.decide_now(asks)))
    }

    fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> impl Future<Output = Result<Option<Inspection>, StoreError>> + Send {
        ready(Ok(self.inspect_now(bucket, quota)))
    }

    fn reset(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(Ok(self.reset_now(bucket, quota)))
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn has_machine_clock(&self) -> bool {
        self.clock.is_machine()
    }

    #[inline]
    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        Some(self.decide_now(asks))
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        Some(&self.state)
    }
}
