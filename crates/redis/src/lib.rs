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
    Added, Batch, Census, CensusLimits, CensusMap, CensusNames, Closing, ClosingToken, Figures,
    Landed, OTHER,
};
pub use connection::{
    CallTimes, Connection, Gone, Listening, NodeInfo, NodeStats, Ping, Role, Route, Scan, Ttl,
};
pub use documents::Changed;
pub use error::{CallError, Class, ConnectError, ConnectErrorKind, Kind};
pub use heartbeat::Heartbeat;
pub use key::{Tag, slot};
pub use layout::{Layout, OpenLayout, OpenLimit, Piece, TokenFields};
pub use script::Script;
pub use sets::LoadError;
pub use settings::{Address, Credentials, Mode, Password, Settings, TlsSettings};
pub use stats::{Counter, Stats};
pub use store::{Options, RedisStore};
pub use tidegate_core::shared_state::{Instance, Roll, Serves};
pub use trust::server_verifier;
