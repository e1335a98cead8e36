//! Every bound of the server, in one place. Nothing here waits, grows or queues without one.

use std::time::Duration;
use tidegate_policy::config::Listen;

/// How much the server takes on, and how long it waits. The same for every door, but for what is said
/// of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections of one listener. When it is full, the longest idle ones close; if none is idle, new
    /// ones wait in the kernel's backlog.
    pub connections: usize,
    /// Connections of the gateway, which serves all clients and not a few proxies.
    pub gateway_connections: usize,
    /// Connections of the admin listener.
    pub admin_connections: usize,
    /// Descriptors kept back for the gateway's connections to upstreams.
    pub upstream_connections: usize,
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
            admin_connections: 1_000,
            upstream_connections: 20_000,
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

/// Descriptors kept back for the store, sources, logs and everything else that is not a listener's: an
/// eighth, and no more than this.
const KEPT_BACK: u64 = 1_024;

impl Bounds {
    /// Fits the bounds on connections into a limit on open files. Each listener of `listen` has its own
    /// share, so that no client of one can stop another, least of all the admin listener.
    #[must_use]
    pub fn within(self, descriptors: u64, listen: &Listen) -> Self {
        let kept_back = (descriptors / 8).min(KEPT_BACK);
        let admin = share(self.admin_connections, descriptors / 16);
        let left = descriptors.saturating_sub(kept_back);
        let left = left.saturating_sub(u64::try_from(admin).unwrap_or(u64::MAX));
        let plain = [&listen.http, &listen.grpc, &listen.resp];
        let plain = plain.iter().filter(|it| it.is_some()).count();
        // A connection of the gateway may need another one to an upstream.
        let parts = plain.saturating_add(if listen.gateway.is_some() { 4 } else { 0 });
        let part = left / u64::try_from(parts.max(1)).unwrap_or(u64::MAX);
        Self {
            connections: share(self.connections, part),
            gateway_connections: share(self.gateway_connections, part.saturating_mul(2)),
            admin_connections: admin,
            upstream_connections: share(self.upstream_connections, part.saturating_mul(2)),
            ..self
        }
    }

    /// Returns the bounds of the gateway's listener.
    #[must_use]
    pub fn of_gateway(self) -> Self {
        Self {
            connections: self.gateway_connections,
            head_bytes: self.gateway_head_bytes,
            ..self
        }
    }

    /// Returns the bounds of the admin listener.
    #[must_use]
    pub fn of_admin(self) -> Self {
        Self {
            connections: self.admin_connections,
            ..self
        }
    }
}

/// As many connections as wanted, and as there are descriptors; never none at all.
fn share(wanted: usize, descriptors: u64) -> usize {
    wanted
        .min(usize::try_from(descriptors).unwrap_or(usize::MAX))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::Config;

    fn listen(text: &str) -> Listen {
        let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        let routes = "routes: [{ id: all, upstreams: ['http://127.0.0.1:9'] }]";
        let routes = if text.contains("gateway") { routes } else { "" };
        let config = Config::from_yaml(&format!("listen: {text}\n{routes}\n{policies}"));
        config.unwrap().listen
    }

    #[test]
    fn a_thousand_descriptors_are_shared_and_never_spent_twice() {
        let bounds = Bounds::default().within(1_024, &listen("{ http: 127.0.0.1:1 }"));
        assert_eq!((bounds.connections, bounds.admin_connections), (832, 64));
        let all =
            "{ http: 127.0.0.1:1, grpc: 127.0.0.1:2, resp: 127.0.0.1:3, gateway: 127.0.0.1:4 }";
        for descriptors in [16, 256, 1_024, 4_096, 65_536, 1 << 20] {
            let bounds = Bounds::default().within(descriptors, &listen(all));
            let doors = 3 * bounds.connections + bounds.gateway_connections;
            let spent = doors + bounds.admin_connections + bounds.upstream_connections;
            let most = usize::try_from(descriptors - (descriptors / 8).min(KEPT_BACK)).unwrap();
            assert!(spent <= most, "{bounds:?} of {descriptors}");
            assert!(bounds.connections > 0 && bounds.gateway_connections > 0);
        }
    }

    #[test]
    fn where_there_are_plenty_nothing_is_less_than_it_was() {
        let (bounds, usual) = (Bounds::default(), Bounds::default());
        let bounds = bounds.within(
            1 << 20,
            &listen("{ gateway: 127.0.0.1:4, http: 127.0.0.1:1 }"),
        );
        assert_eq!(bounds.connections, usual.connections);
        assert_eq!(bounds.gateway_connections, usual.gateway_connections);
        assert_eq!(bounds.admin_connections, usual.admin_connections);
    }
}
