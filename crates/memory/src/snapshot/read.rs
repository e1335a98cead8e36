//! Restoring a store from a snapshot, before it is used.

use super::blocks::{BlockKind, BlockReader, SnapshotHead};
use super::entries::{EntryReader, OverflowEntry, WordEntry};
use super::write::is_movable;
use super::{RestoreFailure, RestoredSnapshot, SnapshotError};
use crate::seeds::HashSeeds;
use crate::shard::{KeptRecord, NewKeyAdmission};
use crate::shared_state::{KeptCounts, KeptMember, NEVER};
use crate::table::WordTable;
use crate::{MemoryStore, MemoryStoreBuilder, word};
use std::io::Read;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_core::{Clock, Timestamp};

/// The longest time for which a bucket without requests stays because the clock has gone back: 400
/// days, more than the longest calendar window.
const STAY_MAX_US: u64 = 400 * 86_400_000_000;

/// Error of a block whose checksum matches: another version has written it.
const MALFORMED: SnapshotError = SnapshotError::Damaged {
    what: "an entry is malformed",
};

/// A store that is being restored.
struct StoreRestoration<'a, C> {
    store: &'a MemoryStore<C>,
    now: Timestamp,
    /// The time by which instants of buckets are brought forward.
    earlier_us: u64,
    /// The time by which ends of sets and counts are brought forward.
    wall_behind_us: u64,
    restored: RestoredSnapshot,
    /// Number of entries that were read.
    entries: u64,
}

impl<C: Clock> MemoryStoreBuilder<C> {
    /// Creates the store with the buckets, sets and counts of a snapshot, and with its seeds. The store can
    /// write snapshots itself.
    ///
    /// `max_keys` may differ from that of the store that was written. Buckets without room are
    /// [counted](RestoredSnapshot::without_room).
    ///
    /// ```
    /// use tidegate_memory::MemoryStore;
    /// use tidegate_memory::snapshot::SnapshotError;
    ///
    /// let restored = MemoryStore::builder().max_keys(10).restore(&mut &b"something else"[..]);
    /// let failure = restored.expect_err("it is not a snapshot");
    /// assert!(matches!(failure.error, SnapshotError::Foreign));
    /// let store = failure.builder.with_snapshots().build();
    /// assert_eq!(store.stats().buckets, 0);
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreFailure`] if the bytes are not a whole, unchanged snapshot of a format that this version
    /// reads. It has the builder, to go on without the snapshot.
    pub fn restore(
        self,
        input: &mut dyn Read,
    ) -> Result<(MemoryStore<C>, RestoredSnapshot), RestoreFailure<C>> {
        let max_keys = self.max_keys;
        let mut blocks = BlockReader::new(input);
        let (head, seeds) = match head(&mut blocks) {
            Ok(head) => head,
            Err(error) => {
                return Err(RestoreFailure {
                    error,
                    builder: self,
                });
            }
        };
        let Some(table) = WordTable::new(max_keys) else {
            let error = SnapshotError::Memory;
            return Err(RestoreFailure {
                error,
                builder: self,
            });
        };
        let builder = Self {
            seeds: Some(seeds),
            ..self
        };
        let store = builder.build_over(table);
        match StoreRestoration::new(&store, head).all(&mut blocks) {
            Ok(restored) => Ok((store, restored)),
            Err(error) => {
                let builder = MemoryStoreBuilder {
                    max_keys,
                    clock: store.clock,
                    seeds: None,
                };
                Err(RestoreFailure { error, builder })
            }
        }
    }
}

/// Reads the header, and returns it with its seeds.
fn head(blocks: &mut BlockReader<'_>) -> Result<(SnapshotHead, HashSeeds), SnapshotError> {
    let head = blocks.head()?;
    let seeds = HashSeeds::of(head.seeds);
    if seeds.probe() != head.probe {
        return Err(SnapshotError::Hash);
    }
    Ok((head, seeds))
}

impl<'a, C: Clock> StoreRestoration<'a, C> {
    fn new(store: &'a MemoryStore<C>, head: SnapshotHead) -> Self {
        let now = store.clock.now();
        let behind = head.written_us.saturating_sub(now.as_micros());
        let wall_now = store.state.now().as_micros();
        Self {
            store,
            now,
            earlier_us: behind.saturating_sub(STAY_MAX_US),
            wall_behind_us: head.wall_us.saturating_sub(wall_now),
            restored: RestoredSnapshot {
                written_at: Timestamp::from_micros(head.written_us),
                clock_behind_us: behind,
                note: head.note,
                ..RestoredSnapshot::default()
            },
            entries: 0,
        }
    }

    /// Restores all entries.
    fn all(mut self, blocks: &mut BlockReader<'_>) -> Result<RestoredSnapshot, SnapshotError> {
        let mut entries = Vec::new();
        loop {
            let kind = blocks.block(&mut entries)?;
            if kind == BlockKind::End {
                self.check_end(&entries)?;
                return Ok(self.restored);
            }
            let mut reader = EntryReader(&entries);
            self.block(kind, &mut reader).ok_or(MALFORMED)?;
        }
    }

    /// Restores the entries of a block; `None` if one is malformed.
    fn block(&mut self, kind: BlockKind, reader: &mut EntryReader<'_>) -> Option<()> {
        match kind {
            BlockKind::End => {}
            BlockKind::Words => {
                while !reader.is_at_end() {
                    self.entries = self.entries.saturating_add(1);
                    let word = reader.word()?;
                    let is_restored = self.word(word);
                    self.count(is_restored);
                }
            }
            BlockKind::Records => {
                while !reader.is_at_end() {
                    self.entries = self.entries.saturating_add(1);
                    let record = reader.record()?;
                    let is_restored = self.record(record);
                    self.count(is_restored);
                }
            }
            BlockKind::Overflow => {
                while !reader.is_at_end() {
                    self.entries = self.entries.saturating_add(1);
                    let entry = reader.overflow()?;
                    let is_restored = self.overflow(entry);
                    self.count(is_restored);
                }
            }
            BlockKind::Set => self.set(reader)?,
            BlockKind::Counts => self.counts(reader)?,
        }
        Some(())
    }

    /// Counts a bucket: restored, without room, or full again.
    fn count(&mut self, is_restored: Option<bool>) {
        let count = match is_restored {
            Some(true) => &mut self.restored.buckets,
            Some(false) => &mut self.restored.without_room,
            None => &mut self.restored.expired,
        };
        *count = count.saturating_add(1);
    }

    /// Restores a word in place of the word or record that the key has.
    fn word(&mut self, entry: WordEntry) -> Option<bool> {
        let (store, fingerprint) = (self.store, entry.fingerprint);
        let at = entry.at.saturating_sub(self.earlier_us);
        let instant = store.since_epoch(self.now);
        // As instants, because a word of this store has none from before its start.
        if at < self.now.as_micros() {
            return None;
        }
        let word = word::pack(at.saturating_sub(store.epoch), entry.small);
        let mut stripe = store.table.hold(store.table.stripe_of(fingerprint));
        let shard = store.records.shard_of(fingerprint);
        store.records.lock(shard).remove(fingerprint, self.now);
        match store.table.claim(&mut stripe, fingerprint, word, instant) {
            Ok((_, true)) => Some(true),
            Ok((place, false)) => {
                let old = store.table.load(place, fingerprint).ok()?;
                Some(store.table.swap(place, old, word))
            }
            Err(_) => Some(false),
        }
    }

    /// Restores a record in place of the word or record that the key has.
    fn record(&mut self, mut record: KeptRecord) -> Option<bool> {
        let (store, fingerprint) = (self.store, record.fingerprint);
        record.fresh_at = self.earlier(record.fresh_at);
        if record.fresh_at <= self.now {
            return None;
        }
        let mut stripe = store.table.hold(store.table.stripe_of(fingerprint));
        let instant = store.since_epoch(self.now);
        store.table.vacate(&mut stripe, fingerprint, instant);
        if is_movable(&record.bucket) {
            store.movable.fetch_max(1, Relaxed);
        }
        let mut shard = store.records.lock(store.records.shard_of(fingerprint));
        Some(shard.restore(record, NewKeyAdmission::IfRoom, self.now))
    }

    /// Restores an overflow bucket, and the keys that it charged.
    fn overflow(&mut self, (mut record, charged): OverflowEntry) -> Option<bool> {
        record.fresh_at = self.earlier(record.fresh_at);
        if record.fresh_at <= self.now {
            return None;
        }
        let until = record.fresh_at.as_micros();
        let mut overflow = self.store.records.lock_overflow();
        let is_restored = overflow.restore(record, charged, self.now);
        self.store.overflow_until.fetch_max(until, Relaxed);
        Some(is_restored)
    }

    /// Restores a part of a set; `None` if an entry is malformed.
    fn set(&mut self, reader: &mut EntryReader<'_>) -> Option<()> {
        let name = reader.name()?;
        let mut members: Vec<KeptMember> = Vec::new();
        while !reader.is_at_end() {
            let (member, end) = reader.member()?;
            members.push((member, self.moved_end(end)));
        }
        self.note_members(members.len());
        let has_room = self.store.state.restore_set(name, members);
        self.note_room(has_room);
        Some(())
    }

    /// Restores a part of a map of counts; `None` if an entry is malformed.
    fn counts(&mut self, reader: &mut EntryReader<'_>) -> Option<()> {
        let name = reader.name()?;
        let [lasts_until, period_end] = reader
            .ends()?
            .map(|end| end.map(|end| Timestamp::from_micros(self.moved_end(end.as_micros()))));
        let mut kept = KeptCounts {
            lasts_until,
            period_end,
            ..KeptCounts::default()
        };
        while !reader.is_at_end() {
            match reader.count()? {
                (false, count) => kept.counts.push(count),
                (true, count) => kept.closing.push(count),
            }
        }
        self.note_members(kept.counts.len().saturating_add(kept.closing.len()));
        let has_room = self.store.state.restore_map(name, kept);
        self.note_room(has_room);
        Some(())
    }

    /// Counts entries of a set or of a map.
    fn note_members(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.entries = self.entries.saturating_add(count);
    }

    /// Counts a set or a map that was not restored as a whole.
    fn note_room(&mut self, has_room: bool) {
        let lost = u64::from(!has_room);
        self.restored.without_room = self.restored.without_room.saturating_add(lost);
    }

    /// Returns the end of a member as long from now as it was from the snapshot, if the clock has gone back.
    fn moved_end(&self, end: u64) -> u64 {
        match end {
            NEVER => NEVER,
            end => end.saturating_sub(self.wall_behind_us),
        }
    }

    /// Returns the instant until which a state without requests may stay.
    fn earlier(&self, at: Timestamp) -> Timestamp {
        Timestamp::from_micros(at.as_micros().saturating_sub(self.earlier_us))
    }

    /// Checks the number of entries at the end.
    fn check_end(&self, entries: &[u8]) -> Result<(), SnapshotError> {
        if entries == self.entries.to_le_bytes() {
            return Ok(());
        }
        let what = "its number of entries is wrong";
        Err(SnapshotError::Damaged { what })
    }
}
