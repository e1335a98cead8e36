//! The gateway as clients and upstreams meet it, and as others do the same: real sockets, real
//! programs.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// The gateway, upstreams, clients, programs of others.
mod kit;

/// The same requests through nginx and through the gateway.
mod differential;
/// What can go wrong, and what must not follow from it.
mod faults;
/// gRPC, which needs HTTP/2 and trailers.
mod grpc;
/// Who may not pass at all, and whom no limit applies to.
mod guards;
/// What belongs to one connection, and what routes change.
mod headers;
/// curl, h2load, and HTTP/2 on both sides.
mod http2;
/// How often a client is identified and its limits are matched.
#[cfg(debug_assertions)]
mod once;
/// Requests within requests.
mod smuggling;
/// Bodies that are passed on while they come.
mod streaming;
/// Where requests came from, as upstreams are told.
mod trace;
/// Connections that become WebSockets.
mod websocket;
