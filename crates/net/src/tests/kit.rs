//! A configurable frontend, and connections to it in memory.

use crate::bounds::Bounds;
use crate::connection::FrontendContext;
use crate::connection_handler::{AcceptedConnection, ConnectionHandler, ListenerConfig};
use crate::frontend::{Frontend, Protocols};
use crate::idle_clock::Pulse;
use crate::metrics::ListenerMetrics;
use crate::paced_body::PacedBody;
use crate::phase::{self, Phase, PhaseController, PhaseWatch};
use crate::session::RequestContext;
use crate::tasks::Tasks;
use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate_policy::listen::ConnectionAge;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy, duplex, split};
use tokio::time::timeout;

pub(super) const IDLE: Duration = Duration::from_secs(75);

/// A frontend that responds by the path of a request.
#[derive(Debug, Default)]
pub(super) struct TestFrontend {
    /// The paths of complete requests.
    seen: Mutex<Vec<String>>,
}

/// The body of a response.
#[derive(Debug)]
pub(super) enum TestBody {
    Text(Option<Bytes>),
    /// Nothing comes, and it does not end.
    Quiet,
    /// It never ends.
    Endless,
}

impl Body for TestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Quiet => Poll::Pending,
            Self::Endless => Poll::Ready(Some(Ok(Frame::data(vec![b'x'; 16 << 10].into())))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => {
                let length = text.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(length as u64)
            }
            Self::Quiet | Self::Endless => SizeHint::default(),
        }
    }
}

impl Frontend for TestFrontend {
    type Body = PacedBody<TestBody>;
    /// The number of requests on the connection.
    type Memory = AtomicU32;
    type PendingState = ();

    const PROTOCOLS: Protocols = Protocols::Http1AndHttp2;

    async fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_, AtomicU32>,
        (): (),
    ) -> Response<Self::Body> {
        let alive = visit.alive();
        let nth = visit.memory().fetch_add(1, SeqCst);
        let path = request.uri().path().to_owned();
        let (status, body) = match path.as_str() {
            "/quiet" => (StatusCode::OK, TestBody::Quiet),
            "/endless" => (StatusCode::OK, TestBody::Endless),
            "/never" => pending().await,
            "/nth" => (StatusCode::OK, text(nth.to_string())),
            "/tunnel" => {
                let closing = visit.closing();
                let upgrade = hyper::upgrade::on(*request);
                visit.tasks().spawn(async move {
                    let (mut read, mut write) = split(TokioIo::new(upgrade.await.unwrap()));
                    tokio::select! {
                        copied = copy(&mut read, &mut write) => drop(copied),
                        () = closing => write.write_all(b"bye").await.unwrap(),
                    }
                    write.shutdown().await.ok();
                });
                (StatusCode::SWITCHING_PROTOCOLS, text(String::new()))
            }
            _ => match (*request).into_body().collect().await {
                Ok(body) => {
                    let body = body.to_bytes();
                    self.seen.lock().push(path);
                    (StatusCode::OK, TestBody::Text(Some(body)))
                }
                Err(_) => (StatusCode::BAD_REQUEST, text("broken".to_owned())),
            },
        };
        let mut answer = Response::new(PacedBody::new(body, Some(alive)));
        *answer.status_mut() = status;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let headers = answer.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("test"));
        }
        answer
    }

    fn unauthorized() -> Response<Self::Body> {
        let mut answer = Response::new(PacedBody::new(TestBody::Text(None), None));
        *answer.status_mut() = StatusCode::UNAUTHORIZED;
        answer
    }

    fn problem(answer: &Response<Self::Body>) -> Option<u16> {
        let is_problem = answer.status().is_client_error();
        is_problem.then(|| answer.status().as_u16())
    }

    fn is_public(&self, _: &Request<Incoming>) -> bool {
        true
    }
}

fn text(text: String) -> TestBody {
    TestBody::Text(Some(text.into()))
}

/// A server without sockets.
pub(super) struct SocketlessServer {
    context: Arc<FrontendContext<TestFrontend>>,
    pub(super) tasks: Arc<Tasks>,
    /// The tasks of the clients.
    pub(super) clients: Tasks,
    lead: PhaseController,
    watch: PhaseWatch,
}

impl SocketlessServer {
    pub(super) fn new() -> Self {
        Self::aging(None)
    }

    /// Creates a server whose connections have a maximum age.
    pub(super) fn aging(age: Option<ConnectionAge>) -> Self {
        let (lead, watch) = phase::channel();
        Self {
            context: Arc::new(FrontendContext {
                threshold: ListenerConfig {
                    name: "test",
                    bounds: Bounds {
                        idle_time: IDLE,
                        ..Bounds::default().of_gateway()
                    },
                    metrics: ListenerMetrics::default(),
                    closes_in: Phase::Draining,
                    age,
                },
                frontend: TestFrontend::default(),
                token: None,
            }),
            tasks: Arc::default(),
            clients: Tasks::new(),
            lead,
            watch,
        }
    }

    /// Opens a connection with bounded buffers in both directions.
    pub(super) fn connect(&self) -> DuplexStream {
        self.connect_with(Arc::default())
    }

    /// Opens a connection with this pulse.
    pub(super) fn connect_with(&self, pulse: Arc<Pulse>) -> DuplexStream {
        let (ours, theirs) = duplex(4 << 10);
        let arrival = AcceptedConnection {
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure: None,
            tasks: Arc::clone(&self.tasks),
            phase: self.watch.clone(),
            pulse,
            open: (),
        };
        let context = Arc::clone(&self.context);
        self.tasks.spawn(context.serve(theirs, arrival));
        ours
    }

    /// Waits until all connections have ended. Time is paused, so a connection that hangs fails the test at once.
    pub(super) async fn finished(&self) {
        let a_week = Duration::from_hours(7 * 24);
        let ended = timeout(a_week, self.tasks.finished()).await;
        ended.expect("all connections end");
    }

    /// Returns the paths of all complete requests.
    pub(super) fn seen(&self) -> Vec<String> {
        self.context.frontend.seen.lock().clone()
    }

    /// Returns the number of connections that were cut because of too many frames.
    pub(super) fn floods(&self) -> u64 {
        self.context.threshold.metrics.flood.get()
    }

    pub(super) fn drain(&self) {
        self.lead.enter(Phase::Draining);
    }
}

/// Sends `bytes`, and reads until the connection closes or nothing has happened for long.
pub(super) async fn exchange(stream: DuplexStream, bytes: &[u8]) -> String {
    let (mut read, mut write) = split(stream);
    let mut replies = Vec::new();
    let send = async {
        // A server that rejects a request stops reading.
        if write.write_all(bytes).await.is_ok() {
            write.flush().await.ok();
        }
    };
    let receive = async {
        let end = read.read_to_end(&mut replies);
        timeout(IDLE * 3, end).await.ok();
    };
    tokio::join!(send, receive);
    String::from_utf8_lossy(&replies).into_owned()
}

/// Reads the next piece.
pub(super) async fn piece(stream: &mut DuplexStream) -> String {
    let mut bytes = vec![0; 4 << 10];
    let count = stream.read(&mut bytes).await.unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}

/// Returns the statuses of the responses in `replies`.
pub(super) fn statuses(replies: &str) -> Vec<&str> {
    let heads = replies.match_indices("HTTP/1.");
    heads.map(|(at, _)| &replies[at + 9..at + 12]).collect()
}
