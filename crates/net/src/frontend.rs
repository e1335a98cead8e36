//! The trait that a frontend implements, and the protocols that its connections speak.

use super::session::RequestContext;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::{Body, Incoming};
use std::error::Error;
use std::future::Future;

/// A frontend: turns a request into a response. The server does the accepting, TLS, tokens, bounds and
/// draining.
///
/// Implementations only answer. They never see a socket, a certificate or a token, and need no bound on
/// headers or idle time: requests arrive here parsed, within [`Bounds`](crate::bounds::Bounds), and authorized.
/// Each frontend bounds its own bodies.
pub trait Frontend: Send + Sync + 'static {
    /// The body type of its responses.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Per-connection state, kept from the first request of a connection to its last.
    type Memory: Default + Send + Sync + 'static;

    /// The protocols that it speaks on its connections.
    const PROTOCOLS: Protocols = Protocols::Http1;

    /// The HTTP/2 settings, if the frontend speaks HTTP/2.
    const HTTP2: Http2Settings = Http2Settings::OF_STRANGERS;

    /// The state of a request that could not be answered immediately.
    type PendingState: Default + Send;

    /// Answers a request if this needs neither its body nor any waiting. Otherwise
    /// [`answer`](Self::answer) continues from the state in `PendingState`. A future that waits is large; this
    /// spares most requests from carrying it.
    fn answer_at_once(
        &self,
        _request: &Request<Incoming>,
        _visit: RequestContext<'_, Self::Memory>,
    ) -> Result<Response<Self::Body>, Self::PendingState> {
        Err(Self::PendingState::default())
    }

    /// Answers a request; every request gets a response. Runs in the connection's own task, and is
    /// dropped if the client disconnects.
    fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_, Self::Memory>,
        begun: Self::PendingState,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Returns the response to a request without a valid token.
    fn unauthorized() -> Response<Self::Body>;

    /// Returns true if a request needs no token, even if the frontend requires one.
    fn is_public(&self, request: &Request<Incoming>) -> bool;

    /// Returns the status under which to count a response that reports an invalid request.
    fn problem(answer: &Response<Self::Body>) -> Option<u16>;
}

/// The protocols that a frontend speaks on its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1, between a few programs that know each other.
    Http1,
    /// HTTP/1, parsed strictly, and HTTP/2: for untrusted clients.
    Http1AndHttp2,
    /// HTTP/2 from the first byte, between a few programs that know each other: gRPC.
    Http2,
}

/// The HTTP/2 settings of a frontend.
#[derive(Clone, Copy, Debug)]
pub struct Http2Settings {
    /// The maximum number of concurrent requests per connection.
    pub streams: u32,
    /// The maximum number of streams that a client may reset before they are handled. A client that
    /// exceeds it is disconnected.
    pub resets: usize,
    /// Send a `Date` header with responses.
    pub has_date: bool,
    /// Allow a stream to become a WebSocket (RFC 8441).
    pub takes_websockets: bool,
}

impl Http2Settings {
    /// For untrusted clients. Browsers open a hundred streams at a time; a client that resets many is
    /// attacking.
    pub const OF_STRANGERS: Self = Self {
        streams: 128,
        resets: 20,
        has_date: true,
        takes_websockets: false,
    };

    /// For proxies. A proxy sends all its calls on one connection, and resets those that are not answered
    /// within some milliseconds: all of them at once if anything is slow. Disconnecting it then would
    /// lose every other call of the connection as well.
    pub const OF_PROXIES: Self = Self {
        streams: 1_024,
        resets: 1_024,
        has_date: false,
        takes_websockets: false,
    };
}

impl Protocols {
    /// Returns the protocols to offer in TLS ALPN, the preferred one first.
    pub(crate) fn alpn(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Http1AndHttp2 => &[b"h2", b"http/1.1"],
            Self::Http2 => &[b"h2"],
        }
    }
}

/// Makes a response the last one on its connection.
pub fn closing<B>(mut answer: Response<B>) -> Response<B> {
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(CONNECTION, close);
    answer
}
