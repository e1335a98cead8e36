//! The Redis protocol from the view of its clients: real sockets, real clients, real stores.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Servers on free ports, a client that sends given bytes, programs.
mod kit;

/// The library and every frontend report the same.
mod agree;
/// Clients that are too slow, too silent, or send too much.
mod bounds;
/// Shutdown without losing requests.
mod drain;
/// Replies while the store is down.
mod failure;
/// Replies of a real Redis to the same bytes.
mod golden;
/// Denied and exempt clients.
mod guards;
/// Requests in flight by their ids.
mod in_flight;
/// redis-cli, redis-benchmark, redis-py.
mod programs;
/// redis-rs.
mod redis_rs;
/// The same decision as at `/v1/check`.
mod same;
/// Buckets in Redis: in order, and few calls.
mod store;
/// TLS and the password.
mod tls;
/// Costs by unit.
mod units;
