//! A real Envoy that calls Tidegate over gRPC, like envoyproxy/ratelimit: with the program itself,
//! an application behind Envoy and a client in front.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// Envoy, the program, the application, the client.
mod kit;

/// Tidegate hangs, is down, and recovers.
mod away;
/// Allowed and refused requests.
mod decisions;
/// Headers for clients.
mod headers;
/// Requests that consume nothing, several units, or the actual usage.
mod hits;
/// TLS, certificates and tokens between Envoy and Tidegate.
mod secured;
/// Several instances on one store.
mod several;
/// Limits received over xDS.
mod xds;
