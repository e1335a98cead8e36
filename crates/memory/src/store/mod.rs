//! The store: the choice between table and records, and the ways to decide a request.
//!
//! | module | requests |
//! |---|---|
//! | `one` | one ask |
//! | `words` | a few takes whose buckets all exist as words |
//! | `several` | everything else |
//! | `moving` | buckets whose quota needs the other form |
//! | `overflow` | keys without a slot |

mod builder;
mod moving;
mod one;
mod overflow;
mod several;
mod words;

pub use builder::MemoryStoreBuilder;

use crate::clock::SystemClock;
use crate::overflow::{OverflowCounts, OverflowedLimit};
use crate::records::Records;
use crate::seeds::HashSeeds;
use crate::shared_state::ProcessState;
use crate::sync::AtomicU64;
use crate::table::WordTable;
use crate::word::{self, NarrowState, with_state};
use std::future::{Future, ready};
use std::hash::Hasher;
use std::time::Duration;
use tidegate_core::ask::PermitTerms;
use tidegate_core::quota::Basis;
use tidegate_core::{
    AppliedAsks, Ask, Bucket, BucketState, ChargedOutcome, Clock, Inspection, LimitMode, Op,
    Outcome, Quota, Reply, SharedState, Store, StoreError, Timestamp, step,
};

/// Buckets in memory.
///
/// Decisions never wait for I/O. So in addition to the asynchronous [`Store`] it has
/// [`decide_one`](Self::decide_one) and [`decide_now`](Self::decide_now) for callers that are not
/// asynchronous. Share it by reference or in an `Arc`.
///
/// # Bounds
///
/// Memory is bounded by [`max_keys`](MemoryStoreBuilder::max_keys). A bucket loses its slot only
/// once it is full again. When no slot is left, the new keys of a limit share overflow buckets,
/// counted in [`MemoryStats::shared`]: one for all keys of a network, of 64 for each quota. They
/// are limited together, and no key that was limited is forgotten. A key that finds a slot begins
/// full, unless it was itself charged in its overflow bucket: then it begins with a copy of that
/// bucket.
///
/// A bucket of [permits](tidegate_core::Quota::concurrent) that guards hold is always admitted, and never evicted:
/// it has no more entries than there are requests in flight, and a lost count would admit too many.
///
/// A 64-bit hash with a seed of this process identifies a key. Two keys that collide share a
/// bucket, so neither ever gets more than its limit.
///
/// # Example
///
/// ```
/// use tidegate_core::{Ask, ManualClock, Quota, Timestamp};
/// use tidegate_memory::MemoryStore;
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
/// let store = MemoryStore::builder().max_keys(1_000).clock(clock.clone()).build();
/// let quota = Quota::new(1, 1_000_000).build()?;
/// let ask = Ask::take(b"alice", &quota, 1);
///
/// assert!(store.decide_one(&ask).is_allowed());
/// assert!(!store.decide_one(&ask).is_allowed());
/// clock.advance_micros(1_000_000);
/// assert!(store.decide_one(&ask).is_allowed());
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore<C = SystemClock> {
    /// Time of all decisions.
    pub(crate) clock: C,
    /// Instant at which the store began, in microseconds: words count from here.
    pub(crate) epoch: u64,
    /// First instant that words cannot hold.
    words_end: u64,
    /// Random seeds, so that clients cannot choose keys that collide.
    pub(crate) seeds: HashSeeds,
    /// States that fit a word.
    pub(crate) table: WordTable,
    /// States that do not.
    pub(crate) records: Records,
    /// Instant, in microseconds, from which no overflow bucket matters. It is raised while the slot
    /// that a rejected key does not have is held, and so in time for the next claim of it.
    pub(crate) overflow_until: AtomicU64,
    /// Not 0 once there has been a record of a key that might have been a word, or may become one.
    /// Until then a new word needs no search among the records. It rises with every word that
    /// becomes a record.
    pub(crate) movable: AtomicU64,
    /// Number of records that became words.
    pub(crate) moved_back: AtomicU64,
    /// Sets and counts of this process.
    pub(crate) state: ProcessState,
}

/// Usage of a [`MemoryStore`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Number of buckets that still matter at this moment.
    pub buckets: usize,
    /// Bytes of the records, in addition to the table, whose size is fixed.
    pub record_bytes: usize,
    /// Number of slots of the table.
    pub slots: usize,
    /// Decisions of overflow buckets since the store began.
    pub shared: OverflowCounts,
    /// Logs made coarser because there was no room, since the store began.
    pub coarsened: u64,
}

impl MemoryStore {
    /// Creates a store with room for a million keys and real time.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts a store with other settings. Default: a million keys and real time.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            max_keys: 1_000_000,
            clock: SystemClock::new(),
            seeds: None,
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the applied asks of a request of one ask.
#[inline]
fn applied_alone(op: Op, charged: &ChargedOutcome) -> AppliedAsks {
    let ChargedOutcome { outcome, units } = charged;
    let (units, mut applied) = (*units, AppliedAsks::NONE);
    match op {
        // Changed its bucket even if the overdraft left nothing to charge.
        Op::Force(1..) | Op::Debit(1..) => applied.charge(0, op, units),
        Op::Take(_) | Op::GiveBack(_) | Op::Return { .. } | Op::Release(_) if units > 0 => {
            applied.add(0);
        }
        // A repetition takes no more; a renewal never does.
        Op::Acquire(PermitTerms { units: 1.., .. }) if outcome.is_allowed() => {
            applied.charge(0, op, units);
        }
        Op::Renew { .. } if outcome.is_allowed() => applied.add(0),
        Op::Acquire(_)
        | Op::Renew { .. }
        | Op::Release(_)
        | Op::Take(_)
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
    /// Decides one ask alone. A shadow is decided like any other: there is no request that it could
    /// refuse.
    ///
    /// ```
    /// use tidegate_core::{Ask, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let store = MemoryStore::builder().max_keys(1_000).build();
    /// let quota = Quota::new(3, 60_000_000).build()?;
    /// assert_eq!(store.decide_one(&Ask::take(b"alice", &quota, 2)).remaining, 1);
    /// assert_eq!(store.decide_one(&Ask::look(b"alice", &quota)).remaining, 1);
    /// assert!(!store.decide_one(&Ask::take(b"alice", &quota, 2)).is_allowed());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[inline]
    pub fn decide_one(&self, ask: &Ask<'_>) -> Outcome {
        self.decide_one_at(ask, self.clock.now()).outcome
    }

    /// Decides a request atomically, all or nothing.
    ///
    /// The reply has one outcome per ask, in order. A refused request charges nothing; the
    /// exceptions are in laws 9 and 16 of [`Store`].
    ///
    /// ```
    /// use tidegate_core::{Ask, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let store = MemoryStore::builder().max_keys(1_000).build();
    /// let (large, small) = (Quota::new(5, 60_000_000).build()?, Quota::new(1, 60_000_000).build()?);
    /// let asks = [Ask::take(b"large", &large, 1), Ask::take(b"small", &small, 1)];
    /// assert!(store.decide_now(&asks).passed);
    /// assert!(!store.decide_now(&asks).passed);
    /// assert_eq!(store.decide_one(&Ask::look(b"large", &large)).remaining, 4);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    // Not inlined: it writes its reply, which is large, to where the caller keeps it.
    #[inline(never)]
    pub fn decide_now(&self, asks: &[Ask<'_>]) -> Reply {
        let at = self.clock.now();
        if step::is_outside(asks, at) {
            return Reply::undecided(at, asks.len());
        }
        if let [ask] = asks
            && !(ask.mode == LimitMode::Shadow && ask.op.is_forced())
        {
            let charged = self.decide_one_at(ask, at);
            let passed = charged.outcome.is_allowed() || ask.mode == LimitMode::Shadow;
            let applied = applied_alone(ask.op, &charged);
            return Reply::of_one(at, passed, charged.outcome, applied);
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

    /// Returns the stored state of a bucket; `None` if there is none, which means that it is full.
    ///
    /// ```
    /// use tidegate_core::{Ask, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let store = MemoryStore::new();
    /// let quota = Quota::new(10, 60_000_000).build()?;
    /// assert!(store.inspect_now(b"alice", &quota).is_none());
    /// store.decide_one(&Ask::take(b"alice", &quota, 1));
    /// assert!(store.inspect_now(b"alice", &quota).is_some());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn inspect_now(&self, bucket: &[u8], quota: &Quota) -> Option<Inspection> {
        let at = self.clock.now();
        let fingerprint = self.fingerprint(bucket, quota);
        let bucket = self.kept(fingerprint, quota, at)?;
        Some(Inspection { at, bucket })
    }

    /// Resets a bucket. Returns true if there was a state to forget.
    ///
    /// Of a [concurrent](Quota::concurrent) quota, it frees the permits that end by themselves. Those that a
    /// guard holds stay: their requests are in flight, and will release them.
    ///
    /// ```
    /// use tidegate_core::{Ask, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let store = MemoryStore::builder().max_keys(1_000).build();
    /// let quota = Quota::new(1, 60_000_000).build()?;
    /// let ask = Ask::take(b"alice", &quota, 1);
    /// assert!(store.decide_one(&ask).is_allowed());
    /// assert!(store.reset_now(b"alice", &quota));
    /// assert!(store.decide_one(&ask).is_allowed());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn reset_now(&self, bucket: &[u8], quota: &Quota) -> bool {
        let at = self.clock.now();
        let fingerprint = self.fingerprint(bucket, quota);
        let record = {
            let mut shard = self.records.lock(self.records.shard_of(fingerprint));
            if quota.algorithm().is_concurrent() {
                shard.free_timed(fingerprint, quota, at)
            } else {
                shard.remove(fingerprint, at)
            }
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

    /// Returns the usage of the store. It reads the whole table, so call it for operators and not
    /// for every request.
    ///
    /// ```
    /// use tidegate_core::{Ask, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let store = MemoryStore::builder().max_keys(1_000).build();
    /// let quota = Quota::new(1, 60_000_000).build()?;
    /// store.decide_one(&Ask::take(b"alice", &quota, 1));
    /// store.decide_one(&Ask::take(b"bob", &quota, 1));
    /// let stats = store.stats();
    /// assert_eq!(stats.buckets, 2);
    /// assert_eq!(stats.shared.total(), 0, "every key has its own bucket");
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
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

    /// Returns the decisions of overflow buckets since the store began. Costs a lock, unlike
    /// [`stats`](Self::stats) not a search.
    ///
    /// ```
    /// use tidegate_core::{Ask, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let store = MemoryStore::builder().max_keys(1).build();
    /// let quota = Quota::new(1, 60_000_000).build()?;
    /// for key in 0..1_000_u32 {
    ///     store.decide_one(&Ask::take(&key.to_be_bytes(), &quota, 1));
    /// }
    /// assert!(store.has_overflow());
    /// assert!(store.shared().refused > 0, "the keys without a slot share a limit");
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn shared(&self) -> OverflowCounts {
        self.records.lock_overflow().shared()
    }

    /// Returns a limit that has overflowed within the last `time`, for people to read. Costs a
    /// lock.
    ///
    /// It has the name of the limit, and the beginning of the client's address if there is one, so
    /// that an operator can recognize a flood from one network.
    pub fn overflowed(&self, time: Duration) -> Option<OverflowedLimit> {
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

    /// Returns true if buckets of `quota` are words in the table. The same for all buckets of a
    /// quota at any time, except in a process that has run for 70 years.
    #[inline]
    fn is_word(&self, quota: &Quota, now: Timestamp) -> bool {
        // Neither comes near the end of a word's 64 bits.
        let latest = now.as_micros().wrapping_add(quota.lifetime_us_max());
        quota.is_narrow() && latest < self.words_end
    }

    /// Hashes a bucket's name and quota; never 0. The seeds are random, so that clients cannot choose
    /// keys that collide.
    #[inline]
    fn fingerprint(&self, bucket: &[u8], quota: &Quota) -> u64 {
        let mut hasher = self.hasher(quota);
        hasher.write(bucket);
        hasher.finish().max(1)
    }

    /// Begins a hash of something that belongs to the band of `quota`.
    #[inline]
    fn hasher(&self, quota: &Quota) -> impl Hasher {
        self.seeds.hasher(quota.id().as_u64())
    }

    /// Returns the microseconds from the start of the store to `now`.
    #[inline]
    pub(crate) fn since_epoch(&self, now: Timestamp) -> u64 {
        now.as_micros().saturating_sub(self.epoch)
    }

    /// Reads the state in `word`.
    fn unpack(&self, word: u64, quota: &Quota) -> Bucket {
        with_state!(quota, State => State::BUCKET(State::unpack(word, self.epoch, quota)))
    }

    /// Returns the word for a state. The caller has checked that the quota's states are words.
    fn pack(&self, bucket: &Bucket, quota: &Quota) -> u64 {
        match bucket {
            Bucket::Fixed(window) => window.pack(self.epoch, quota),
            Bucket::Calendar(window) => window.pack(self.epoch, quota),
            Bucket::Tokens(tokens) => tokens.pack(self.epoch, quota),
            // `unpack` makes no others.
            Bucket::Sliding(_) | Bucket::Log(_) | Bucket::Lent(_) | Bucket::Permits(_) => 0,
        }
    }
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

    fn holds_permits(&self) -> bool {
        true
    }

    fn has_machine_clock(&self) -> bool {
        self.clock.is_machine()
    }

    fn present(&self) -> Option<Timestamp> {
        Some(self.clock.now())
    }

    #[inline]
    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        Some(self.decide_now(asks))
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        Some(&self.state)
    }
}
