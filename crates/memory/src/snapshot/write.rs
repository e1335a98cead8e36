//! The walk through a store that others use at the same time.
//!
//! 1. Records, a few at a time under the mutex of their shard.
//! 2. Words, without a lock.
//! 3. Words again: those that the first walk did not see. Records are not read again for this, because a
//!    mark of a settled reservation is a word.
//! 4. Records again, if a word became a record since step 1: it may have left the table before it was read.
//! 5. Overflow buckets, sets and counts.
//!
//! Of two entries for a key, the later one counts. A key that moved there and back again could be missed by
//! all steps. Both moves are counted, and if there were both, all steps are repeated.

use super::SnapshotTotals;
use super::blocks::{BLOCK_BYTES, BlockKind, BlockWriter, SnapshotHead};
use super::entries::{
    self, OverflowEntry, WordEntry, put_member, put_overflow, put_record, put_text,
};
use crate::MemoryStore;
use crate::shard::KeptRecord;
use crate::shared_state::KeptCounts;
use crate::table::SlotTags;
use crate::word;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::Ordering::Acquire;
use tidegate_core::{Bucket, Clock, Timestamp};

/// Number of records that are copied under one lock.
const PIECE: usize = 16;

/// Attempts to walk through a store in which keys move there and back.
const WALKS_MAX: u32 = 3;

/// The entries of the next block.
#[derive(Default)]
struct NextBlock {
    entries: Vec<u8>,
    count: u64,
}

impl NextBlock {
    /// Writes the block if it is long enough.
    fn flush_if_full(&mut self, out: &mut BlockWriter<'_>, kind: BlockKind) -> io::Result<bool> {
        if self.entries.len() < BLOCK_BYTES {
            return Ok(false);
        }
        self.flush(out, kind)?;
        Ok(true)
    }

    /// Writes the block, if it has any entries.
    fn flush(&mut self, out: &mut BlockWriter<'_>, kind: BlockKind) -> io::Result<()> {
        let count = std::mem::take(&mut self.count);
        out.block(kind, (&mut self.entries, count))
    }
}

impl<C: Clock> MemoryStore<C> {
    /// Writes all buckets that still matter, and the sets and counts of this process, for
    /// [`restore`](crate::MemoryStoreBuilder::restore) in another process. `note` is for the caller, up to
    /// [`NOTE_BYTES_MAX`](super::NOTE_BYTES_MAX) bytes. See the [module](super) for what a snapshot has.
    ///
    /// Reads the whole table, so a thread that serves requests must not call it. Writes are of 64 KiB.
    /// It takes a byte of memory for each slot, and a copy of the largest set.
    ///
    /// # Errors
    ///
    /// Those of `out`; [`ErrorKind::Unsupported`] for a store that was built without
    /// [`with_snapshots`](crate::MemoryStoreBuilder::with_snapshots); [`ErrorKind::ResourceBusy`] if keys
    /// moved between the table and the records all the time.
    pub fn write_snapshot(&self, out: &mut dyn Write, note: &[u8]) -> io::Result<SnapshotTotals> {
        let Some(seeds) = self.seeds.kept() else {
            let why = "the store was built without snapshots";
            return Err(io::Error::new(ErrorKind::Unsupported, why));
        };
        let now = self.clock.now();
        let head = SnapshotHead {
            written_us: now.as_micros(),
            wall_us: self.state.now().as_micros(),
            seeds,
            probe: self.seeds.probe(),
            note: note.to_vec(),
        };
        let mut out = BlockWriter::begin(out, &head)?;
        self.write_buckets(&mut out, now)?;
        self.write_overflow(&mut out, now)?;
        self.write_state(&mut out)?;
        out.end()
    }

    /// Carries out steps 1 to 4.
    fn write_buckets(&self, out: &mut BlockWriter<'_>, now: Timestamp) -> io::Result<()> {
        for _ in 0..WALKS_MAX {
            let moved = self.moves();
            self.write_records(out, now, |_| true)?;
            let mut tags = SlotTags::of(&self.table);
            for _ in 0..2 {
                self.write_words(out, &mut tags, now)?;
            }
            if self.moves().0 != moved.0 {
                self.write_records(out, now, is_movable)?;
            }
            let since = self.moves();
            if since.0 == moved.0 || since.1 == moved.1 {
                return Ok(());
            }
        }
        let why = "buckets moved all the time while they were written";
        Err(io::Error::new(ErrorKind::ResourceBusy, why))
    }

    /// Returns the number of words that became records, and of records that became words.
    fn moves(&self) -> (u64, u64) {
        (self.movable.load(Acquire), self.moved_back.load(Acquire))
    }

    /// Writes the words that `tags` has not noted and that matter, and notes them. Takes no lock.
    fn write_words(
        &self,
        out: &mut BlockWriter<'_>,
        tags: &mut SlotTags,
        now: Timestamp,
    ) -> io::Result<()> {
        let instant = self.since_epoch(now);
        let mut next = NextBlock::default();
        let matters = |word| !word::is_fresh(word, instant);
        self.table.walk(tags, matters, |fingerprint, word| {
            WordEntry::of(fingerprint, word, self.epoch).put(&mut next.entries);
            next.count = next.count.saturating_add(1);
            next.flush_if_full(out, BlockKind::Words).map(drop)
        })?;
        next.flush(out, BlockKind::Words)
    }

    /// Writes the records that are wanted and matter. A shard is locked while its fingerprints are copied,
    /// and then for a few records at a time; nothing is written meanwhile.
    fn write_records(
        &self,
        out: &mut BlockWriter<'_>,
        now: Timestamp,
        is_wanted: impl Fn(&Bucket) -> bool,
    ) -> io::Result<()> {
        let mut next = NextBlock::default();
        for nth in self.records.shard_numbers() {
            let fingerprints = self.records.lock(nth).fingerprints();
            for piece in fingerprints.chunks(PIECE) {
                let kept: Vec<KeptRecord> = {
                    let shard = self.records.lock(nth);
                    let kept = piece.iter().filter_map(|key| shard.to_keep(*key, now));
                    kept.filter(|kept| is_wanted(&kept.bucket)).collect()
                };
                for record in kept {
                    put_record(&mut next.entries, &record);
                    next.count = next.count.saturating_add(1);
                }
                next.flush_if_full(out, BlockKind::Records)?;
            }
        }
        next.flush(out, BlockKind::Records)
    }

    /// Writes the overflow buckets that matter, with the keys that they charged, a few at a time.
    fn write_overflow(&self, out: &mut BlockWriter<'_>, now: Timestamp) -> io::Result<()> {
        let mut next = NextBlock::default();
        let names = self.records.lock_overflow().names();
        for piece in names.chunks(PIECE) {
            let kept: Vec<OverflowEntry> = {
                let overflow = self.records.lock_overflow();
                let kept = piece.iter().filter_map(|name| overflow.to_keep(*name, now));
                kept.collect()
            };
            for entry in kept {
                put_overflow(&mut next.entries, &entry);
                next.count = next.count.saturating_add(1);
            }
            next.flush_if_full(out, BlockKind::Overflow)?;
        }
        next.flush(out, BlockKind::Overflow)
    }

    /// Writes sets and counts. No decision waits for their mutex.
    fn write_state(&self, out: &mut BlockWriter<'_>) -> io::Result<()> {
        let now = self.state.now();
        let mut next = NextBlock::default();
        for name in self.state.set_names() {
            for member in self.state.set_to_keep(&name, now) {
                if next.entries.is_empty() {
                    put_text(&mut next.entries, name.as_bytes());
                }
                put_member(&mut next.entries, &member);
                next.count = next.count.saturating_add(1);
                next.flush_if_full(out, BlockKind::Set)?;
            }
            next.flush(out, BlockKind::Set)?;
        }
        for name in self.state.map_names() {
            if let Some(counts) = self.state.map_to_keep(&name, now) {
                write_counts(out, &name, &counts)?;
            }
        }
        Ok(())
    }
}

/// Writes a map of counts, in blocks that all have its ends.
fn write_counts(out: &mut BlockWriter<'_>, name: &str, counts: &KeptCounts) -> io::Result<()> {
    let mut next = NextBlock::default();
    entries::put_counts(&mut next.entries, name, counts);
    let present = counts.counts.iter().map(|count| (false, count));
    let closing = counts.closing.iter().map(|count| (true, count));
    for (is_closing, count) in present.chain(closing) {
        entries::put_count(&mut next.entries, is_closing, count);
        next.count = next.count.saturating_add(1);
        if next.flush_if_full(out, BlockKind::Counts)? {
            entries::put_counts(&mut next.entries, name, counts);
        }
    }
    next.flush(out, BlockKind::Counts)
}

/// Returns true if a state of this kind may have been a word.
pub(super) fn is_movable(bucket: &Bucket) -> bool {
    match bucket {
        Bucket::Tokens(_) | Bucket::Lent(_) | Bucket::Fixed(_) | Bucket::Calendar(_) => true,
        Bucket::Sliding(_) | Bucket::Log(_) | Bucket::Permits(_) => false,
    }
}
