//! Every bound of the server, in one place. Nothing here waits, grows or queues without one.

use std::time::Duration;
use tidegate_policy::listen::Listen;

/// The amounts that the server accepts, and the times that it waits. The same for every listener, except for
/// the bounds of the gateway and the admin listener.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections of one listener. When it is full, the longest idle ones close; if none is idle, new ones
    /// wait in the kernel's backlog.
    pub connections: usize,
    /// Connections of the gateway, which serves all clients and not a few proxies.
    pub gateway_connections: usize,
    /// Connections of the admin listener.
    pub admin_connections: usize,
    /// Descriptors kept back for the gateway's connections to upstreams.
    pub upstream_connections: usize,
    /// Bytes of a request's line and headers; beyond that 431.
    pub head_bytes: usize,
    /// The same for the gateway: as much as applications accept, cookies included.
    pub gateway_head_bytes: usize,
    /// Bytes of a request's body; beyond that 413. Also the bound of data read ahead on a connection, and of
    /// data to be sent on it; the server stops reading from a client that does not read its responses.
    pub body_bytes: usize,
    /// The maximum time of a TLS handshake.
    pub handshake_time: Duration,
    /// The maximum time for a body to arrive after its head; beyond that 408.
    pub body_time: Duration,
    /// The maximum time of a connection without a new request while none is in flight, and of a response
    /// without being read; then the connection closes. That bounds idle connections, heads that trickle in,
    /// and clients that do not read. Longer than the 60 seconds after which most proxies close an idle
    /// connection, so that they close first: a request that crosses the server's close on the wire would be
    /// lost.
    pub idle_time: Duration,
    /// The maximum silence of a connection on the listener of the Redis protocol. Redis closes none, and
    /// clients keep theirs in pools for hours: a client that takes out a connection that was closed meanwhile
    /// gets an error with its next command.
    pub resp_idle_time: Duration,
    /// While draining, the time for which an idle connection stays open for a request already in transit.
    pub farewell_time: Duration,
    /// The time for which the server continues to serve after the signal to stop, while readiness fails.
    pub shutdown_delay: Duration,
    /// The maximum time of draining; remaining connections are then cut.
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
            shutdown_delay: Duration::ZERO,
            drain_time: Duration::from_secs(10),
        }
    }
}

/// The maximum number of descriptors kept back for the store, sources, logs and everything else that is not a
/// listener's: an eighth of all, and no more than this.
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

/// Returns the wanted number of connections, bounded by the descriptors; at least 1.
fn share(wanted: usize, descriptors: u64) -> usize {
    wanted
        .min(usize::try_from(descriptors).unwrap_or(usize::MAX))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Config;

    fn listen(text: &str) -> Listen {
        let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        let routes = "routes: [{ name: all, upstreams: ['http://127.0.0.1:9'] }]";
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
            let listeners = 3 * bounds.connections + bounds.gateway_connections;
            let spent = listeners + bounds.admin_connections + bounds.upstream_connections;
            let most = usize::try_from(descriptors - (descriptors / 8).min(KEPT_BACK)).unwrap();
            assert!(spent <= most, "{bounds:?} of {descriptors}");
            assert!(bounds.connections > 0 && bounds.gateway_connections > 0);
        }
    }

    #[test]
    fn ample_descriptors_keep_the_default_bounds() {
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
