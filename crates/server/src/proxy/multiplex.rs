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

/// How often a connection is asked whether it is still there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_PATIENCE: Duration = Duration::from_secs(10);

/// What one answer may be ahead of whoever reads it. The connection has no bound of its own: with one, a
/// few who do not read would keep everybody else's answers from coming.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Bytes of an answer's head.
const HEAD_BYTES: u32 = 64 << 10;

/// The HTTP/2 connection to an upstream, if there is one.
#[derive(Debug)]
pub(crate) struct Multiplex {
    sender: Mutex<Option<http2::SendRequest<Upload>>>,
    /// Whether the upstream is configured, or was last found, to speak HTTP/2.
    is_spoken: AtomicBool,
    /// Whoever connects holds it, so that many requests at once make one connection.
    turn: tokio::sync::Mutex<()>,
}

impl Multiplex {
    /// No connection yet, to an upstream that is known to speak HTTP/2 or not.
    pub(crate) fn new(is_spoken: bool) -> Self {
        Self {
            sender: Mutex::new(None),
            is_spoken: AtomicBool::new(is_spoken),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// The connection, if there is one that lives.
    pub(crate) fn current(&self) -> Option<http2::SendRequest<Upload>> {
        let sender = self.sender.lock();
        sender.as_ref().filter(|it| !it.is_closed()).cloned()
    }

    /// Whether HTTP/2 is what the upstream is known to speak.
    pub(crate) fn is_spoken(&self) -> bool {
        self.is_spoken.load(Relaxed)
    }

    /// Waits for the turn to connect, which is over when what this returns is dropped.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Lets all requests use this connection from now on.
    pub(crate) fn share(&self, sender: &http2::SendRequest<Upload>) {
        let mut shared = self.sender.lock();
        *shared = Some(sender.clone());
        self.is_spoken.store(true, Relaxed);
    }

    /// Notes that a new connection to the upstream speaks HTTP/1: unless one of HTTP/2 lives, requests
    /// count by connection again.
    pub(crate) fn refused(&self) {
        let shared = self.sender.lock();
        if shared.as_ref().is_none_or(http2::SendRequest::is_closed) {
            self.is_spoken.store(false, Relaxed);
        }
    }
}

/// Begins to speak HTTP/2 on `stream`. The connection lives as long as anybody holds what this returns,
/// or is answered on it.
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

/// Runs what hyper needs beside a connection where draining knows of it.
#[derive(Clone, Debug)]
struct Spawn(Arc<Tasks>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Spawn {
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}
