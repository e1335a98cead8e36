//! One HTTP/2 connection to an upstream, shared by all requests to it.

use super::stream::UpstreamStream;
use super::upload::Upload;
use crate::tasks::Tasks;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::MutexGuard;
use tracing::debug;

/// The interval of pings on a connection, and the maximum time for their reply.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_PATIENCE: Duration = Duration::from_secs(10);

/// The maximum data of one response that is buffered ahead of its reader. The connection itself has no bound:
/// with one, a few clients that do not read would block the responses of all others.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// The maximum size of a response head in bytes.
const HEAD_BYTES: u32 = 64 << 10;

/// The HTTP/2 connection to an upstream, if there is one.
#[derive(Debug)]
pub(crate) struct Multiplex {
    sender: Mutex<Option<http2::SendRequest<Upload>>>,
    /// True if the upstream is configured, or was last found, to speak HTTP/2.
    is_spoken: AtomicBool,
    /// Held while connecting, so that many concurrent requests open one connection.
    turn: tokio::sync::Mutex<()>,
}

impl Multiplex {
    /// Creates a multiplex without a connection, to an upstream that is known to speak HTTP/2 or not.
    pub(crate) fn new(is_spoken: bool) -> Self {
        Self {
            sender: Mutex::new(None),
            is_spoken: AtomicBool::new(is_spoken),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Returns the connection, if there is an open one.
    pub(crate) fn current(&self) -> Option<http2::SendRequest<Upload>> {
        let sender = self.sender.lock();
        sender.as_ref().filter(|it| !it.is_closed()).cloned()
    }

    /// Returns true if the upstream is known to speak HTTP/2.
    pub(crate) fn is_spoken(&self) -> bool {
        self.is_spoken.load(Relaxed)
    }

    /// Waits for the turn to connect, which ends when the returned guard is dropped.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Shares this connection with all requests from now on.
    pub(crate) fn share(&self, sender: &http2::SendRequest<Upload>) {
        let mut shared = self.sender.lock();
        *shared = Some(sender.clone());
        self.is_spoken.store(true, Relaxed);
    }

    /// Records that a new connection to the upstream speaks HTTP/1. Unless an HTTP/2 connection is open,
    /// requests count by connection again.
    pub(crate) fn refused(&self) {
        let shared = self.sender.lock();
        if shared.as_ref().is_none_or(http2::SendRequest::is_closed) {
            self.is_spoken.store(false, Relaxed);
        }
    }
}

/// Starts HTTP/2 on `stream`. The connection lives as long as the returned sender or any response on it.
pub(crate) async fn begin(
    stream: UpstreamStream,
    tasks: &Arc<Tasks>,
) -> Result<http2::SendRequest<Upload>, hyper::Error> {
    let (sender, connection) = http2::Builder::new(Spawn(Arc::clone(tasks)))
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_PATIENCE)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await?;
    tasks.spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "an HTTP/2 connection to an upstream broke");
        }
    });
    Ok(sender)
}

/// An executor that spawns hyper's tasks where draining waits for them.
#[derive(Clone, Debug)]
struct Spawn(Arc<Tasks>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Spawn {
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}
