//! Tidegate's buckets in Redis or Valkey: any number of instances share them and together admit
//! exactly what the policy allows, in one round trip.

// A new algorithm, operation or state is an error wherever it matters, and nowhere a guess.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod apart;
#[expect(clippy::wildcard_enum_match_arm, reason = "Redis has many types")]
mod bans;
mod beside;
#[expect(clippy::wildcard_enum_match_arm, reason = "Redis has many types")]
mod census;
mod clock;
#[expect(clippy::wildcard_enum_match_arm, reason = "Redis has many types")]
mod connection;
mod deny;
#[expect(clippy::wildcard_enum_match_arm, reason = "Redis has many types")]
mod documents;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "errors of many kinds are alike"
)]
mod error;
mod general;
mod heartbeat;
mod key;
mod lane;
mod layout;
mod plan;
mod record;
mod refuse;
mod request;
mod reserve;
mod script;
mod scripts;
mod secret;
#[expect(clippy::wildcard_enum_match_arm, reason = "Redis has many types")]
mod sets;
mod settings;
mod shared;
mod shared_state;
mod stats;
mod store;
mod tasks;
mod trust;
mod typed;

/// The protocol crate, for commands that [`Connection::command`] is to send and what they answer.
pub use redis as protocol;

pub use bans::Bans;
pub use beside::beside;
pub use census::{
    BatchPlacement, Census, CensusFigures, CensusLimits, CensusMap, CensusNames, Closing,
    ClosingToken, CountBatch, MapPlacement, OTHER,
};
pub use connection::{
    CallTimes, Connection, KeyScan, ListenerLost, Listening, NodeChoice, NodeInfo, NodeRole,
    NodeStats, Ping, Ttl,
};
pub use documents::WriteOutcome;
pub use error::{CallEffect, CallError, CallErrorKind, ConnectError, ConnectErrorKind};
pub use heartbeat::Heartbeat;
pub use key::{HashTag, slot};
pub use layout::{KeyPiece, Layout, OpenLayout, OpenLimit, TokenFields};
pub use script::Script;
pub use sets::LoadError;
pub use settings::{
    Address, ConnectionSettings, Credentials, Password, RedisTopology, TlsSettings,
};
pub use stats::{Counter, RedisStats};
pub use store::{RedisOptions, RedisStore};
pub use tidegate_core::shared_state::{Instance, Roll, Serves};
pub use trust::server_verifier;
