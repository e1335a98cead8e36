//! The doors: from a protocol to a question, and from a decision back.
//!
//! | module | what it is |
//! |---|---|
//! | `http` | `POST /v1/check`, reservations, and the way to `auth` |
//! | `auth` | `/v1/auth`: forward-auth for proxies |
//! | `deny` | the query of `/v1/auth` |
//! | `grpc` | Envoy's rate limit service, health and reflection over gRPC |
//! | `envoy_json` | `POST /json` and `GET /healthcheck`, as Envoy's own service has them |
//! | `gateway` | the reverse proxy |
//! | `resp` | the protocol of Redis: `CL.THROTTLE`, `TG.CHECK` |
//! | `admin` | `/livez`, `/readyz`, `/status`, `/metrics` |
//! | `body` | a request's body, bounded in size and time |
//! | `respond` | every status and header that is ever answered |

pub(crate) mod admin;
mod auth;
mod body;
mod deny;
mod envoy_json;
pub(crate) mod gateway;
pub(crate) mod grpc;
pub(crate) mod http;
pub mod resp;
pub(crate) mod respond;

use self::respond::DoorResponse;
use crate::server::session::RequestContext;
use ::http::{Request, Response};
use hyper::body::{Body, Incoming};
use std::error::Error;
use std::future::Future;

/// What a door does with a request. Accepting, TLS, tokens, bounds and draining are the server's.
pub(crate) trait Door: Send + Sync + 'static {
    /// What the bodies of its answers are.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// What it remembers of a connection, from its first request to its last.
    type Memory: Default + Send + Sync + 'static;

    /// What is spoken on its connections.
    const PROTOCOLS: Protocols = Protocols::Http1;

    /// How HTTP/2 is spoken, where it is.
    const HTTP2: Http2Settings = Http2Settings::OF_STRANGERS;

    /// A request that could not be answered at once, as far as the door has got with it.
    type Begun: Default + Send;

    /// Answers a request if neither its body is needed nor anything has to be waited for; otherwise
    /// [`answer`](Self::answer) goes on from where this has got. A future that waits is large, and
    /// this spares most requests from carrying it around.
    fn answer_at_once(
        &self,
        _request: &Request<Incoming>,
        _visit: RequestContext<'_, Self::Memory>,
    ) -> Result<Response<Self::Body>, Self::Begun> {
        Err(Self::Begun::default())
    }

    /// Answers a request; a door always has an answer. Runs in the connection's own task, and is
    /// dropped when the client goes.
    fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_, Self::Memory>,
        begun: Self::Begun,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// An answer that the server itself gives at this door.
    fn whole(answer: DoorResponse) -> Response<Self::Body>;

    /// Whether a request needs no token, even where the door asks for one.
    fn is_public(&self, request: &Request<Incoming>) -> bool;

    /// The status by which an answer is counted that says that something was wrong with the request.
    fn problem(answer: &Response<Self::Body>) -> Option<u16> {
        let is_problem = answer.status().is_client_error() && !respond::is_decision(answer);
        is_problem.then(|| answer.status().as_u16())
    }
}

/// What is spoken on the connections of a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/1, between a few programs that know each other.
    Http1,
    /// HTTP/1, read strictly, and HTTP/2: whatever strangers bring.
    Http1AndHttp2,
    /// HTTP/2 from the first byte, between a few programs that know each other: gRPC.
    Http2,
}

/// How HTTP/2 is spoken at a door.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http2Settings {
    /// Requests of one connection at a time.
    pub(crate) streams: u32,
    /// Streams that were reset before anybody came to them; a client that has more of them is cut
    /// off.
    pub(crate) resets: usize,
    /// Whether answers say when they were given.
    pub(crate) has_date: bool,
    /// Whether a stream may become a WebSocket (RFC 8441).
    pub(crate) takes_websockets: bool,
}

impl Http2Settings {
    /// Browsers open a hundred at a time, and who resets many is attacking.
    pub(crate) const OF_STRANGERS: Self = Self {
        streams: 128,
        resets: 20,
        has_date: true,
        takes_websockets: false,
    };

    /// A proxy brings all that it has on one connection, and takes back whatever is not answered
    /// within some milliseconds: all at once, when anything is slow. Cutting it off then would lose
    /// every other call of the connection as well.
    pub(crate) const OF_PROXIES: Self = Self {
        streams: 1_024,
        resets: 1_024,
        has_date: false,
        takes_websockets: false,
    };
}

impl Protocols {
    /// What is offered within TLS, the best first.
    pub(crate) fn alpn(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Http1AndHttp2 => &[b"h2", b"http/1.1"],
            Self::Http2 => &[b"h2"],
        }
    }
}
