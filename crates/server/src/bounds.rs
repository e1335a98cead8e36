//! Every bound of the server, in one place. Nothing here waits, grows or queues without one.

use std::time::Duration;

/// How much the server takes on, and how long it waits. The same for every door, but for what is said
/// of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections of one door; the next ones wait in the kernel's backlog until one ends.
    pub connections: usize,
    /// The same for the gateway, whose callers are not a few proxies but everybody.
    pub gateway_connections: usize,
    /// Bytes of a request's line and headers; beyond it 431.
    pub head_bytes: usize,
    /// The same for the gateway: what applications take, cookies included.
    pub gateway_head_bytes: usize,
    /// Bytes of a request's body; beyond it 413. Also what is read ahead of a connection, and what
    /// waits to be sent on it; a client that does not take its answers is not read from.
    pub body_bytes: usize,
    /// How long a TLS handshake may take.
    pub handshake_time: Duration,
    /// How long a body may take to arrive once its head is there; beyond it 408.
    pub body_time: Duration,
    /// How long a connection may go without a new request while none is under way, and an answer
    /// without being taken; then it closes. That bounds idle connections, heads that trickle in, and
    /// clients that do not read. Longer than the 60 seconds
    /// after which most proxies give up an idle connection, so that they close it and not we: a
    /// request that crosses our close on the wire would be lost.
    pub idle_time: Duration,
    /// How long a connection at the door of the Redis protocol may be silent. Redis closes none, and
    /// clients keep theirs in pools for hours: who takes one out that is closed meanwhile gets an error
    /// with its next command.
    pub resp_idle_time: Duration,
    /// While draining, how long an idle connection stays open for a request already on its way.
    pub farewell_time: Duration,
    /// How long it goes on serving once it is told to stop, while it says that it is about to.
    pub notice_time: Duration,
    /// How long draining may take; connections that are left are then cut.
    pub drain_time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 10_000,
            gateway_connections: 20_000,
            head_bytes: 16 << 10,
            gateway_head_bytes: 32 << 10,
            body_bytes: 64 << 10,
            handshake_time: Duration::from_secs(10),
            body_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(75),
            resp_idle_time: Duration::from_hours(1),
            farewell_time: Duration::from_millis(500),
            notice_time: Duration::ZERO,
            drain_time: Duration::from_secs(10),
        }
    }
}

impl Bounds {
    /// The same, with what the gateway has of its own.
    #[must_use]
    pub fn of_gateway(self) -> Self {
        Self {
            connections: self.gateway_connections,
            head_bytes: self.gateway_head_bytes,
            ..self
        }
    }
}
