//! Forwarding of requests to upstreams, and of their responses to clients. Nothing here knows of limits.
//!
//! | module | what it is |
//! |---|---|
//! | `fleet` | all upstreams of a route, with retries |
//! | `target` | one upstream: its connections and settings |
//! | `upstream_health`, `health_check`, `balance` | the health of upstreams, and the choice of the next one |
//! | `dial`, `connection_kind`, `tls`, `stream` | connecting |
//! | `http1`, `pool` | HTTP/1 connections, driven by the tasks that use them |
//! | `places` | bounds of connections in use and of waiting requests |
//! | `multiplex` | the shared HTTP/2 connection |
//! | `outgoing`, `upload`, `pace`, `backlog`, `relayed_body`, `patience` | requests and bodies, bounded |
//! | `hop`, `forwarding_headers`, `rewrite` | headers that are forwarded, added and changed |
//! | `tunnel`, `websocket` | traffic after an upgrade |
//! | `error`, `fault` | reasons for a missing response |
//! | `interim` | interim responses, forwarded to the client |
//! | `http_fetch`, `grpc_stream` | requests of Tidegate itself: one now and then, and a stream |

pub mod backlog;
pub mod balance;
pub mod connection_kind;
mod dial;
pub mod error;
mod fault;
pub mod fleet;
#[cfg(test)]
mod fleet_tests;
pub mod forwarding_headers;
pub mod grpc_stream;
pub mod health_check;
pub mod hop;
pub mod http1;
pub mod http_fetch;
pub mod interim;
mod multiplex;
pub mod outgoing;
pub mod pace;
mod patience;
mod places;
mod pool;
pub mod relayed_body;
pub mod rewrite;
mod spare;
pub mod stream;
pub mod target;
mod tls;
pub mod tunnel;
pub mod upload;
pub mod upstream_health;
pub mod websocket;
