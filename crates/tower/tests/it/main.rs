//! The layer from the view of its users: over real servers, and alone for other cases.

#![expect(
    clippy::panic,
    reason = "a test fails by panicking, its helpers as well"
)]

/// The application's behaviour is unchanged.
mod application;
/// Behind axum's router.
mod axum;
/// Responses that the application writes itself.
mod custom;
/// gRPC statuses as read by another implementation.
mod grpc_status;
/// Denied and exempt clients.
mod guards;
/// Before a plain hyper server.
mod hyper;
/// Identities: peers, proxies, and values set by the application.
mod identity;
/// Limits of requests in flight.
mod in_flight;
/// Policies, reloads, clones, observers.
mod limiter;
/// The number of identifications and matches per request.
#[cfg(debug_assertions)]
mod once;
/// Buckets in Redis, with and without an outage.
mod redis;
/// A slow store.
mod slow;
/// gRPC.
mod tonic;
/// Limits with a queue.
mod waiting;
/// The warning about a missing peer address.
mod warning;
/// Servers, clients, applications.
mod world;
