//! Interfaces for operators: metrics in Prometheus, traces in a collector, logs, and `/status`.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// The program, an upstream, a collector, and third-party programs.
mod kit;

/// The number of series does not grow with clients.
mod bounded;
/// The shipped dashboard: every query, on a Prometheus that scrapes a real instance.
mod dashboard;
/// Log lines about single requests.
mod logs;
/// Redis nodes: calls to them, and their own statistics.
mod nodes;
/// Prometheus and promtool with the metrics and the shipped rules.
mod prometheus;
/// The reference page of the metrics.
mod reference;
/// `/status`.
mod status;
/// Spans, from a request to a collector.
mod traces;
