//! The gateway from the view of clients and upstreams, compared with other proxies: real sockets,
//! real programs.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// The gateway, upstreams, clients, third-party programs.
mod kit;

/// The same requests through nginx and through the gateway.
mod differential;
/// Faults, and their bounded effects.
mod faults;
/// gRPC, which needs HTTP/2 and trailers.
mod grpc;
/// Denied and exempt clients.
mod guards;
/// Hop-by-hop headers, and headers that routes change.
mod headers;
/// curl, h2load, and HTTP/2 on both sides.
mod http2;
/// Requests in flight.
mod in_flight;
/// The number of identifications and matches per request.
#[cfg(debug_assertions)]
mod once;
/// Request smuggling.
mod smuggling;
/// Streaming bodies.
mod streaming;
/// Forwarding headers for upstreams.
mod trace;
/// Costs by unit.
mod units;
/// Connections that become WebSockets.
mod websocket;
