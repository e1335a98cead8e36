//! The laws of [`tidegate_core::Store`] as tests that any store can run.
//!
//! | module | contents |
//! |---|---|
//! | [`laws`] | one function for each law; [`store_laws!`] turns them into tests |
//! | [`model`] | each algorithm in exact fractions: the meaning that stores are compared with |
//! | [`history`] | recorded admissions, and by how much they exceed a quota |
//! | [`shared_state`] | a check of the sets and counts that instances share |
//!
//! Implement [`StoreUnderTest`](laws::StoreUnderTest) for your store, or use [`Manual`](laws::Manual) if the store
//! takes its time from a [`ManualClock`](tidegate_core::ManualClock). Then call [`store_laws!`]. The page
//! [Write your own store](https://github.com/tidegate/tidegate/blob/main/docs/how-to/your-own-store.md) has
//! a whole example.
//!
//! The model uses no other crate of Tidegate, so that a bug there cannot hide itself here. The laws and
//! the history use `tidegate-core` alone.
//!
//! ```
//! use tidegate_store_laws::model::{ModelAlgorithm, ModelBucket, ModelQuota};
//!
//! let mut bucket = ModelBucket::new(ModelQuota {
//!     algorithm: ModelAlgorithm::TokenBucket,
//!     amount: 10,
//!     period_us: 1_000_000,
//!     burst: 1,
//!     overdraft: 0,
//! });
//! assert!(bucket.take(0, 1).allowed);
//! assert_eq!(bucket.take(1, 1).wait_us, Some(99_999));
//! ```

// A new algorithm or operation is an error wherever it matters, and nowhere a guess.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod cases;
pub mod history;
pub mod laws;
pub mod model;
pub mod shared_state;

pub use cases::{cases, soak_cases};

/// The page about writing a store: its example must compile and keep the laws.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/your-own-store.md")]
struct Page;
