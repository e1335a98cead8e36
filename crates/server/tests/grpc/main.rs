//! Envoy's rate limit service as its clients meet it: real sockets, and the client that tonic makes.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// A server, and clients of it.
mod kit;

/// What is read and written by hand, against prost.
mod codec;
/// Stopping, resets, many calls at a time.
mod connections;
/// `ShouldRateLimit`: decisions.
mod decisions;
/// Who may not pass at all, and whom no limit applies to.
mod guards;
/// What a proxy adds to answers of its own.
mod headers;
/// `grpc.health.v1`.
mod health;
/// `POST /json` and `GET /healthcheck`.
mod json;
/// Kuadrant's service.
mod kuadrant;
/// Messages that are no good, and what is not gRPC.
mod messages;
/// Server reflection.
mod reflection;
/// Kuadrant's reservations.
mod reserving;
/// TLS, certificates of callers, and tokens.
mod secured;
