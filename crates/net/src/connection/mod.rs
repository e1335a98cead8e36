//! One connection, from its first byte to its last.

mod http2;

use crate::age::ConnectionLifetime;
use crate::bounds::Bounds;
use crate::connection_handler::{
    AcceptedConnection, ByteStream, ConnectionGuard, ConnectionHandler, ListenerConfig,
};
use crate::frames::FrameMeter;
use crate::frontend::{Frontend, Protocols, closing};
use crate::idle::idle;
use crate::idle_clock::ResponseTurn;
use crate::phase::PhaseWatch;
use crate::promise::boxed;
use crate::session::{ConnectionState, RequestContext};
use crate::smuggling_screen::Screen;
use crate::token::ListenerToken;
use crate::watched_stream::WatchedStream;
use futures_util::StreamExt;
use futures_util::future::{Either, ready};
use futures_util::stream::FuturesUnordered;
use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::AsyncRead;
use tokio::time::{sleep, timeout};
use tracing::debug;

/// The state that all connections of an HTTP listener share.
#[derive(Debug)]
pub struct FrontendContext<D> {
    /// The settings of the listener.
    pub threshold: ListenerConfig,
    /// The frontend.
    pub frontend: D,
    /// The token that callers need, if they need one.
    pub token: Option<ListenerToken>,
}

/// A connection and its listener. Each request holds a clone, and cloning touches only data of this
/// connection.
pub(crate) struct FrontendConnection<D: Frontend> {
    pub(crate) context: Arc<FrontendContext<D>>,
    pub(crate) session: ConnectionState<D::Memory>,
}

impl<D: Frontend> ConnectionHandler for FrontendContext<D> {
    fn threshold(&self) -> &ListenerConfig {
        &self.threshold
    }

    fn serve<I: ByteStream, O: ConnectionGuard>(
        self: Arc<Self>,
        stream: I,
        arrival: AcceptedConnection<O>,
    ) -> impl Future<Output = ()> + Send + 'static {
        serve(self, stream, arrival)
    }
}

/// Serves a connection until it ends, is idle for too long, or the listener closes.
async fn serve<D: Frontend, I: ByteStream, O: ConnectionGuard>(
    context: Arc<FrontendContext<D>>,
    stream: I,
    arrival: AcceptedConnection<O>,
) {
    let pulse = arrival.pulse;
    let mut stream = WatchedStream::new(stream, Arc::clone(&pulse), arrival.open);
    let secure = arrival.secure;
    let phase = arrival.phase.clone();
    let host = Arc::new(FrontendConnection {
        session: ConnectionState {
            // A dual-stack socket shows IPv4 addresses mapped to IPv6.
            peer: arrival.peer.to_canonical(),
            is_secure: secure.is_some(),
            certificate: secure.and_then(|secure| secure.certificate),
            pulse,
            tasks: arrival.tasks,
            phase: arrival.phase,
            closes_in: context.threshold.closes_in,
            memory: D::Memory::default(),
        },
        context,
    });
    let meter = || FrameMeter::new(host.context.threshold.metrics.flood.clone());
    if D::PROTOCOLS == Protocols::Http2 {
        let stream = stream.metered(meter());
        return Box::pin(http2::serve(stream, host, phase)).await;
    }
    if D::PROTOCOLS == Protocols::Http1AndHttp2 {
        stream = stream.screened(Screen::new(host.context.threshold.metrics.rejected.clone()));
        let is_http2 = match secure {
            Some(secure) => Some(secure.is_http2),
            None => Box::pin(host.greet(&mut stream, phase.clone())).await,
        };
        match is_http2 {
            None => return,
            Some(false) => {}
            Some(true) => {
                stream.open();
                let stream = stream.metered(meter());
                return Box::pin(http2::serve(stream, host, phase)).await;
            }
        }
    }
    serve_http1(stream, host, phase).await;
}

/// Serves a connection that is known to be HTTP/1.
async fn serve_http1<I: ByteStream, D: Frontend>(
    stream: I,
    host: Arc<FrontendConnection<D>>,
    mut phase: PhaseWatch,
) {
    let bounds = host.context.threshold.bounds;
    let closes_in = host.context.threshold.closes_in;
    let mut life = ConnectionLifetime::begin(host.context.threshold.age);
    let pulse = Arc::clone(&host.session.pulse);
    let service = service_fn(move |request| host.answer(request, None));
    let connection = http(&bounds).serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection.with_upgrades());

    // Polled only when one of them is woken, and not with every piece of data: most of the time only the
    // connection is.
    let mut calls = FuturesUnordered::from_iter([async {
        tokio::select! {
            biased;
            () = idle(&pulse, bounds.idle_time) => CloseReason::Idle,
            () = phase.reaches(closes_in) => CloseReason::Closing,
            () = pulse.evicted() => CloseReason::Evicted,
            _ = life.next() => CloseReason::Closing,
        }
    }]);
    tokio::select! {
        biased;
        ended = connection.as_mut() => return report(ended),
        call = calls.next() => match call {
            Some(CloseReason::Idle) => return debug!(event = "connection_closed_idle", "idle connection closed"),
            Some(CloseReason::Evicted) if pulse.idle_since().is_some() => {
                return debug!(event = "connection_evicted", "idle connection closed to make room");
            }
            Some(CloseReason::Evicted | CloseReason::Closing) | None => {}
        },
    }
    drop(calls);

    // A client may have sent a request that is still in transit. It is answered as the last one; only a
    // connection without one is closed without an answer.
    pulse.close();
    tokio::select! {
        biased;
        ended = connection.as_mut() => return report(ended),
        () = sleep(bounds.farewell_time) => {}
    }
    // For hyper a connection without any request is not idle, and it would wait for the first.
    if pulse.was_heard() {
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            biased;
            ended = connection => report(ended),
            // A client that does not read its last response must not keep its place.
            () = idle(&pulse, bounds.idle_time) => debug!(event = "connection_closed_idle", "idle connection closed"),
            () = life.end() => debug!(event = "connection_closed_grace", "connection closed after its grace period"),
        }
    }
}

/// The reason why a healthy connection ends.
enum CloseReason {
    /// Nothing has happened for too long.
    Idle,
    /// The listener closes, or the connection has its maximum age.
    Closing,
    /// There are too many connections, and this one was idle.
    Evicted,
}

fn http(bounds: &Bounds) -> http1::Builder {
    let mut http = http1::Builder::new();
    // Not `pipeline_flush`: it loses responses when a connection closes with requests unread (a test in
    // `check` shows it), and buffers without bound for a client that does not read.
    http.writev(false)
        .max_header_size(bounds.head_bytes)
        // The bound of data read ahead and of data to be sent: at least a head, and most bodies in one piece.
        .max_buf_size(bounds.head_bytes.max(bounds.body_bytes))
        // Without a timer hyper has no timeouts; `idle` and the frontends have them.
        .header_read_timeout(None);
    http
}

/// Logs an error at debug level: clients that disconnect or do not speak HTTP are normal.
fn report(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        debug!(event = "connection_failed", %error, "connection failed");
    }
}

impl<D: Frontend> FrontendConnection<D> {
    const IS_SCREENED: bool = matches!(D::PROTOCOLS, Protocols::Http1AndHttp2);

    /// Waits for a client's first bytes. Returns true if they begin HTTP/2; `None` if none come.
    async fn greet<I, O>(
        &self,
        stream: &mut WatchedStream<I, O>,
        mut phase: PhaseWatch,
    ) -> Option<bool>
    where
        I: AsyncRead + Unpin,
    {
        let bounds = &self.context.threshold.bounds;
        tokio::select! {
            biased;
            first = stream.is_http2() => return first.ok(),
            () = sleep(bounds.idle_time) => return None,
            () = self.session.pulse.evicted() => return None,
            () = phase.reaches(self.context.threshold.closes_in) => {}
        }
        let first = timeout(bounds.farewell_time, stream.is_http2()).await;
        first.ok()?.ok()
    }

    pub(crate) fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        strand: Option<Arc<ResponseTurn>>,
    ) -> impl Future<Output = Result<Response<D::Body>, Infallible>> + use<D> {
        let has_body = !request.body().is_end_stream();
        self.session.pulse.begin(has_body);
        // In HTTP/2 it takes a stream, and not the connection.
        let is_connect =
            Self::IS_SCREENED && strand.is_none() && request.method() == Method::CONNECT;
        let context = &*self.context;
        let at_once = if context.admits(&request) {
            let visit = RequestContext::new(&self.session, strand.as_ref(), has_body);
            context.frontend.answer_at_once(&request, visit)
        } else {
            Ok(D::unauthorized())
        };
        match at_once {
            // Box both: hyper moves the future, and a response is large.
            Ok(answer) => Either::Left(Box::pin(ready(Ok(self.finish(answer, is_connect))))),
            Err(begun) => {
                // Box the request as well, or every await point would reserve space for one.
                let begun = (Box::new(request), begun);
                let host = Arc::clone(self);
                let waiting = boxed(|| host.wait(begun, strand, (is_connect, has_body)));
                Either::Right(Box::into_pin(waiting))
            }
        }
    }

    async fn wait(
        self: Arc<Self>,
        (request, begun): (Box<Request<Incoming>>, D::PendingState),
        strand: Option<Arc<ResponseTurn>>,
        (is_connect, has_body): (bool, bool),
    ) -> Result<Response<D::Body>, Infallible> {
        let _answering = self.session.pulse.answering();
        let visit = RequestContext::new(&self.session, strand.as_ref(), has_body);
        let answer = self.context.frontend.answer(request, visit, begun).await;
        Ok(self.finish(answer, is_connect))
    }

    fn finish(&self, answer: Response<D::Body>, is_connect: bool) -> Response<D::Body> {
        if Self::IS_SCREENED {
            let is_switch = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
            let is_tunnel = is_switch || (is_connect && answer.status().is_success());
            self.session.pulse.settle(is_tunnel);
            self.session.pulse.interims().clear();
        }
        if let Some(status) = D::problem(&answer) {
            self.context.threshold.metrics.count_bad(status);
        }
        // An interim response, such as for an upgrade, has its own `Connection`.
        if self.session.pulse.is_closing() && !answer.status().is_informational() {
            return closing(answer);
        }
        answer
    }
}

impl<D: Frontend> FrontendContext<D> {
    fn admits(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        token.is_presented(request.headers()) || self.frontend.is_public(request)
    }
}
