//! An HTTP/2 connection, from its first byte to its last.

use super::age::{Due, Life};
use super::connection::DoorConnection;
use super::idle::{LOOKS, Quiet};
use super::phase::PhaseWatch;
use super::streams::{Beginner, Streams};
use crate::bounds::Bounds;
use crate::doors::{Door, Http2Settings};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tracing::debug;

/// The bytes that a client may send ahead, per request and in total: they may have to be buffered.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The bytes buffered for sending on one stream.
const SEND_BYTES: usize = 64 << 10;
/// The maximum number of streams reset because of the client's errors.
const ERRORS: usize = 128;
/// The time of silence before a ping to the client, and the time for its reply.
const PING_TIME: Duration = Duration::from_secs(30);

/// Serves a connection until it ends, is idle or open for too long, or the listener closes.
pub(super) async fn serve<I, D>(stream: I, host: Arc<DoorConnection<D>>, mut phase: PhaseWatch)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    D: Door,
{
    let bounds = host.context.threshold.bounds;
    let closes_in = host.context.threshold.closes_in;
    let mut life = Life::begin(host.context.threshold.age);
    let pulse = Arc::clone(&host.session.pulse);
    let beginner = Beginner::default();
    let http = http(D::HTTP2, &bounds, beginner.clone());
    let mut streams = Streams::new(beginner.clone());
    let service = service_fn(move |request| host.answer(request, Some(beginner.announce())));
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut quiet = Quiet::at(&pulse);
    quiet.look(&pulse);
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = poll_fn(|context| drive(connection.as_mut(), &mut streams, context)) => {
                return report(ended);
            }
            due = life.within(bounds.idle_time / LOOKS) => match due {
                None => {}
                Some(Due::Farewell) => {
                    debug!("closing a connection at its maximum age");
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                Some(Due::End) => return debug!("closed a connection after its grace"),
            },
            // Sent at once: requests in flight are answered, and no others are accepted.
            () = phase.reaches(closes_in), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                continue;
            }
            () = pulse.evicted(), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                if pulse.idle_since().is_none() {
                    continue;
                }
                // Poll once, so that the client gets the GOAWAY: an idle connection must not keep its place.
                // This may read another request, or find that the client is still reading a response.
                let rest = poll_fn(|context| {
                    Poll::Ready(drive(connection.as_mut(), &mut streams, context).is_ready())
                });
                if rest.await || pulse.idle_since().is_some() {
                    return debug!("closed an idle connection to make room");
                }
                continue;
            }
        }
        streams.look();
        if quiet.look(&pulse) {
            break;
        }
    }
    debug!("closing an idle connection");
    connection.as_mut().graceful_shutdown();
    let rest = poll_fn(|context| drive(connection.as_mut(), &mut streams, context));
    if let Ok(ended) = timeout(bounds.farewell_time, rest).await {
        report(ended);
    }
}

/// Polls the streams, so that their output is sent; then the connection; then the streams that it began.
fn drive<C: Future>(
    connection: Pin<&mut C>,
    streams: &mut Streams,
    context: &mut Context<'_>,
) -> Poll<C::Output> {
    streams.poll(context);
    let poll = connection.poll(context);
    if poll.is_pending() {
        streams.poll(context);
    }
    poll
}

fn http(settings: Http2Settings, bounds: &Bounds, beginner: Beginner) -> http2::Builder<Beginner> {
    let mut http = http2::Builder::new(beginner);
    http.timer(TokioTimer::new())
        .auto_date_header(settings.has_date)
        .max_concurrent_streams(settings.streams)
        .max_header_list_size(u32::try_from(bounds.head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BYTES)
        .max_pending_accept_reset_streams(settings.resets)
        .max_local_error_reset_streams(ERRORS)
        .keep_alive_interval(PING_TIME)
        .keep_alive_timeout(PING_TIME);
    if settings.takes_websockets {
        http.enable_connect_protocol();
    }
    http
}

/// Logs an error at debug level: clients that disconnect or do not speak HTTP are normal.
fn report(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        debug!(%error, "a connection broke");
    }
}
