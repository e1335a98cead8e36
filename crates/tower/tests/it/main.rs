//! The layer as its users see it: over real servers, and by itself where no server gets that far.

#![expect(
    clippy::panic,
    reason = "a test fails by panicking, its helpers as well"
)]

/// What the application does is passed on as it is.
mod application;
/// Behind axum's router.
mod axum;
/// Statuses of gRPC as another implementation reads them.
mod grpc_status;
/// Who may not pass at all, and whom no limit applies to.
mod guards;
/// Before a plain hyper server.
mod hyper;
/// Who asks: peers, proxies, and what the application tells.
mod identity;
/// Policies, reloads, clones, observers.
mod limiter;
/// How often a client is identified and its limits are matched.
#[cfg(debug_assertions)]
mod once;
/// With the buckets in Redis, and without that Redis.
mod redis;
/// A store that takes its time.
mod slow;
/// gRPC.
mod tonic;
/// Limits that let requests wait.
mod waiting;
/// What is said where nobody tells the peer.
mod warning;
/// Servers, clients, applications.
mod world;
