//! What operators watch: metrics as Prometheus reads them, traces as collectors do, logs, and how it all
//! stands.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// The program, an upstream, a collector, and the programs of others.
mod kit;

/// However many clients there are, there are no more series.
mod bounded;
/// What the log says of single requests.
mod logs;
/// The nodes of Redis: calls to them, and what they say of themselves.
mod nodes;
/// Prometheus and promtool at work on the page and on the rules that are shipped.
mod prometheus;
/// How it all stands.
mod status;
/// Spans, from a request to a collector.
mod traces;
