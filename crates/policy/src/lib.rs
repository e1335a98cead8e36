//! Policy for Tidegate: the configuration language, its compiler, and the matcher that finds a request's
//! limits.
//!
//! | module | contents |
//! |---|---|
//! | [`policy`] | a compiled policy |
//! | [`limit`] | compiled limits: conditions, keys, bands |
//! | [`addresses`] | settings for counting and banning client addresses |
//! | [`admin`] | credentials and roles of administrators, and the audit log |
//! | [`traces`] | settings for tracing single requests |
//! | [`alerts`] | settings for alerts to operators |
//! | [`plan`] | rates loaded from an external source, one per subject |
//! | `told` | limits that requests carry themselves |
//! | [`config`] | a whole configuration from YAML or JSON, with all errors reported together |
//! | [`template`] | names of a limit's keys in the open layout |
//! | [`group`] | groups of limits that share a hash slot |
//! | [`guard`] | allowlists and blocklists, evaluated before any limit |
//! | [`import`] | configurations of other limiters, translated into Tidegate's language |
//! | [`request`] | the facts about a request |
//! | [`route`] | the gateway's routes and upstreams |
//! | [`source`] | config sources in addition to the file, and their composition |
//! | [`client`] | the client's identity: address, user, API key, attributes, cost |
//! | [`respond`] | the response to a client |
//! | `lookup` | lookup of a text among millions |
//! | [`matching`] | from a request to the limits that apply, and the keys of their buckets |

pub mod addresses;
pub mod admin;
pub mod alerts;
pub mod client;
pub mod config;
pub mod group;
pub mod guard;
pub mod import;
pub mod limit;
pub mod literal;
mod lookup;
pub mod mask;
pub mod matching;
pub mod plan;
pub mod policy;
pub mod request;
pub mod respond;
pub mod route;
pub mod source;
pub mod statsd;
pub mod template;
mod told;
pub mod traces;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod work;

pub use client::Client;
pub use config::{Config, ConfigErrors};
pub use group::{SlotGroup, SlotTag};
pub use guard::{AnswerReason, Guard, Guards};
pub use limit::{Band, ChargeTime, Condition, KeyPart, Limit, Missing, OnFailure, WaitRules};
pub use lookup::DigestedText;
pub use matching::{MetLimits, Scratch};
pub use policy::{Evaluate, Policy, ReserveRules};
pub use request::{Descriptor, DescriptorHits, Request, ToldLimit};
pub use respond::Respond;
pub use route::{Route, Routes};
pub use template::Template;
