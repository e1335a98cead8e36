//! The real envoyproxy/ratelimit and Tidegate, with the same files and the same calls: what differs is
//! what the documentation says differs.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// Both of them, and how their answers are compared.
mod kit;

/// The configurations that its documentation explains.
mod documented;
/// Configurations and calls that nobody has thought of.
mod random;
/// Costs that calls state, before a request and after it.
mod spent;
/// Statistics for statsd.
mod statistics;
