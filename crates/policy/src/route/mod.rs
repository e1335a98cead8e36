//! The gateway's routes, compiled, with all references resolved.
//!
//! | module | contents |
//! |---|---|
//! | `upstream` | the target of requests: address, protocol, TLS |
//! | `health` | health checks and ejection of upstreams |
//! | `claims` | headers that only trusted proxies may send to upstreams |
//! | `rewrite` | changes to the headers of a message |
//! | `routes` | all routes, and the search for the route of a request |

mod claims;
mod health;
mod rewrite;
mod routes;
mod upstream;

pub use claims::CLIENT_CLAIMS;
pub use health::{EjectionRules, HealthCheck};
pub use rewrite::Rewrite;
pub use routes::{FoundRoute, Routes};
pub use upstream::{Http2Use, Upstream, UpstreamScheme};

use crate::limit::Condition;
use crate::tls::ClientTls;
use std::time::Duration;
use tidegate_core::{LimitMode, Quota};

/// A route of the gateway: its requests, their upstreams, and their limits.
#[derive(Debug)]
pub struct Route {
    /// The name, unique among routes. Limits with `key: route` and metrics use it.
    pub name: String,
    /// False for a route that never matches.
    pub enabled: bool,
    /// The mode of its limits. [`policy`](Self::policy) is already in this mode.
    pub mode: LimitMode,
    /// The route matches if any of these conditions holds, and every request if there are none. They contain
    /// only paths, hosts and methods.
    pub conditions: Vec<Condition>,
    /// The path of each condition as configured, `/` where it has none, for the labels of metrics. There is
    /// always one.
    pub patterns: Vec<String>,
    /// The targets of requests; there is always one.
    pub upstreams: Vec<Upstream>,
    /// The TLS settings for upstreams that use it.
    pub tls: ClientTls,
    /// The selection among several upstreams.
    pub balance: Balance,
    /// The health checks of upstreams, if there are any.
    pub health: Option<HealthCheck>,
    /// The rules for ejecting an upstream that fails requests, if it may be ejected.
    pub eject: Option<EjectionRules>,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// The limits on connections to each upstream.
    pub connections: Connections,
    /// The policy that its requests must pass; `None` where they are unlimited.
    pub policy: Option<RoutePolicy>,
    /// When the cost of a request that never reached an upstream is refunded.
    pub refund: RefundRule,
    /// The maximum number of retries of a request, where they are safe; up to 5.
    pub retries: u8,
    /// The maximum size of a request's body; `None` for no maximum.
    pub body_bytes: Option<u64>,
    /// The minimum rate of a body, in bytes per second; `None` for no minimum.
    pub min_upload_rate: Option<u64>,
    /// The `Host` header that the upstream receives.
    pub host: HostHeader,
    /// The prefix that is removed from paths that begin with it, by whole segments. It is normalised, starts
    /// with `/`, does not end with it, and is never `/` alone.
    pub strip_prefix: Option<String>,
    /// The changes to the headers of a request.
    pub request_headers: Rewrite,
    /// The changes to the headers of a response.
    pub response_headers: Rewrite,
    /// Headers of [`CLIENT_CLAIMS`] that untrusted clients may send on to upstreams, in lower case.
    pub pass_headers: Vec<String>,
    /// The protocols to which a connection may be upgraded, in lower case.
    pub upgrades: Vec<String>,
    /// The limits on messages that clients send on a WebSocket; `None` where they are unlimited.
    pub messages: Option<MessageLimits>,
}

/// The limits on messages that clients send on a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// The policy that each message must pass, if any.
    pub policy: Option<RoutePolicy>,
    /// The bounds of one connection.
    pub bounds: MessageBounds,
}

/// The bounds of one WebSocket connection, regardless of others. `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageBounds {
    /// The size of a message on the wire, all its frames together.
    pub message_bytes: Option<u64>,
    /// Bytes of all frames, their headers included.
    pub bytes: Option<Quota>,
    /// Frames that start no message: pings, pongs, and continuations of a message.
    pub frames: Option<Quota>,
}

/// A policy of the same configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePolicy {
    /// The name, for [`Request::policy`](crate::Request::policy).
    pub name: String,
    /// The index in `Config::policies`.
    pub index: usize,
}

/// The selection among several upstreams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Round robin, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest requests in flight relative to its weight.
    LeastRequests,
}

/// The gateway's treatment of ambiguous paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// Rejects a path that two programs could interpret differently.
    #[default]
    Strict,
    /// Forwards such a path unchanged.
    Lenient,
}

/// The timeouts of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is established, including TLS.
    pub connect: Duration,
    /// From the end of the request to the headers of the response.
    pub response: Duration,
    /// Between two pieces of a body, or of an upgraded connection.
    pub idle: Duration,
    /// The time that a body may take in addition to what [`Route::min_upload_rate`] allows.
    pub upload_grace: Duration,
}

/// The limits on connections to an upstream. Over HTTP/2 all requests share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The maximum number of connections, including idle and upgraded ones.
    pub max: u32,
    /// The maximum number of requests that wait for a connection, each up to [`Timeouts::connect`].
    pub max_waiting: u32,
}

/// When a request's cost is refunded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefundRule {
    /// Never.
    #[default]
    Never,
    /// Only if the request never reached an upstream.
    Unreached,
}

/// The `Host` header that the upstream receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The client's.
    #[default]
    Keep,
    /// The upstream's own, from its URL.
    Upstream,
}

impl Route {
    /// The maximum number of upstreams of a route.
    pub const UPSTREAMS_MAX: usize = 64;

    /// The default maximum size of a request's body: 10 MiB.
    pub const BODY_BYTES: u64 = 10 << 20;

    /// The default minimum rate of a request's body: 240 bytes per second.
    pub const MIN_UPLOAD_RATE: u64 = 240;
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            max: 1_024,
            max_waiting: 20_000,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            response: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            upload_grace: Duration::from_secs(10),
        }
    }
}
