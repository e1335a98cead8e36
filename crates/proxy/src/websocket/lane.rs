//! One direction of a relay: a pipe that knows the frame boundaries, and stops at a message that needs a
//! decision.

use super::super::tunnel::{Pipe, STEPS, Side};
use super::bounds::{Excess, MessageMeter};
use super::frame::{FrameStep, WebSocketFrames};
use super::violation::Violation;
use std::task::{Context, Poll, ready};
use tidegate_policy::route::MessageBounds;
use tokio::io::{AsyncRead, AsyncWrite};

/// One direction, until the relay is to end; then it becomes a `ClosingDirection`.
#[derive(Debug)]
pub(super) struct RelayDirection {
    pub(super) pipe: Pipe,
    pub(super) frames: WebSocketFrames,
    /// The bounds of a client, whose messages also need a decision.
    meter: Option<MessageMeter>,
    /// The size of the header of a message that awaits its decision: bytes read and not cleared.
    pub(super) held: usize,
}

/// The reason why a direction stops. The frame at which it stopped is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayStop {
    /// A message begins, and is held until it is admitted.
    Message,
    /// A frame exceeds a bound.
    Excess(Excess),
}

impl RelayDirection {
    /// Creates the direction from the client, whose messages need a decision.
    pub(super) fn of_client(bounds: &MessageBounds) -> Self {
        Self {
            meter: Some(MessageMeter::new(bounds)),
            ..Self::new(Side::Client)
        }
    }

    /// Creates the direction from the upstream, which may send anything.
    pub(super) fn of_upstream() -> Self {
        Self::new(Side::Upstream)
    }

    fn new(side: Side) -> Self {
        Self {
            pipe: Pipe::default(),
            frames: WebSocketFrames::new(side),
            meter: None,
            held: 0,
        }
    }

    /// Forwards frames as far as possible at present. Must not be called while a message is held.
    pub(super) fn poll<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<Result<RelayStop, Violation>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        for _ in 0..STEPS {
            // No decision is requested for a message that cannot be delivered.
            if self.pipe.is_over() {
                return Poll::Pending;
            }
            if let Some(found) = self.find().transpose() {
                return Poll::Ready(found);
            }
            ready!(self.pipe.poll_step(context, reader, writer));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Clears the held message.
    pub(super) fn admit(&mut self) {
        self.pipe.clear(self.held);
        self.held = 0;
    }

    /// Clears the bytes that were read, up to the next stop.
    fn find(&mut self) -> Result<Option<RelayStop>, Violation> {
        loop {
            let had_closed = self.frames.has_closed();
            match self.frames.next(self.pipe.uncleared())? {
                FrameStep::Head {
                    bytes,
                    begins_message,
                } => {
                    // The Close itself passes: the upstream would get none in its place.
                    let is_close = self.frames.has_closed() && !had_closed;
                    if let Some(meter) = self.meter.as_mut().filter(|_| !is_close) {
                        let charged = meter.charge(bytes, begins_message, &self.frames);
                        if begins_message || charged.is_err() {
                            self.held = bytes;
                            return Ok(Some(
                                charged.map_or_else(RelayStop::Excess, |()| RelayStop::Message),
                            ));
                        }
                    }
                    self.pipe.clear(bytes);
                }
                FrameStep::Payload { bytes } => self.pipe.clear(bytes),
                FrameStep::More => return Ok(None),
            }
        }
    }
}
