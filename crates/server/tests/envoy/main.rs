//! A real Envoy that asks Tidegate over gRPC, as it would ask envoyproxy/ratelimit: with the program
//! itself, an application behind Envoy and a client in front.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// Envoy, the program, the application, the client.
mod kit;

/// Tidegate hangs, is gone, comes back.
mod away;
/// Allowed and refused.
mod decisions;
/// What a client is shown.
mod headers;
/// Requests that take nothing, or several, or what they have used.
mod hits;
/// TLS, certificates and tokens between Envoy and Tidegate.
mod secured;
/// Several instances on one store.
mod several;
