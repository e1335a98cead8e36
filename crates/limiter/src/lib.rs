//! Exact, distributed rate limiting for Rust programs.
//!
//! A [`Limiter`] decides if a [`Request`] may pass. It returns a [`Decision`]: allowed or refused, the limit
//! that decides, the units that remain, and when to retry. Buckets are in memory, or in Redis or Valkey,
//! where any number of instances share them. A refused request consumes nothing, and several limits are
//! charged atomically: all of them, or none.
//!
//! ```
//! use tidegate::{KeyPart, LimitSpec, Limiter, Request};
//!
//! let limiter = Limiter::builder()
//!     .limit(LimitSpec::new("per-client").key(KeyPart::Ip).band("1/min burst 2"))
//!     .build()?;
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
//! If only a key matters, [`Limiter::keyed`] needs no request:
//!
//! ```
//! use tidegate::{Limiter, Rate};
//!
//! let limiter = Limiter::keyed(Rate::per_second(50).burst(100))?;
//! assert!(limiter.check_key("user-7")?.is_allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Building a limiter
//!
//! [`Limiter::builder`] is the way to all of it. Limits come from code ([`LimitSpec`]), from a configuration
//! in YAML or JSON, or from both. The last call chooses the store: [`LimiterBuilder::build`] for buckets in
//! memory, [`LimiterBuilder::start`] for the store that the settings name. [`Limiter::from_yaml`] and
//! [`Limiter::from_file`] are short forms.
//!
//! ```no_run
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let limiter = tidegate::Limiter::builder()
//!     .file("tidegate.yaml")?
//!     .store_url("redis://127.0.0.1:6379")?
//!     .start()
//!     .await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Deciding requests
//!
//! | method | purpose |
//! |---|---|
//! | [`Limiter::check`] | pass: consumes the cost if it fits, or queues the request where a limit lets it wait |
//! | [`Limiter::check_now`] | the same for buckets in memory, without `async` and without waiting |
//! | [`Limiter::test`] | would it pass? Consumes nothing |
//! | [`Limiter::report`] | charge usage that has already happened |
//! | [`Limiter::check_guards`] | allowlists and blocklists only |
//! | [`Limiter::reserve`] | charge an estimate, and settle it later with [`Limiter::commit`] |
//! | [`Limiter::acquire`], [`renew`](Limiter::renew), [`release`](Limiter::release) | hold permits of requests in flight by an id |
//! | [`Limiter::refund_decision`] | refund a decision whose request did not happen |
//!
//! [`Limiter::attempt`] is the general form for frontends: it decides at once if it can, and otherwise
//! returns a [`PendingDecision`] to be awaited. [`Limiter::prepare_reservation`] does so for a reservation. A
//! refusal is a decision, not an error. A [`CheckError`] means that there is no decision: the policy is
//! unknown, or the store did not answer and the limit has `on_failure: error`.
//!
//! # While the program runs
//!
//! [`Limiter::reload`] replaces the configuration atomically; buckets keep their state. Allowlists and
//! blocklists in files or in Redis, plans with a rate per tenant, and bans by address change without a
//! reload. Each needs a task that the program drives: [`Limiter::keep_lists`], [`Limiter::keep_plans`],
//! [`Limiter::keep_counts`]. Buckets in memory survive a restart in a file, see
//! `LimiterBuilder::snapshot`.
//!
//! If the store does not answer in time, each limit's [`OnFailure`] applies, and [`Decision::decided_by`]
//! reports it.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `config` | yes | configurations in YAML or JSON, and reloads |
//! | `redis` | yes | buckets in Redis or Valkey: the module [`redis`] |
//! | `snapshot` | yes | snapshots of buckets in memory: `LimiterBuilder::snapshot` |
//!
//! # Other crates
//!
//! `tidegate-tower` limits a [tower](https://docs.rs/tower) service, and `tidegate-http` turns HTTP requests
//! into [`Request`]s and decisions into responses. The program `tidegate` serves the same engine to proxies
//! and to programs in other languages. A store of your own implements [`Store`], and `tidegate-store-laws`
//! tests it.

// A new algorithm, operation or state must be a compile error at every match, never fall into a wildcard arm.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(
    not(all(feature = "config", feature = "redis")),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the documentation is that of all features; with fewer, some of its items do not exist"
    )
)]
#![cfg_attr(
    not(feature = "config"),
    expect(dead_code, reason = "only a configuration can be reloaded")
)]

mod addresses;
mod any_store;
mod ask;
mod backend;
mod build;
mod by_limit;
mod charges;
mod dated_store;
mod decision;
mod error;
mod failure;
mod guards;
mod keyed;
mod limiter;
mod lists;
mod naming;
mod overrides;
mod permits;
mod plans;
mod process;
mod purpose;
mod queue;
mod rate;
#[cfg(feature = "redis")]
pub mod redis;
mod refresh;
mod request;
mod request_limits;
mod reservations;
mod retired_value;
mod rules;
mod share;
mod snapshot;
mod spec;
mod state;
mod units;
mod unknown_clients;
mod upkeep;
mod wait_room;

pub use addresses::{AddressBan, CountingStatus};
pub use any_store::AnyStore;
pub use ask::{
    Attempt, AttemptTerms, PendingDecision, PendingReservation, Throttle, ThrottleOutcome,
};
pub use build::LimiterBuilder;
pub use decision::{
    AppliedBand, DecidedBy, Decision, HitResult, LimitHits, Permit, RETRY_AFTER_FAILURE,
    SkippedBand,
};
pub use error::{BuildError, CheckError};
pub use failure::StoreHealth;
pub use keyed::KeyedLimiter;
pub use limiter::Limiter;
pub use lists::ListStatus;
pub use permits::InFlightStatus;
pub use plans::{FilePlans, LoadPlans, LoadedPlans, PlanState, PlansError};
#[cfg(feature = "config")]
pub use process::ProcessEnvironment;
pub use purpose::AskPurpose;
pub use rate::Rate;
#[doc(hidden)]
pub use refresh::delay as retry_delay;
pub use request::{CountedRequest, RepeatedRequest};
pub use reservations::{
    Acquisition, Reservation, SettleError, SettleState, SettledReservation, SettledUnit,
    ShareWarning,
};
pub use rules::Rules;
pub use snapshot::SnapshotStatus;
pub use spec::LimitSpec;
#[doc(hidden)]
pub use unknown_clients::is_power_of_ten;
pub use wait_room::QueueStatus;

#[cfg(feature = "config")]
pub use tidegate_config::{
    Config, ConfigErrors, ConfigProblem, Environment, NoEnvironment, Severity, client_from_yaml,
    plans_from_text, plans_in_format, respond_from_yaml, store_from_url, store_from_yaml,
};
pub use tidegate_core::shared_state;
pub use tidegate_core::{
    Algorithm, Align, Clock, LimitMode, ManualClock, OnChange, SharedState, Store, StoreError,
    StoreErrorKind, Timestamp, Wait,
};
pub use tidegate_memory::{MemoryStats, MemoryStore, OverflowedLimit, SystemClock};
pub use tidegate_policy::guard::{AnswerReason, Guard, GuardEffect, Guards};
pub use tidegate_policy::respond;
pub use tidegate_policy::store::{LocalShare, SnapshotSettings, StoreSettings, StoreTarget};
pub use tidegate_policy::text::Secret;
pub use tidegate_policy::unit::{CostFault, Unit};
pub use tidegate_policy::{
    Client, Cost, CostMap, Descriptor, DescriptorHits, Evaluate, KeyPart, LimitOverride,
    MissingIdentity, OnFailure, PermitTerm, Policy, Request, ReserveRules, Respond,
};

/// Plans: rates per subject, loaded from a source, instead of one rate for all.
pub mod plan {
    pub use tidegate_policy::plan::*;
    pub use tidegate_policy::plan_source::*;
}

/// Pages of the repository: their code must compile.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct ReadmePage;

    #[doc = include_str!("../../../docs/how-to/migrate/governor.md")]
    struct GovernorPage;
}
