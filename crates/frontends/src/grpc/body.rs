//! The bodies of gRPC responses: one message and a status, or a stream of messages.

use super::status::{GrpcStatus, STATUS};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tidegate_net::idle_clock::ActivityGuard;
use tidegate_net::paced_body::PacedBody;

/// A stream of messages that ends with a status.
pub(super) trait MessageSource: Send + 'static {
    /// Returns the next message, framed. At the end of the stream returns `Err`, with `None` if the
    /// status is OK.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Option<GrpcStatus>>>;
}

/// The body of a gRPC response.
#[derive(Debug)]
pub enum GrpcBody {
    /// No data, or all data was sent.
    Empty,
    /// A framed message, then trailers with status OK.
    Message(Bytes),
    /// Trailers with status OK.
    Well,
    /// A stream of messages. Boxed, because most responses have none.
    Stream(Pin<Box<PacedBody<MessageStream>>>),
}

/// A stream of messages, and whether it has ended.
pub struct MessageStream {
    messages: Box<dyn MessageSource>,
    is_over: bool,
}

impl GrpcBody {
    /// Returns a body that streams `messages`. The connection does not count as idle meanwhile.
    pub(super) fn stream(messages: impl MessageSource, alive: ActivityGuard) -> Self {
        let stream = MessageStream {
            messages: Box::new(messages),
            is_over: false,
        };
        Self::Stream(Box::pin(PacedBody::new(stream, Some(alive))))
    }
}

/// Returns trailers with status OK.
fn well() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    trailers
}

impl Body for GrpcBody {
    type Data = Bytes;
    type Error = Infallible;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Self::Stream(stream) = &mut *self {
            return stream.as_mut().poll_frame(context);
        }
        let frame = match std::mem::replace(&mut *self, Self::Empty) {
            Self::Message(message) => {
                *self = Self::Well;
                Frame::data(message)
            }
            Self::Well => Frame::trailers(well()),
            Self::Empty | Self::Stream(_) => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty)
    }

    // Never exact: hyper would send a `Content-Length` that no client needs.
    #[inline]
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Body for MessageStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = match std::task::ready!(self.messages.poll_next(context)) {
            Ok(message) => Frame::data(message),
            Err(end) => {
                self.is_over = true;
                Frame::trailers(end.map_or_else(well, |status| status.trailers()))
            }
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
