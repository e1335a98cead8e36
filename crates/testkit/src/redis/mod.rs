//! Real Redis and Valkey servers for tests: [`Server`], [`Cluster`] and [`SentinelGroup`], with or
//! without TLS and users, and a [`FaultProxy`] to put between them and their clients.
//!
//! Everything runs on loopback, on ports that no other test of any process has. A server ends with
//! its value, and also if the test process is killed. Every wait polls for its condition, up to a
//! limit, and reports a condition that did not come true. For servers of another kind there are
//! [`Port`], [`Process`] and [`until`].
//!
//! ```no_run
//! use tidegate_testkit::redis::Server;
//!
//! let server = Server::start();
//! let mut client = server.client();
//! client.command(&["SET", "a", "1", "PX", "60000"]).text();
//! assert!(client.command(&["PTTL", "a"]).int() > 0);
//! server.kill9();
//! server.restart();
//! assert!(server.command(&["GET", "a"]).is_nil());
//! ```

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "what cannot be started or does not happen fails the test"
)]

mod access;
mod audit;
mod client;
mod cluster;
pub(crate) mod flavour;
mod options;
mod port;
mod process;
mod proxy;
pub(crate) mod reaper;
mod reply;
mod sentinel;
mod server;
pub mod shared;
pub(crate) mod wait;

pub use access::{Access, Acl, Certificates, TestLogin};
pub use audit::audit;
pub use client::BlockingClient;
pub use cluster::{Cluster, Migration, SLOTS};
pub use flavour::ServerProgram;
pub use options::ServerOptions;
pub use port::Port;
pub use process::{Process, output};
pub use proxy::{FaultProxy, ProxyFaults};
pub use reply::RespReply;
pub use sentinel::SentinelGroup;
pub use server::Server;
pub use wait::{until, until_some};

#[cfg(test)]
mod tests;
