//! The settings of a store.

use super::MemoryStore;
use crate::clock::SystemClock;
use crate::records::Records;
use crate::seeds::HashSeeds;
use crate::shared_state::ProcessState;
use crate::sync::AtomicU64;
use crate::table::WordTable;
use crate::word;
use tidegate_core::Clock;

/// Memory for records, for each of `max_keys`: one that is no log takes 160 bytes, and shards fill
/// unevenly.
const RECORD_BYTES_PER_KEY: usize = 240;

/// Settings of a [`MemoryStore`].
///
/// ```
/// use tidegate_memory::MemoryStore;
///
/// let store = MemoryStore::builder().max_keys(100_000).build();
/// assert!(store.stats().slots >= 100_000);
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStoreBuilder<C = SystemClock> {
    /// Number of keys.
    pub(crate) max_keys: usize,
    /// Time of all decisions.
    pub(crate) clock: C,
    /// Seeds of hashes; those of the process if there are none.
    pub(crate) seeds: Option<HashSeeds>,
}

impl<C> MemoryStoreBuilder<C> {
    /// Sets the number of buckets: 32 bytes each, taken from the system as they are used, and up to
    /// 240 more for each that does not fit a word. Default: 1,000,000.
    ///
    /// Beyond it, new keys share overflow buckets; no decision fails.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// Sets the clock. Default: [`SystemClock`].
    ///
    /// ```
    /// use tidegate_core::{Ask, ManualClock, Quota};
    /// use tidegate_memory::MemoryStore;
    ///
    /// let clock = ManualClock::default();
    /// let store = MemoryStore::builder().max_keys(100).clock(clock.clone()).build();
    /// let quota = Quota::new(1, 1_000_000).build()?;
    /// assert!(store.decide_one(&Ask::take(b"a", &quota, 1)).is_allowed());
    /// clock.advance_micros(1_000_000);
    /// assert!(store.decide_one(&Ask::take(b"a", &quota, 1)).is_allowed());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> MemoryStoreBuilder<D> {
        MemoryStoreBuilder {
            max_keys: self.max_keys,
            clock,
            seeds: self.seeds,
        }
    }

    /// Creates a store that [`write_snapshot`](MemoryStore::write_snapshot) can write. Its hashes have
    /// seeds that the snapshot carries, so that another process finds its buckets.
    #[cfg(not(loom))]
    #[must_use]
    pub fn with_snapshots(self) -> Self {
        Self {
            seeds: Some(HashSeeds::to_keep()),
            ..self
        }
    }

    /// Creates the store.
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

    /// Creates the store; `None` if the system has no room for a table of that many keys.
    ///
    /// ```
    /// use tidegate_memory::MemoryStore;
    ///
    /// assert!(MemoryStore::builder().max_keys(1_000).try_build().is_some());
    /// assert!(MemoryStore::builder().max_keys(usize::MAX).try_build().is_none());
    /// ```
    pub fn try_build(self) -> Option<MemoryStore<C>>
    where
        C: Clock,
    {
        let table = WordTable::new(self.max_keys)?;
        Some(self.build_over(table))
    }

    /// Creates the store over an empty table.
    pub(crate) fn build_over(self, table: WordTable) -> MemoryStore<C>
    where
        C: Clock,
    {
        let record_bytes = self.max_keys.saturating_mul(RECORD_BYTES_PER_KEY);
        let epoch = self.clock.now().as_micros();
        MemoryStore {
            epoch,
            words_end: epoch.saturating_add(word::INSTANT_END - word::REACH_US_MAX),
            clock: self.clock,
            seeds: self.seeds.unwrap_or_else(HashSeeds::of_process),
            table,
            records: Records::new(record_bytes),
            overflow_until: AtomicU64::new(0),
            movable: AtomicU64::new(0),
            moved_back: AtomicU64::new(0),
            state: ProcessState::default(),
        }
    }
}
