//! The real envoyproxy/ratelimit and Tidegate, with the same files and the same calls: only the
//! documented differences occur.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// Both programs, and the comparison of their responses.
mod kit;

/// The configurations in its documentation.
mod documented;
/// Random configurations and calls.
mod random;
/// Costs that calls state, before a request and after it.
mod spent;
/// Statistics for statsd.
mod statistics;
