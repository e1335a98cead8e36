//! Limits, identities and responses as plain data, and the matcher that finds the limits of a
//! request. Configurations are read by `tidegate-config`.
//!
//! | module | contents |
//! |---|---|
//! | [`policy`] | a compiled policy, and the limits of one request |
//! | [`limit`], [`band`] | compiled limits: conditions, keys, bands |
//! | [`key_part`] | the parts of a bucket's key |
//! | [`address_rules`] | the rules by which addresses are counted and listed |
//! | [`addresses`] | settings for counting and banning client addresses |
//! | [`calendar`] | calendar windows: months, and days of a time zone |
//! | [`plan`], [`plan_source`] | rates loaded from an external source, one per subject |
//! | [`template`] | names of a limit's keys in the open layout |
//! | [`slot_group`] | groups of limits that share a hash slot |
//! | [`guard`] | allowlists and blocklists, evaluated before any limit |
//! | [`request`] | the facts about a request |
//! | [`mod@unit`] | what limits count, and how much of it a request consumes |
//! | `warn_shares` | the used shares of a band that raise an alert |
//! | [`route`] | the gateway's routes and upstreams |
//! | [`listen`] | the listeners of the program |
//! | [`admin`], [`alerts`], [`traces`] | its admin API, its alerts, its traces and log lines |
//! | [`store`], [`documents`] | the store of buckets and stores of documents, as plain data |
//! | [`client`] | the client's identity: address, user, API key, attributes, cost |
//! | [`respond`] | the response to a client |
//! | [`text`] | texts that people write: rates, durations, names, secrets |
//! | [`tls`] | TLS towards servers that the program calls |
//! | `digest` | lookup of a text among millions |
//! | [`patterns`] | patterns for paths, hosts and descriptors |
//! | [`matching`] | from a request to candidates among limits, and the keys of their buckets |
//!
//! Data is at the bottom, [`matching`] above it, and [`policy`] on top: no module uses one above it.

pub mod address_rules;
pub mod addresses;
pub mod admin;
pub mod alerts;
pub mod band;
pub mod calendar;
pub mod client;
mod digest;
pub mod documents;
pub mod guard;
pub mod key_part;
pub mod limit;
pub mod listen;
pub mod literal;
pub mod matching;
pub mod patterns;
pub mod plan;
pub mod plan_source;
pub mod policy;
pub mod redact;
pub mod request;
pub mod respond;
pub mod route;
pub mod slot_group;
pub mod store;
pub mod template;
pub mod text;
pub mod tls;
pub mod traces;
pub mod unit;
mod warn_shares;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod work;

pub use band::Band;
pub use client::Client;
pub use digest::DigestedText;
pub use guard::{Guard, Guards};
pub use key_part::KeyPart;
pub use limit::{ChargeTime, Condition, Limit, MissingIdentity, WaitRules};
pub use policy::{Evaluate, MetLimits, Policy, ReserveRules, Scratch};
pub use request::{Descriptor, DescriptorHits, LimitOverride, PermitTerm, Request};
pub use respond::{AnswerReason, Respond};
pub use route::{Route, Routes};
pub use slot_group::SlotGroup;
pub use store::{OnFailure, SlotTag};
pub use template::Template;
pub use unit::{Cost, CostMap, Unit};
pub use warn_shares::WarnShares;
