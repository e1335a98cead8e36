//! A store as bytes, so that the next process continues with its buckets.
//!
//! [`MemoryStore::write_snapshot`](crate::MemoryStore::write_snapshot) writes, and
//! [`MemoryStoreBuilder::restore`](crate::MemoryStoreBuilder::restore) reads. Files, intervals and locks
//! are the caller's: this module knows only [`Write`](std::io::Write) and [`Read`](std::io::Read).
//!
//! | module | content |
//! |---|---|
//! | `blocks` | the header, blocks, and their checksums |
//! | `entries` | buckets, sets and counts as bytes |
//! | `write`, `read` | the walk through a store, and the way back |
//! | `checksum` | CRC-64 |
//!
//! # What it has
//!
//! Every bucket that still matters: words, records, blocks, marks of settled reservations, overflow
//! buckets with the keys that they charged; and the sets and counts of this process, so that bans stay.
//! A bucket is in it under the hash of its name, so the snapshot has the seeds of the hash as well: it
//! is as secret as they are. A state is in it with instants since the Unix epoch, and without its quota:
//! the next process reads it under its own quotas, as after a reload.
//!
//! # Consistency
//!
//! Writing stops no decision: it reads words without a lock, and records a few at a time. Each bucket is
//! as it was at one instant between the start and the end of the write. So a snapshot has every charge
//! that was made before its start, and may have some that were made since. Of a request over several
//! buckets that is decided meanwhile, it may have a part. A later process therefore grants no unit twice
//! that was charged before the start of the snapshot.
//!
//! A refund is never in it without the mark that prevents a second one: records are read before words,
//! and words that are new after the first walk are read in a second.
//!
//! # Time
//!
//! Time passes between two processes: a bucket that is full again by then is left out. If the clock
//! of the next process is behind that of the snapshot, states keep their instants. A bucket then counts
//! the difference in addition to what it owes, but never more than an empty bucket
//! ([`is_beyond_reach`](tidegate_core::BucketState::is_beyond_reach)). Ends of bans are moved by the
//! difference. If the clock jumps forward, buckets fill by the difference, as they do in any process.
//!
//! # Example
//!
//! ```
//! use tidegate_core::{Ask, Quota};
//! use tidegate_memory::MemoryStore;
//!
//! let quota = Quota::new(10, 3_600_000_000).build()?;
//! let before = MemoryStore::builder().max_keys(1_000).with_snapshots().build();
//! before.decide_one(&Ask::take(b"api/ann", &quota, 4));
//! let mut bytes = Vec::new();
//! before.write_snapshot(&mut bytes, b"")?;
//!
//! let (after, restored) = MemoryStore::builder().max_keys(1_000).restore(&mut &*bytes)?;
//! assert_eq!(restored.buckets, 1);
//! assert_eq!(after.decide_one(&Ask::look(b"api/ann", &quota)).remaining, 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod checksum;
mod entries;
mod read;
mod write;

use std::fmt;
use std::io;
use tidegate_core::Timestamp;

/// Maximum length of the bytes that a caller adds to a snapshot.
pub const NOTE_BYTES_MAX: usize = 4 << 10;

/// The result of writing a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotTotals {
    /// Number of buckets.
    pub buckets: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Checksum of the content without its time: equal for two snapshots of a store that has not
    /// changed in between.
    pub digest: u64,
}

/// The result of reading a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredSnapshot {
    /// Number of buckets that were restored.
    pub buckets: u64,
    /// Number of buckets left out because they are full again.
    pub expired: u64,
    /// Number of buckets, sets and counts for which there was no room: their subjects start with full
    /// buckets.
    pub without_room: u64,
    /// The store's time at the start of the write.
    pub written_at: Timestamp,
    /// The time by which the clock of this store is behind that of the snapshot, in microseconds.
    pub clock_behind_us: u64,
    /// The bytes that the caller added.
    pub note: Vec<u8>,
}

/// A store that could not be restored.
#[derive(Debug)]
pub struct RestoreFailure<C> {
    /// The reason.
    pub error: SnapshotError,
    /// The settings of the store, to build it without the snapshot.
    pub builder: crate::MemoryStoreBuilder<C>,
}

impl<C> fmt::Display for RestoreFailure<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<C: fmt::Debug> std::error::Error for RestoreFailure<C> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// The reason why a snapshot cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It cannot be read.
    Io(io::Error),
    /// It is no snapshot.
    Foreign,
    /// It has a format that this version does not know.
    Version {
        /// The number of its format.
        found: u32,
    },
    /// It was written by a program that hashes names differently, so that no bucket would be found.
    Hash,
    /// It is truncated or was changed.
    Damaged {
        /// Description of the damage.
        what: &'static str,
    },
    /// The system has no memory for the store.
    Memory,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read it: {error}"),
            Self::Foreign => f.write_str("it is not a snapshot"),
            Self::Version { found } => write!(
                f,
                "its format is version {found}, and this program reads version {}",
                blocks::VERSION
            ),
            Self::Hash => {
                f.write_str("it was written by a program or on a machine that hashes differently")
            }
            Self::Damaged { what } => write!(f, "it is damaged: {what}"),
            Self::Memory => f.write_str("not enough memory for the store"),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Foreign
            | Self::Version { .. }
            | Self::Hash
            | Self::Damaged { .. }
            | Self::Memory => None,
        }
    }
}
