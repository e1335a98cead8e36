//! Quotas, the algorithms that count them, and the contract of the stores that keep them.
//!
//! This crate holds the types and the arithmetic of Tidegate and nothing else: no I/O, no clock, no
//! runtime, no serialisation, no dependency. Time comes in as an argument and state as a value, so
//! that every store, in memory or in Redis, decides alike.
//!
//! | module | content |
//! |---|---|
//! | [`quota`] | amount, period and algorithm; rejects numbers that cannot be represented |
//! | [`algorithm`] | the algorithms: pure functions over exact integers |
//! | [`ask`] | the check request: a bucket, a quota, an operation |
//! | [`outcome`], [`reply`] | the answer: of one bucket, and of the whole request |
//! | [`receipt`] | the record of a charge, needed for a refund |
//! | [`step`] | one atomic decision over several buckets, all or nothing |
//! | [`store`] | the trait of all stores, and its laws |
//! | [`cas`] | a store over any backend that can compare and swap |
//! | [`shared_state`] | state that instances share in addition to buckets: sets, counts, instances, a secret |
//! | [`time`] | instants and waits, in microseconds |
//! | [`clock`] | the source of time |
//!
//! # Example
//!
//! Ten a second with a burst of two, decided at an instant that the caller passes:
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
//!
//! # Exactness
//!
//! All arithmetic is on integers below 2^53, so that a store that only has doubles, such as a Lua
//! script in Redis, computes the same. [`QuotaSpec::build`] rejects every quota for which a product
//! could leave that range. No fraction of a unit is ever lost: the same requests at the same
//! instants get the same answers from every store.
//!
//! # Several limits
//!
//! [`step::decide`] decides a request against all its buckets. If one enforced bucket refuses, none
//! is charged:
//!
//! ```
//! use tidegate_core::{Ask, Bucket, Quota, Timestamp, step};
//!
//! let (second, minute) = (Quota::new(2, 1_000_000).build()?, Quota::new(1, 60_000_000).build()?);
//! let asks = [Ask::take(b"a", &second, 1), Ask::take(b"b", &minute, 1)];
//! let mut buckets = [Bucket::new(&second), Bucket::new(&minute)];
//! let now = Timestamp::from_millis(1_700_000_000_000);
//!
//! assert!(step::decide(&asks, &[0, 1], &mut buckets, now).passed);
//! let reply = step::decide(&asks, &[0, 1], &mut buckets, now);
//! assert!(!reply.passed, "the limit per minute refuses");
//! assert_eq!(reply.outcomes[0].remaining, 1, "the limit per second is not charged");
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
mod exact;
pub mod outcome;
pub mod quota;
pub mod receipt;
pub mod reply;
pub mod shared_state;
pub mod step;
pub mod store;
pub mod time;

pub use algorithm::{Bucket, BucketState};
pub use ask::{Ask, LimitMode, Op};
pub use clock::{Clock, ManualClock};
pub use error::{PartialAnswer, StoreError, StoreErrorKind};
pub use outcome::{BucketReading, ChargedOutcome, Outcome, Outcomes};
pub use quota::{Algorithm, Align, BandId, OnChange, QueueTurn, Quota, QuotaError, QuotaSpec};
pub use receipt::Receipt;
pub use reply::{AppliedAsks, Reply};
pub use shared_state::SharedState;
pub use store::{Atomicity, Inspection, Store};
pub use time::{Timestamp, Wait};
