//! One HTTP/1 connection to an upstream, driven by whoever uses it.
//!
//! hyper's client has two halves: one takes requests, the other does the reading and writing and is
//! meant to run in a task of its own. Then every request and every answer goes from task to task, and
//! each time somebody is woken. Here both halves stay together and belong to the request that uses the
//! connection: its own task drives it, and nobody is woken but by the network. Nobody drives an idle
//! connection; that it was closed meanwhile is noticed when it is taken up again.

use super::stream::Stream;
use super::upload::Upload;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Bytes of an answer's head, and what is read ahead of its body.
const BUFFER_BYTES: usize = 64 << 10;

/// One HTTP/1 connection to an upstream.
#[derive(Debug)]
pub(crate) struct Wire {
    sender: http1::SendRequest<Upload>,
    driver: http1::Connection<TokioIo<Stream>, Upload>,
    /// Whether the driver has come to its end; it must not be asked again.
    has_ended: bool,
}

impl Wire {
    /// Begins to speak HTTP/1 on `stream`.
    pub(crate) async fn new(stream: Stream) -> Result<Self, hyper::Error> {
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(BUFFER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            sender,
            driver,
            has_ended: false,
        })
    }

    /// Lets the connection do what it can without waiting.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        if !self.has_ended {
            // How it ended is told by whatever waits for something from it.
            self.has_ended = Pin::new(&mut self.driver).poll(context).is_ready();
        }
    }

    /// Whether it can take a request now, as far as this side knows.
    pub(crate) fn is_ready(&mut self, context: &mut Context<'_>) -> bool {
        self.drive(context);
        !self.has_ended && self.sender.is_ready()
    }

    /// Sends a request, and waits for the head of the answer. The body comes only as long as somebody
    /// [drives](Self::drive).
    pub(crate) async fn send(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Upload>>> {
        let Self {
            sender,
            driver,
            has_ended,
        } = self;
        let mut answer = pin!(sender.try_send_request(request));
        poll_fn(|context| {
            if !*has_ended {
                *has_ended = Pin::new(&mut *driver).poll(context).is_ready();
            }
            let answer = answer.as_mut().poll(context);
            if answer.is_pending() && *has_ended {
                // Its last word is on its way to us already.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            answer
        })
        .await
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
