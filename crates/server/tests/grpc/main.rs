//! Envoy's rate limit service from the view of its clients: real sockets, and tonic's client.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// A server and its clients.
mod kit;

/// Tidegate's protobuf code compared with prost.
mod codec;
/// Shutdown, resets, and concurrent calls.
mod connections;
/// `ShouldRateLimit`: decisions.
mod decisions;
/// Denied and exempt clients.
mod guards;
/// Headers for the proxy to add.
mod headers;
/// `grpc.health.v1`.
mod health;
/// `POST /json` and `GET /healthcheck`.
mod json;
/// Kuadrant's service.
mod kuadrant;
/// Invalid messages, and requests that are not gRPC.
mod messages;
/// Server reflection.
mod reflection;
/// Kuadrant's reservations.
mod reserving;
/// TLS, client certificates and tokens.
mod secured;
/// Costs of policies that count several units.
mod units;
