//! One HTTP/2 connection to an upstream, shared by all requests to it.

use super::stream::UpstreamStream;
use super::upload::Upload;
use http::header::{HOST, TRANSFER_ENCODING};
use http::uri::{Authority, Scheme, Uri};
use http::{HeaderValue, Request, Version};
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tidegate_policy::route::UpstreamScheme;
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
    let (sender, connection) = http2::Builder::new(TaskExecutor::new(tasks))
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
            debug!(event = "upstream_connection_failed", %error, "HTTP/2 connection to an upstream failed");
        }
    });
    Ok(sender)
}

/// Sets the target of a request as HTTP/2 requires it, with `:authority` in place of `Host`; `own` is that
/// of an upstream, for a request that names none. Returns the request's `Host`, for an attempt over another
/// connection.
pub(crate) fn address(
    request: &mut Request<Upload>,
    scheme: UpstreamScheme,
    own: &HeaderValue,
) -> Option<HeaderValue> {
    *request.version_mut() = Version::HTTP_2;
    request.headers_mut().remove(TRANSFER_ENCODING);
    let host = request.headers_mut().remove(HOST);
    let named = host.as_ref().filter(|host| !host.is_empty());
    let authority = named.unwrap_or(own).as_bytes();
    let mut parts = request.uri().clone().into_parts();
    parts.scheme = Some(match scheme {
        UpstreamScheme::Https => Scheme::HTTPS,
        _ => Scheme::HTTP,
    });
    parts.authority = Authority::try_from(authority).ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    host
}

/// An executor that spawns hyper's tasks where draining waits for them.
#[derive(Clone, Debug)]
pub(crate) struct TaskExecutor(Arc<Tasks>);

impl TaskExecutor {
    /// Creates an executor that spawns in this group.
    pub(crate) fn new(tasks: &Arc<Tasks>) -> Self {
        Self(Arc::clone(tasks))
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for TaskExecutor {
    fn execute(&self, future: F) {
        self.0.spawn_unboxed(future);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: Option<&'static str>) -> Request<Upload> {
        let mut request = Request::new(Upload::none());
        *request.uri_mut() = Uri::from_static("/a?b");
        if let Some(host) = host {
            let host = HeaderValue::from_static(host);
            request.headers_mut().insert(HOST, host);
        }
        request
    }

    #[test]
    fn a_request_that_was_not_sent_keeps_the_clients_host_for_the_next_attempt() {
        let own = HeaderValue::from_static("upstream.example");
        let mut first = request(Some("shop.example"));
        let host = address(&mut first, UpstreamScheme::Https, &own);
        assert_eq!(*first.uri(), "https://shop.example/a?b");
        assert!(!first.headers().contains_key(HOST));
        // As `send_http2` does with a request that hyper hands back.
        first.headers_mut().insert(HOST, host.unwrap());
        address(&mut first, UpstreamScheme::H2c, &own);
        assert_eq!(*first.uri(), "http://shop.example/a?b");
    }

    #[test]
    fn a_request_without_a_host_names_the_upstream() {
        let own = HeaderValue::from_static("upstream.example:8443");
        for host in [None, Some("")] {
            let mut request = request(host);
            let before = address(&mut request, UpstreamScheme::Https, &own);
            assert_eq!(
                before.as_ref().map(HeaderValue::as_bytes),
                host.map(str::as_bytes)
            );
            assert_eq!(*request.uri(), "https://upstream.example:8443/a?b");
        }
    }
}
