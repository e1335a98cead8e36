//! Forwarding of requests to upstreams, and of their responses to clients. Nothing here knows of limits.
//!
//! | module | what it is |
//! |---|---|
//! | `fleet` | all upstreams of a route, with retries |
//! | `target` | one upstream: its connections and settings |
//! | `standing`, `health`, `balance` | the health of upstreams, and the choice of the next one |
//! | `dial`, `tls`, `stream` | connecting |
//! | `http1`, `pool` | HTTP/1 connections, driven by the tasks that use them |
//! | `places` | bounds of connections in use and of waiting requests |
//! | `multiplex` | the shared HTTP/2 connection |
//! | `outgoing`, `upload`, `pace`, `backlog`, `relayed`, `patience` | requests and bodies, bounded |
//! | `hop`, `trace`, `rewrite` | headers that are forwarded, added and changed |
//! | `tunnel`, `websocket` | traffic after an upgrade |
//! | `trouble` | reasons for a missing response |

pub(crate) mod backlog;
pub(crate) mod balance;
pub(crate) mod dial;
pub(crate) mod fleet;
#[cfg(test)]
mod fleet_tests;
pub(crate) mod health;
pub(crate) mod hop;
pub(crate) mod http1;
mod multiplex;
pub(crate) mod outgoing;
pub(crate) mod pace;
mod patience;
mod places;
mod pool;
pub(crate) mod relayed;
pub(crate) mod rewrite;
mod spare;
pub(crate) mod standing;
pub(crate) mod stream;
pub(crate) mod target;
mod tls;
pub(crate) mod trace;
pub(crate) mod trouble;
pub(crate) mod tunnel;
pub(crate) mod upload;
pub(crate) mod websocket;
