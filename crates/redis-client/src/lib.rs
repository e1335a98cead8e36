//! A connection to Redis or Valkey, for any topology.
//!
//! [`Connection`] sends commands to a single server, a Sentinel group or a Cluster. It follows
//! redirections and failovers, loads scripts, and stops calling a node that keeps failing. A failed call
//! reports whether it may have been executed ([`CallEffect`]), so that a caller knows whether it may be
//! sent again.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | the connection, its nodes and its tasks |
//! | `settings`, `address` | where Redis is and how to reach it |
//! | `error` | failures, and what each means for sending again |
//! | `script` | a Lua script and its hash |
//! | `slot` | the Cluster slot of a key |
//! | `jitter` | random pauses |
//! | `tasks` | background tasks |

mod address;
mod connection;
mod error;
pub mod jitter;
mod script;
mod settings;
mod slot;
mod tasks;

/// The protocol crate: the commands that [`Connection::command`] sends, and the values of replies.
pub use redis as protocol;

pub use address::Address;
pub use connection::{
    CallTimes, Connection, KeyScan, ListenerLost, NodeChoice, NodeInfo, NodeRole, NodeStats, Ping,
    RepeatEffect, Subscription, Ttl, WeakConnection,
};
pub use error::{
    CallEffect, CallError, CallErrorKind, ClientFailure, ConnectError, ConnectErrorKind,
    FailureReason,
};
pub use script::Script;
pub use settings::{ConnectionSettings, Credentials, Password, RedisTopology, TlsSettings};
pub use slot::{SLOTS, slot};
pub use tasks::spawn_short;
