//! Decides whether a request may pass.
//!
//! A [`Limiter`] combines a configuration and a store. It decides a [`Request`] and returns a [`Decision`]:
//! allowed or refused, the binding limit, the units that remain, and when to retry. The program `tidegate`
//! serves the same engine; the library needs no server.
//!
//! ```
//! use tidegate::{Limiter, Request};
//!
//! let limiter = Limiter::from_yaml("
//! policies:
//!   - name: api
//!     limits:
//!       - { name: per-client, key: ip, rate: 1/min burst 2 }
//! ")?;
//!
//! let request = Request::new().ip("192.0.2.1".parse()?);
//! assert!(limiter.check_now(&request)?.is_allowed());
//! assert!(limiter.check_now(&request)?.is_allowed());
//!
//! let refused = limiter.check_now(&request)?;
//! let binding = refused.binding().expect("a limit applied");
//! assert_eq!((binding.limit(), binding.key()), ("per-client", "ip:192.0.2.1"));
//! assert!(binding.retry_after().is_some_and(|wait| wait.as_secs() < 60));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Limiter::check`] is the asynchronous form, for stores across the network. [`Limiter::check_now`] is for
//! the in-memory store and never waits.
//!
//! Limits can also be written in code: see [`LimitSpec`]. Buckets live in memory or in Redis: see
//! [`LimiterBuilder::start`].

// A new algorithm, operation or state must be a compile error at every match, never fall into a wildcard arm.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod answers;
mod any;
mod attempt;
mod build;
mod checking;
mod counting;
mod decision;
mod each;
mod error;
mod failure;
mod files;
mod fresh;
mod giving;
mod guarding;
mod known;
mod limiter;
mod naming;
mod planning;
mod process;
mod purpose;
mod question;
#[cfg(feature = "redis")]
pub mod redis;
mod repeated;
mod replaced;
mod reserving;
mod rules;
mod spec;
mod throttle;
mod waiting;

pub use any::AnyStore;
pub use attempt::{Attempt, AttemptTerms, PendingDecision};
pub use build::LimiterBuilder;
pub use counting::{Banned, CountingStatus};
pub use decision::{AppliedBand, DecidedBy, Decision, HitResult, LimitHits, SkippedBand};
pub use error::{BuildError, CheckError};
pub use failure::{COME_BACK, StoreHealth};
#[doc(hidden)]
pub use files::{append_file, read_file, read_text};
#[doc(hidden)]
pub use fresh::delay as retry_delay;
pub use known::ListStatus;
pub use limiter::Limiter;
pub use planning::{FilePlans, LoadPlans, LoadedPlans, PlanState, PlansError};
pub use process::ProcessEnvironment;
pub use purpose::AskPurpose;
pub use repeated::Repeated;
pub use reserving::{Reservation, SettleError, SettleState, SettledReservation};
pub use rules::Rules;
pub use spec::LimitSpec;
pub use throttle::{Throttle, Throttled};
pub use waiting::WaitingAt;

pub use tidegate_core::shared_state;
pub use tidegate_core::{
    Algorithm, Align, Clock, LimitMode, ManualClock, OnChange, SharedState, Store, StoreError,
    StoreErrorKind, Timestamp, Wait,
};
pub use tidegate_memory::{MemoryStats, MemoryStore, Overflowed, SystemClock};
pub use tidegate_policy::config::{
    ConfigProblem, Environment, LocalShare, NoEnvironment, Secret, Severity, StoreSettings,
    StoreTarget,
};
pub use tidegate_policy::guard::{AnswerReason, Guard, GuardEffect, Guards};
pub use tidegate_policy::plan;
pub use tidegate_policy::respond;
pub use tidegate_policy::{
    Client, Config, ConfigErrors, Descriptor, DescriptorHits, Evaluate, KeyPart, Missing,
    OnFailure, Policy, Request, ReserveRules, Respond, ToldLimit,
};
