//! Sockets, TLS, HTTP/1 and HTTP/2, bounds and draining: the part that is the same for every frontend.
//!
//! | module | what it is |
//! |---|---|
//! | `bind`, `socket` | opening the listeners: TCP and unix sockets |
//! | `peer_stream` | the stream of a client, with or without TLS |
//! | `tls`, `token` | access control of a listener |
//! | `expiry` | the expiry of certificates |
//! | `accept`, `room`, `accept_log` | accepting connections, bounded, and the log of problems |
//! | `connection_handler` | the interface between accepting and the protocols |
//! | `connection`, `streams` | one connection, from its first byte to its last |
//! | [`frontend`] | the trait that a frontend implements |
//! | `interim` | interim responses to HTTP/1 clients |
//! | `frames` | a budget of HTTP/2 control frames |
//! | `session` | the view that a frontend has of a connection |
//! | `idle_clock`, `idle`, `paced_body` | activity of a connection |
//! | `age` | the maximum age of a connection |
//! | `watched_stream`, `lingering_close` | the socket of a connection, and its closing |
//! | `smuggling_screen`, `strict` | rejection of ambiguous requests of untrusted clients |
//! | [`phase`] | the lifecycle of the server |
//! | [`tasks`] | the only place that spawns |
//! | [`bounds`] | every bound of the server |
//! | [`metrics`] | the metrics of one listener |
//! | [`promise`] | a value that is mostly available at once |
//! | [`file_stamp`], [`random`] | detecting changes of a file, and random numbers |

pub mod accept;
mod accept_log;
mod age;
mod bind;
pub mod bounds;
pub mod connection;
pub mod connection_handler;
mod expiry;
pub mod file_stamp;
mod frames;
pub mod frontend;
mod idle;
pub mod idle_clock;
mod interim;
mod lingering_close;
pub mod metrics;
pub mod paced_body;
mod peer_stream;
pub mod phase;
pub mod promise;
pub mod random;
pub mod room;
pub mod session;
mod smuggling_screen;
mod socket;
mod streams;
mod strict;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod token;
mod watched_stream;

pub use bind::{BindError, BoundListener, Listeners, bind};
