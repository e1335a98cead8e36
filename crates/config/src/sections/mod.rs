//! The readers of sections and fields: from a tree of nodes to the types of `tidegate-policy` and of this
//! crate.

pub(crate) mod addresses;
pub(crate) mod admin;
pub(crate) mod alerts;
pub(crate) mod band;
pub(crate) mod block;
mod calendar;
pub(crate) mod client;
pub(crate) mod concurrent;
pub(crate) mod condition;
pub(crate) mod descriptor;
pub(crate) mod domain;
pub(crate) mod guard;
pub(crate) mod key;
pub(crate) mod limit;
pub(crate) mod listen;
pub(crate) mod listen_warnings;
pub(crate) mod long_windows;
pub(crate) mod mode;
pub(crate) mod naming;
pub(crate) mod planned;
pub(crate) mod plans;
pub(crate) mod policy;
pub(crate) mod reserve;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod sources;
pub(crate) mod statsd;
pub(crate) mod store;
pub(crate) mod superseded;
pub(crate) mod template;
pub(crate) mod tls;
pub(crate) mod traces;
pub(crate) mod units;
pub(crate) mod unlimited_words;
pub(crate) mod waiting;
pub(crate) mod warn;
