//! What a limit is, and how one is decided.
//!
//! This crate holds the words and the arithmetic of Tidegate and nothing else: no I/O, no clock of
//! its own, no runtime, no serialisation, no dependency. Time comes in as an argument and state as
//! a value, so that every store, in this process or in Redis, decides alike.
//!
//! | module | what it is |
//! |---|---|
//! | [`quota`] | how much, per how long, by which algorithm; refuses what cannot be represented |
//! | [`algorithm`] | the algorithms: pure functions over exact integers |
//! | [`ask`] | the question: a bucket, a quota, an operation |
//! | [`outcome`] | the answer |
//! | [`step`] | one atomic step over several buckets, all or nothing |
//! | [`store`] | where buckets live: one trait and its laws |
//! | [`cas`] | a store over any other that can compare and swap |
//! | [`shared_state`] | what instances share in addition to buckets: sets, counts, instances, a secret |
//! | [`time`] | instants and waits, in microseconds |
//! | [`clock`] | who tells the time |
//!
//! # Example
//!
//! Ten a second with a burst of two, decided at a moment that the caller names:
//!
//! ```
//! use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
//!
//! let quota = Quota::new(10, 1_000_000).burst(2).build()?;
//! let mut bucket = Bucket::new(&quota);
//! let now = Timestamp::from_millis(1_700_000_000_000);
//!
//! assert!(step::decide_one(&quota, &mut bucket, Op::Take(1), now).is_allowed());
//! assert!(step::decide_one(&quota, &mut bucket, Op::Take(1), now).is_allowed());
//! let refused = step::decide_one(&quota, &mut bucket, Op::Take(1), now);
//! assert!(!refused.is_allowed());
//! assert_eq!(refused.wait.as_micros(), Some(100_000));
//! # Ok::<(), tidegate_core::QuotaError>(())
//! ```
#![warn(clippy::arithmetic_side_effects, clippy::as_conversions)]
// A new algorithm, operation or state is an error wherever it matters, and nowhere a guess.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod algorithm;
pub mod ask;
pub mod cas;
pub mod clock;
pub mod error;
pub mod outcome;
pub mod quota;
pub mod reply;
pub mod shared_state;
pub mod step;
pub mod store;
pub mod time;

pub use algorithm::{Bucket, BucketReading, BucketState};
pub use ask::{Ask, LimitMode, Op, Receipt};
pub use clock::{Clock, ManualClock};
pub use error::{PartialAnswer, StoreError, StoreErrorKind};
pub use outcome::{ChargedOutcome, Outcome, Outcomes};
pub use quota::{Algorithm, Align, BandId, OnChange, QueueTurn, Quota, QuotaError, QuotaSpec};
pub use reply::{AppliedAsks, Reply};
pub use shared_state::SharedState;
pub use store::{Atomicity, Inspection, Store};
pub use time::{Timestamp, Wait};
