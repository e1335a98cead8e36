//! Passing requests on to upstreams, and their answers back. Nothing here knows of limits.
//!
//! | module | what it is |
//! |---|---|
//! | `fleet` | all upstreams of a route, and how a request finds one that answers |
//! | `target` | one upstream: how it is reached |
//! | `standing`, `health`, `balance` | what is known of upstreams, and which one is next |
//! | `dial`, `tls`, `stream` | connecting |
//! | `http1`, `pool` | HTTP/1 connections, driven by whoever uses them |
//! | `places` | how many of them may be in use, and how many requests wait |
//! | `multiplex` | the HTTP/2 connection that all share |
//! | `outgoing`, `upload`, `pace`, `backlog`, `relayed`, `patience` | requests and bodies on their way, bounded |
//! | `hop`, `trace`, `rewrite` | what of a head is passed on, added and changed |
//! | `tunnel`, `websocket` | what comes after an upgrade |
//! | `trouble` | why there is no answer |

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
