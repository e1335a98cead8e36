//! One HTTP/1 connection to an upstream, driven by whoever uses it.
//!
//! hyper's client has two halves: one takes requests, the other does the reading and writing and is
//! meant to run in a task of its own. Then every request and every answer goes from task to task, and
//! each time somebody is woken. Here both halves stay together and belong to the request that uses the
//! connection: its own task drives it, and nobody is woken but by the network. Nobody drives an idle
//! connection; that it was closed meanwhile is noticed when it is taken up again.

use super::stream::Stream;
use super::target::Sent;
use super::upload::{Progress, Upload};
use bytes::Bytes;
use http::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Bytes of an answer's head, and what is read ahead of its body.
const BUFFER_BYTES: usize = 64 << 10;

/// One HTTP/1 connection to an upstream.
#[derive(Debug)]
pub(crate) struct Wire {
    sender: http1::SendRequest<Upload>,
    driver: http1::Connection<TokioIo<Stream>, Upload>,
    /// Whether the driver has come to its end; it must not be asked again.
    has_ended: bool,
    /// How long an answer may take; moved on with every request.
    timer: Pin<Box<Sleep>>,
    /// Rung when something comes while nobody uses it: most likely its end.
    bell: Arc<Bell>,
}

/// No answer came in time.
#[derive(Debug)]
pub(crate) struct TimedOut;

/// Remembers that it was rung.
#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Release);
    }
}

impl Wire {
    /// Begins to speak HTTP/1 on `stream`.
    pub(crate) async fn new(stream: Stream) -> Result<Self, hyper::Error> {
        let (sender, driver) = http1::Builder::new()
            // One call with one piece is cheaper than one with several; most requests are a head.
            .writev(false)
            .max_buf_size(BUFFER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            sender,
            driver,
            has_ended: false,
            timer: Box::pin(sleep(Duration::ZERO)),
            bell: Arc::default(),
        })
    }

    /// Lets the connection do what it can without waiting.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        if !self.has_ended {
            // How it ended is told by whatever waits for something from it.
            self.has_ended = Pin::new(&mut self.driver).poll(context).is_ready();
        }
    }

    /// Lets it come to rest after an answer, and tells whether it can take another request: not if its
    /// request is still being sent, or either side wants to close it. Whoever used it is not woken for
    /// it any more.
    pub(crate) fn rest(&mut self) -> bool {
        self.bell.0.store(false, Relaxed);
        let waker = Waker::from(Arc::clone(&self.bell));
        self.drive(&mut Context::from_waker(&waker));
        !self.has_ended && self.sender.is_ready()
    }

    /// Whether it can still take a request, as far as this side knows. If nothing came since it came to
    /// rest, nobody has closed it.
    pub(crate) fn is_ready(&mut self) -> bool {
        !self.bell.0.load(Acquire) || self.rest()
    }

    /// Sends a request, and waits for the head of the answer: for `time_max`, from when its body no
    /// longer goes on. The body of the answer comes only as long as somebody [drives](Self::drive).
    pub(crate) fn send<'a>(
        &'a mut self,
        request: Request<Upload>,
        upload: &'a Progress,
        time_max: Duration,
    ) -> impl Future<Output = Result<Sent, TimedOut>> + Unpin + 'a {
        let Self {
            sender,
            driver,
            has_ended,
            timer,
            ..
        } = self;
        // Put aside, for it holds the request, and whoever holds this would hold it as well.
        let mut answer = Box::pin(sender.try_send_request(request));
        // One for all requests: to move it further into the future costs next to nothing.
        reset(timer, time_max);
        poll_fn(move |context| {
            if !*has_ended {
                *has_ended = Pin::new(&mut *driver).poll(context).is_ready();
            }
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Ok(answer));
            }
            if *has_ended {
                // Its last word is on its way to us already.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            while timer.as_mut().poll(context).is_ready() {
                if !upload.goes_on() {
                    return Poll::Ready(Err(TimedOut));
                }
                reset(timer, time_max);
            }
            Poll::Pending
        })
    }

    /// What comes after HTTP, once the upstream has agreed to change to something else: the bytes, and
    /// those that were read ahead.
    pub(crate) async fn into_upgraded(mut self: Box<Self>) -> (Stream, Bytes) {
        poll_fn(|context| {
            self.drive(context);
            if self.has_ended {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let parts = self.driver.into_parts();
        (parts.io.into_inner(), parts.read_buf)
    }
}

fn reset(timer: &mut Pin<Box<Sleep>>, time: Duration) {
    // A time that no clock will ever show is as good as none.
    if let Some(due) = Instant::now().checked_add(time) {
        timer.as_mut().reset(due);
    }
}
