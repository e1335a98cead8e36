//! Buckets in memory: bounded, lock-light, exact.
//!
//! A bucket whose whole state is an instant and a small number is one 64-bit word in a table of
//! fingerprints that is allocated once and never grows. It takes 32 bytes for each of
//! [`max_keys`](MemoryStoreBuilder::max_keys). A decision is a load and a compare-and-swap; a
//! refusal writes nothing. A state that needs more room than a word is a [sharded record](records).
//! A request over several buckets locks their words, one bit each, in the same order for all
//! callers, and is decided all or nothing.
//!
//! | module | content |
//! |---|---|
//! | [`word`] | a bucket's state in 64 bits, one of them a lock |
//! | [`table`] | fingerprints and words: finding, claiming and taking over slots |
//! | [`records`], `shard` | states that do not fit a word |
//! | `overflow`, `filter` | buckets shared by keys without a slot, and the keys that they charged |
//! | [`store`] | the store: one bucket, several buckets, and moves between table and records |
//! | `shared_state` | sets and counts of one process |
//! | `seeds` | the seeds of hashes |
//! | [`snapshot`] | the store as a file, for the next process |
//! | [`clock`] | real time |
//!
//! # Example
//!
//! ```
//! use tidegate_core::{Ask, Quota};
//! use tidegate_memory::MemoryStore;
//!
//! let store = MemoryStore::builder().max_keys(10_000).build();
//! let quota = Quota::new(100, 60_000_000).build()?;
//!
//! let outcome = store.decide_one(&Ask::take(b"api/per-client/ip:192.0.2.1", &quota, 1));
//! assert!(outcome.is_allowed());
//! assert_eq!(outcome.remaining, 99);
//! # Ok::<(), tidegate_core::QuotaError>(())
//! ```
//!
//! # Several limits
//!
//! [`MemoryStore::decide_now`] charges all buckets of a request, or none:
//!
//! ```
//! use tidegate_core::{Ask, Quota};
//! use tidegate_memory::MemoryStore;
//!
//! let store = MemoryStore::builder().max_keys(10_000).build();
//! let (second, day) = (Quota::new(10, 1_000_000).build()?, Quota::new(2, 86_400_000_000).build()?);
//! let asks = [
//!     Ask::take(b"per-second/alice", &second, 1),
//!     Ask::take(b"per-day/alice", &day, 1),
//! ];
//! assert!(store.decide_now(&asks).passed);
//! assert!(store.decide_now(&asks).passed);
//! let reply = store.decide_now(&asks);
//! assert!(!reply.passed, "the limit per day refuses");
//! assert!(reply.outcomes[0].is_allowed() && !reply.outcomes[1].is_allowed());
//! # Ok::<(), tidegate_core::QuotaError>(())
//! ```
//!
//! # Invariants
//!
//! - No interleaving admits more than a quota allows. `loom_tests` checks every interleaving of two
//!   threads on small tables; the laws of `tidegate-store-laws` check the whole store.
//! - A bucket is never forgotten while it matters. Its slot is taken over only once it is full
//!   again.
//! - Memory is bounded by the builder's numbers, for any number of keys.
//! - No decision waits for I/O, and none allocates unless it creates a record.
//!
//! # Sizing
//!
//! | setting | memory |
//! |---|---|
//! | table | 32 bytes for each of `max_keys`, from the system as slots are used |
//! | records | up to 240 bytes for each of `max_keys`, only for quotas that need them |
//! | overflow buckets | up to 64 KiB for each quota that overflows |
//!
//! Choose `max_keys` as the number of clients that are active within the longest period of a limit,
//! times the limits that apply to each. A table at half load finds a key after one or two slots.
//! [`MemoryStore::stats`] has the number of buckets in use, and [`MemoryStats::shared`] grows if
//! the table is too small.
//!
//! # Failure
//!
//! A store in memory never returns an error, and
//! [`Store::can_fail`](tidegate_core::Store::can_fail) is false. Its buckets end with the process,
//! and after a restart every client begins with a full bucket, unless a [`snapshot`] was written.

// A new algorithm, operation or state is an error wherever it matters, and nowhere a guess.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod clock;
mod filter;
#[cfg(all(loom, test))]
mod loom_tests;
mod overflow;
pub mod records;
mod seeds;
mod shard;
mod shared_state;
#[cfg(not(loom))]
pub mod snapshot;
pub mod store;
mod sync;
pub mod table;
pub mod word;

pub use clock::SystemClock;
pub use overflow::{OverflowCounts, OverflowedLimit};
pub use store::{MemoryStats, MemoryStore, MemoryStoreBuilder};
