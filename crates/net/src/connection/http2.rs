//! An HTTP/2 connection, from its first byte to its last.

use super::FrontendConnection;
use crate::age::{AgeAction, ConnectionLifetime};
use crate::bounds::Bounds;
use crate::frontend::{Frontend, Http2Settings};
use crate::idle::{LOOKS, QuietTime};
use crate::idle_clock::Pulse;
use crate::phase::{Phase, PhaseWatch};
use crate::streams::{StreamExecutor, Streams};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
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
pub(super) async fn serve<I, D>(stream: I, host: Arc<FrontendConnection<D>>, mut phase: PhaseWatch)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    D: Frontend,
{
    let bounds = host.context.threshold.bounds;
    let closes_in = host.context.threshold.closes_in;
    let pause = bounds.idle_time / LOOKS;
    let mut life = ConnectionLifetime::begin(host.context.threshold.age);
    let pulse = Arc::clone(&host.session.pulse);
    let beginner = StreamExecutor::default();
    let http = http(D::HTTP2, &bounds, beginner.clone());
    let mut streams = Streams::new(beginner.clone());
    let service = service_fn(move |request| host.answer(request, Some(beginner.announce())));
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let farewell = |connection: Pin<&mut _>| http2::Connection::graceful_shutdown(connection);
    let watch = (&mut life, &mut phase, &*pulse);
    match keep(
        (connection.as_mut(), farewell),
        &mut streams,
        watch,
        (closes_in, pause),
    )
    .await
    {
        DriveEnd::Ended(ended) => return report(ended),
        DriveEnd::Over => return,
        DriveEnd::Idle => {}
    }
    debug!(
        event = "connection_closed_idle",
        "closing an idle connection"
    );
    connection.as_mut().graceful_shutdown();
    let rest = poll_fn(|context| drive(connection.as_mut(), &mut streams, context));
    if let Ok(ended) = timeout(bounds.farewell_time, rest).await {
        report(ended);
    }
}

/// The reason why a connection is not driven any longer.
enum DriveEnd<T> {
    /// It has ended.
    Ended(T),
    /// It is to be closed at once.
    Over,
    /// It was idle for too long.
    Idle,
}

/// Drives a connection until it ends, or is to be closed. `shut_down` asks its client to close it.
async fn keep<C: Future>(
    (mut connection, shut_down): (Pin<&mut C>, impl Fn(Pin<&mut C>)),
    streams: &mut Streams,
    (life, phase, pulse): (&mut ConnectionLifetime, &mut PhaseWatch, &Pulse),
    (closes_in, pause): (Phase, Duration),
) -> DriveEnd<C::Output> {
    let mut quiet = QuietTime::at(pulse);
    quiet.look(pulse);
    let mut is_closing = false;
    loop {
        let watch = (&mut *life, &mut *phase, pulse);
        // Polled only when it is woken, and not with every piece of data: most of the time only the
        // connection is.
        let mut calls =
            FuturesUnordered::from_iter([next_call(watch, closes_in, pause, is_closing)]);
        let call = tokio::select! {
            biased;
            ended = poll_fn(|context| drive(connection.as_mut(), streams, context)) => {
                return DriveEnd::Ended(ended);
            }
            call = calls.next() => call,
        };
        drop(calls);
        match call {
            None | Some(Call::Look) => {
                streams.look();
                if quiet.look(pulse) {
                    return DriveEnd::Idle;
                }
            }
            Some(Call::End) => {
                debug!(
                    event = "connection_closed_grace",
                    "connection closed after its grace period"
                );
                return DriveEnd::Over;
            }
            // Sent at once: requests in flight are answered, and no others are accepted.
            Some(Call::Aged | Call::Closing) => {
                is_closing = true;
                shut_down(connection.as_mut());
            }
            Some(Call::Evicted) => {
                is_closing = true;
                shut_down(connection.as_mut());
                if pulse.idle_since().is_none() {
                    continue;
                }
                // Poll once, so that the client gets the GOAWAY: an idle connection must not keep its place.
                // This may read another request, or find that the client is still reading a response.
                let rest = poll_fn(|context| {
                    Poll::Ready(drive(connection.as_mut(), streams, context).is_ready())
                });
                if rest.await || pulse.idle_since().is_some() {
                    debug!(
                        event = "connection_evicted",
                        "idle connection closed to make room"
                    );
                    return DriveEnd::Over;
                }
            }
        }
    }
}

/// A reason to look after a connection, other than its data.
enum Call {
    /// It is time to check if anything happens on it.
    Look,
    /// It has its maximum age.
    Aged,
    /// Its grace after that is over.
    End,
    /// The listener closes.
    Closing,
    /// There are too many connections.
    Evicted,
}

/// Waits for the next call. A connection that `is_closing` is neither closed nor evicted once more.
async fn next_call(
    (life, phase, pulse): (&mut ConnectionLifetime, &mut PhaseWatch, &Pulse),
    closes_in: Phase,
    pause: Duration,
    is_closing: bool,
) -> Call {
    tokio::select! {
        biased;
        due = life.within(pause) => match due {
            None => Call::Look,
            Some(AgeAction::Farewell) => {
                debug!(event = "connection_max_age", "closing a connection at its maximum age");
                Call::Aged
            }
            Some(AgeAction::End) => Call::End,
        },
        () = phase.reaches(closes_in), if !is_closing => Call::Closing,
        () = pulse.evicted(), if !is_closing => Call::Evicted,
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

fn http(
    settings: Http2Settings,
    bounds: &Bounds,
    beginner: StreamExecutor,
) -> http2::Builder<StreamExecutor> {
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
        debug!(event = "connection_failed", %error, "connection failed");
    }
}
