//! One connection, from its first byte to its last.

use super::phase::{Phase, Watch};
use super::pulse::{Pulse, Watched};
use super::token::Token;
use crate::bounds::Bounds;
use crate::doors::Door;
use crate::doors::respond::{self, Answer};
use crate::telemetry::metrics::DoorMetrics;
use futures_util::future::{Either, ready};
use http::Request;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tracing::debug;

/// What all connections of a door share.
#[derive(Debug)]
pub(super) struct DoorContext<D> {
    pub(super) name: &'static str,
    pub(super) door: D,
    pub(super) token: Option<Token>,
    pub(super) bounds: Bounds,
    pub(super) metrics: DoorMetrics,
    /// The phase in which its connections say farewell.
    pub(super) closes_in: Phase,
}

/// What one connection knows of itself. Each request holds a clone, and cloning touches only what
/// belongs to this connection.
struct Session<D> {
    context: Arc<DoorContext<D>>,
    pulse: Arc<Pulse>,
    /// Who is at the other end.
    peer: IpAddr,
}

/// Serves a connection until it ends, is idle for too long, or the door closes.
pub(super) async fn serve<I, D>(
    stream: I,
    peer: IpAddr,
    context: Arc<DoorContext<D>>,
    mut phase: Watch,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    D: Door,
{
    let bounds = context.bounds;
    let closes_in = context.closes_in;
    let pulse = Arc::new(Pulse::default());
    let stream = TokioIo::new(Watched::new(stream, Arc::clone(&pulse)));
    let session = Arc::new(Session {
        context,
        pulse: Arc::clone(&pulse),
        // A socket for both families shows IPv4 in the clothes of IPv6.
        peer: peer.to_canonical(),
    });
    let service = service_fn(move |request| session.answer(request));
    let mut connection = pin!(http(&bounds).serve_connection(stream, service));

    tokio::select! {
        biased;
        ended = connection.as_mut() => return report(ended),
        () = idle(&pulse, bounds.idle_time) => return debug!("closed an idle connection"),
        () = phase.reaches(closes_in) => {}
    }

    // A client may have sent a request that is still on its way. It is answered, and told that it
    // was the last one; only a connection on which nothing comes is closed without a word.
    pulse.close();
    tokio::select! {
        biased;
        ended = connection.as_mut() => return report(ended),
        () = sleep(bounds.farewell_time) => {}
    }
    // To hyper a connection that never had a request is not idle, and it would wait for the first.
    if pulse.was_heard() {
        connection.as_mut().graceful_shutdown();
        report(connection.await);
    }
}

fn http(bounds: &Bounds) -> http1::Builder {
    let mut http = http1::Builder::new();
    // Not `pipeline_flush`: it loses answers when a connection closes with requests unread (a test
    // in `check` shows it), and buffers without bound for a client that does not read.
    http.writev(false)
        .max_header_size(bounds.head_bytes)
        // What is read ahead and what waits to be sent: at least a head, and most bodies in one
        // piece.
        .max_buf_size(bounds.head_bytes.max(bounds.body_bytes))
        // Without a timer hyper has no timeouts of its own; `idle` and the doors have them.
        .header_read_timeout(None);
    http
}

/// Waits until no request has begun for `time_max`, or up to a fifth longer.
///
/// It looks now and then, so that a request costs no timer and reads no clock.
async fn idle(pulse: &Pulse, time_max: Duration) {
    const LOOKS: u32 = 5;
    let mut seen = pulse.requests();
    let mut quiet = 0;
    while quiet < LOOKS {
        sleep(time_max / LOOKS).await;
        let now = pulse.requests();
        quiet = if now == seen { quiet + 1 } else { 0 };
        seen = now;
    }
}

/// Clients that go away or do not speak HTTP are everyday business.
fn report(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        debug!(%error, "a connection broke");
    }
}

impl<D: Door> Session<D> {
    fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Answer, Infallible>> + use<D> {
        self.pulse.begin(!request.body().is_end_stream());
        let context = &*self.context;
        let at_once = if context.admits(&request) {
            context.door.answer_at_once(&request, self.peer)
        } else {
            Some(respond::unauthorized())
        };
        match at_once {
            Some(answer) => Either::Left(ready(Ok(self.finish(answer)))),
            // Put aside, for hyper moves what it is given, and this is large.
            None => Either::Right(Box::pin(Arc::clone(self).wait(request))),
        }
    }

    async fn wait(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let answer = self.context.door.answer(request, self.peer).await;
        Ok(self.finish(answer))
    }

    fn finish(&self, answer: Answer) -> Answer {
        if answer.status().is_client_error() && !respond::is_decision(&answer) {
            self.context.metrics.count_bad(answer.status().as_u16());
        }
        if self.pulse.is_closing() {
            return respond::closing(answer);
        }
        answer
    }
}

impl<D: Door> DoorContext<D> {
    fn admits(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        token.is_presented(request.headers()) || self.door.is_public(request)
    }
}
