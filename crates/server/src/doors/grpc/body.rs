//! What goes back: a message and how the call ended, or messages as they come.

use super::status::{GrpcStatus, STATUS};
use crate::server::paced::PacedBody;
use crate::server::pulse::Alive;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Messages as they come; then how the call ended.
pub(super) trait MessageSource: Send + 'static {
    /// The next message, framed; `Err` once there are no more, with `None` where all is well.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Option<GrpcStatus>>>;
}

/// What goes back.
#[derive(Debug)]
pub(crate) enum GrpcBody {
    /// Nothing more than the head, or nothing any more.
    Empty,
    /// A message, framed, and then that all is well.
    Message(Bytes),
    /// That all is well.
    Well,
    /// Messages as they come. Put aside, for most answers are not of this kind.
    Stream(Pin<Box<PacedBody<MessageStream>>>),
}

/// Messages as they come, and whether they have come to their end.
pub(crate) struct MessageStream {
    messages: Box<dyn MessageSource>,
    is_over: bool,
}

impl GrpcBody {
    /// Messages as they come, on a connection that is not idle meanwhile.
    pub(super) fn stream(messages: impl MessageSource, alive: Alive) -> Self {
        let stream = MessageStream {
            messages: Box::new(messages),
            is_over: false,
        };
        Self::Stream(Box::pin(PacedBody::new(stream, Some(alive))))
    }
}

/// That all is well.
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

    // Never exact: hyper would say so in a header, for nobody.
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
