//! Where the gateway sends requests: routes as compiled, with nothing left to look up.
//!
//! | module | what it is |
//! |---|---|
//! | `upstream` | where a request goes: address, protocol, TLS |
//! | `health` | which upstreams are fit to be asked |
//! | `claims` | headers that only trusted proxies may send to upstreams |
//! | `rewrite` | what is changed in the head of a message |
//! | `routes` | all routes, and which one a request takes |

mod claims;
mod health;
mod rewrite;
mod routes;
mod upstream;

pub use claims::CLIENT_CLAIMS;
pub use health::{Eject, HealthCheck};
pub use rewrite::Rewrite;
pub use routes::{FoundRoute, Routes};
pub use upstream::{ClientCertificate, Http2Use, Upstream, UpstreamScheme, UpstreamTls};

use crate::limit::Condition;
use std::time::Duration;
use tidegate_core::Quota;

/// One way through the gateway: which requests take it, where they go, and under which limits.
#[derive(Debug)]
pub struct Route {
    /// Its name, unique among routes: what limits with `key: route` and metrics know it by.
    pub id: String,
    /// Whether any request takes it.
    pub enabled: bool,
    /// It is taken if any of these holds; without any, by every request. They name paths, hosts
    /// and methods alone.
    pub conditions: Vec<Condition>,
    /// The path of each condition as configured, `/` where it names none, for the labels of
    /// metrics. There is always one.
    pub patterns: Vec<String>,
    /// Where requests go; there is always one.
    pub upstreams: Vec<Upstream>,
    /// How TLS is spoken to those of them that want it.
    pub tls: UpstreamTls,
    /// Which of several is asked.
    pub balance: Balance,
    /// How upstreams are looked after between requests, if they are.
    pub health: Option<HealthCheck>,
    /// When an upstream that fails requests is left alone, if ever.
    pub eject: Option<Eject>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How many connections each upstream may have.
    pub connections: Connections,
    /// The policy that its requests must pass; `None` where they are unlimited.
    pub policy: Option<RoutePolicy>,
    /// Whether a request that never reached an upstream is given its cost back.
    pub refund: RefundRule,
    /// How often a request may be tried again, where that is safe; up to 5.
    pub retries: u8,
    /// How large the body of a request may be; `None` where it does not matter.
    pub body_bytes: Option<u64>,
    /// How many bytes of a body must come in a second; `None` where it does not matter.
    pub min_upload_rate: Option<u64>,
    /// Which `Host` the upstream is told.
    pub host: HostHeader,
    /// What is taken from the beginning of a path that begins with it, by whole segments:
    /// normalised, with a `/` before it and none after it, and never `/` alone.
    pub strip_prefix: Option<String>,
    /// What is changed in the head of a request.
    pub request_headers: Rewrite,
    /// What is changed in the head of a response.
    pub response_headers: Rewrite,
    /// Headers of [`CLIENT_CLAIMS`] that untrusted clients may send on to upstreams, in lower case.
    pub pass_headers: Vec<String>,
    /// To what a connection may be upgraded, in lower case.
    pub upgrades: Vec<String>,
    /// What clients may send on a WebSocket; `None` where that is not limited.
    pub messages: Option<MessageLimits>,
}

/// What clients may send on a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// The policy that each message must pass, if any.
    pub policy: Option<RoutePolicy>,
    /// What one connection may carry.
    pub bounds: MessageBounds,
}

/// What a client may send on one WebSocket, whatever others send. `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageBounds {
    /// The size of a message, all its frames together, as it is on the wire.
    pub message_bytes: Option<u64>,
    /// Bytes of all frames, their headers included.
    pub bytes: Option<Quota>,
    /// Frames that begin no message: pings, pongs, and continuations of a message.
    pub frames: Option<Quota>,
}

/// A policy of the same configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePolicy {
    /// Its name, by which [`Request::policy`](crate::Request::policy) asks for it.
    pub name: String,
    /// Its place in [`Config::policies`](crate::Config::policies).
    pub index: usize,
}

/// Which of several upstreams is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// One after the other, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest requests under way for its weight.
    LeastRequests,
}

/// How the gateway reads paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// A path that two programs could read in two ways is refused.
    #[default]
    Strict,
    /// Such a path is passed on as it is.
    Lenient,
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection, TLS included.
    pub connect: Duration,
    /// From the end of the request until the head of the response is there.
    pub response: Duration,
    /// Between two pieces of a body, or of a connection that was upgraded.
    pub idle: Duration,
    /// How long a body may take on top of what [`Route::min_upload_rate`] allows.
    pub upload_grace: Duration,
}

/// How many connections an upstream may have. Over HTTP/2 all requests share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections that there may be, those that wait for a request and upgraded ones included.
    pub max: u32,
    /// Requests that may wait for one, each as long as [`Timeouts::connect`].
    pub max_waiting: u32,
}

/// Whether a request is given its cost back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefundRule {
    /// What was charged stays charged.
    #[default]
    Never,
    /// If it never reached an upstream.
    Unreached,
}

/// Which `Host` the upstream is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The one that the client sent.
    #[default]
    Keep,
    /// Its own, as the URL has it.
    Upstream,
}

impl Route {
    /// The most upstreams that a route can have.
    pub const UPSTREAMS_MAX: usize = 64;

    /// The largest body of a request unless told otherwise: 10 MiB.
    pub const BODY_BYTES: u64 = 10 << 20;

    /// The least rate of a request's body by default: 240 bytes a second.
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
            response: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            upload_grace: Duration::from_secs(10),
        }
    }
}
