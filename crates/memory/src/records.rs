//! States that do not fit a word: sliding windows and logs, refundable buckets, coarse ticks.
//!
//! [Shards](Shard) of a hash table, each under a mutex, and the overflow buckets under one more.
//!
//! A decision on a record locks its shard, takes the state out, decides and stores it again. Two
//! requests for records of one shard wait for each other; there are 64 shards.
//!
//! ```
//! use tidegate_core::{Algorithm, Bucket, BucketState, Quota, Timestamp};
//! use tidegate_memory::records::Records;
//!
//! let records = Records::new(1 << 20);
//! let quota = Quota::new(10, 1_000_000).algorithm(Algorithm::SlidingLog).build()?;
//! let (key, now) = (42, Timestamp::from_millis(1_700_000_000_000));
//!
//! let mut shard = records.lock(records.shard_of(key));
//! let mut bucket = shard.take(key, &quota, now);
//! bucket.charge(&quota, 3, now);
//! shard.put(key, bucket, &quota, now);
//! assert!(shard.contains(key));
//! drop(shard);
//! assert_eq!(records.usage(now).records, 1);
//! # Ok::<(), tidegate_core::QuotaError>(())
//! ```

use crate::overflow::Overflow;
pub use crate::shard::{NewKeyAdmission, RecordUsage, Shard};
use crate::sync::{Mutex, MutexGuard};
use tidegate_core::Timestamp;

/// Number of shards: enough that threads seldom wait for each other.
const SHARDS: usize = 64;

/// States that do not fit a word, in shards with a mutex each.
///
/// Records are all states of sliding windows, sliding logs and bucketed windows. So are the states
/// of other quotas that are not [narrow](tidegate_core::Quota::is_narrow): refundable, scaled, in
/// coarser ticks, or with large numbers. A record takes 160 bytes, a log more.
///
/// # Lock order
///
/// Stripes of the table come first, then shards in rising order, then the overflow buckets. A
/// thread that follows this order cannot deadlock with another.
#[derive(Debug)]
pub struct Records {
    /// The shards, chosen by bits of the fingerprint.
    shards: Box<[Mutex<Shard>]>,
    /// Overflow buckets. Locked after all shards, so that a thread that holds the place of a
    /// missing key may lock it as well.
    overflow: Box<Mutex<Overflow>>,
}

impl Records {
    /// Creates records that take about `bytes_max` bytes at most, or a quarter of a megabyte if
    /// that is more.
    pub fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max / SHARDS;
        let shard = || Mutex::new(Shard::new(bytes_max));
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            overflow: Box::new(Mutex::new(Overflow::new(bytes_max))),
        }
    }

    /// Returns the shard of `fingerprint`. Callers that lock several do so in rising order.
    pub fn shard_of(&self, fingerprint: u64) -> usize {
        // The hash table in the shard uses the highest and the lowest bits.
        usize::try_from(fingerprint >> 40).unwrap_or(0) % SHARDS
    }

    /// Locks a shard.
    ///
    /// # Panics
    ///
    /// If `nth` is not from [`shard_of`](Self::shard_of).
    #[expect(
        clippy::indexing_slicing,
        reason = "shards are named by `shard_of` alone, which stays within them"
    )]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock()
    }

    /// Returns the numbers of all shards.
    #[cfg(not(loom))]
    pub(crate) fn shard_numbers(&self) -> std::ops::Range<usize> {
        0..self.shards.len()
    }

    /// Locks the overflow buckets. No shard may be locked after that.
    pub(crate) fn lock_overflow(&self) -> MutexGuard<'_, Overflow> {
        self.overflow.lock()
    }

    /// Returns the usage of all shards and of the overflow buckets at `now`. It locks one shard
    /// after the other.
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
