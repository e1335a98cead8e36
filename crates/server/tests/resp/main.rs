//! The door of the Redis protocol as clients meet it: real sockets, real clients, real stores.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Servers on ports that the system chooses, a client that sends what it is told, programs.
mod kit;

/// The library and every door tell the same.
mod agree;
/// What is too slow, too silent, or too much.
mod bounds;
/// Stopping without losing anything.
mod drain;
/// What is answered when the store is not.
mod failure;
/// What a real Redis answers to the same bytes.
mod golden;
/// Who may not pass at all, and whom no limit applies to.
mod guards;
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
