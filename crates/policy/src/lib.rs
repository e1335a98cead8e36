//! Which limits a request meets: the configuration language, its compiler, and the matcher.
//!
//! | module | what it is |
//! |---|---|
//! | [`policy`] | a policy as compiled |
//! | [`limit`] | its limits: conditions, keys, bands |
//! | [`addresses`] | counting addresses, and banning |
//! | [`admin`] | who may look at a server and change what it does |
//! | [`traces`] | what is told of single requests |
//! | [`alerts`] | whom to tell when something needs a person |
//! | [`plan`] | rates that come from elsewhere, for each subject its own |
//! | `told` | limits that requests bring themselves |
//! | [`config`] | a whole configuration, from YAML or JSON, with every error at once |
//! | [`template`] | how the keys of a limit are named in the open layout |
//! | [`group`] | which limits are decided in one place |
//! | [`guard`] | lists of those who may not pass at all, or whom no limit applies to |
//! | [`import`] | configurations of other limiters, told in our own language |
//! | [`request`] | what is known of a request |
//! | [`route`] | where a gateway sends requests |
//! | [`source`] | where policy comes from beside the file, and what is composed of it |
//! | [`client`] | who asks: address, user, API key, attributes, cost |
//! | [`respond`] | what a client is told |
//! | `lookup` | finding a text among millions |
//! | [`matching`] | from a request to the limits it meets, and the keys of their buckets |

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
