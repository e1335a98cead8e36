//! Buckets in this process: bounded, lock-light, exact.
//!
//! A bucket whose whole state is an instant and a small number is one 64-bit word in a table of
//! fingerprints that is laid out once and never grows: 32 bytes for each of
//! [`max_keys`](MemoryStoreBuilder::max_keys), a load and a compare-and-swap for a decision, no write at all
//! for a refusal. What needs more room than a word lives in [sharded records](records). A request
//! over several buckets locks their words, one bit each, in one order for everybody, and is decided
//! all or nothing.
//!
//! | module | what it is |
//! |---|---|
//! | [`word`] | a bucket's state in 64 bits, one of them a lock |
//! | [`table`] | fingerprints and words: finding, claiming and taking over slots |
//! | [`records`] | states that do not fit a word |
//! | `overflow`, `filter` | buckets that keys share for which no place is left, and which keys they charged |
//! | [`store`] | the store: where a bucket goes, one bucket, several buckets, and from one place to the other |
//! | `shared_state` | sets and counts of one process |
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

// A new algorithm, operation or state is an error wherever it matters, and nowhere a guess.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod clock;
mod filter;
#[cfg(all(loom, test))]
mod loom_tests;
mod overflow;
pub mod records;
mod shared_state;
pub mod store;
mod sync;
pub mod table;
pub mod word;

pub use clock::SystemClock;
pub use overflow::{Overflowed, Shared};
pub use store::{MemoryStats, MemoryStore, MemoryStoreBuilder};
