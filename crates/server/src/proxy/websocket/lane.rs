//! One direction of a relay: a pipe that knows where frames begin, and stops where a message must be
//! asked for.

use super::super::tunnel::{Pipe, STEPS, Side};
use super::bounds::{Excess, MessageMeter};
use super::frame::{FrameStep, WebSocketFrames};
use super::violation::Violation;
use std::task::{Context, Poll, ready};
use tidegate_policy::route::MessageBounds;
use tokio::io::{AsyncRead, AsyncWrite};

/// One direction, until it is decided that the relay ends; then it becomes a `Parting`.
#[derive(Debug)]
pub(super) struct RelayDirection {
    pub(super) pipe: Pipe,
    pub(super) frames: WebSocketFrames,
    /// Bounds of clients, whose messages have to be asked for as well.
    meter: Option<MessageMeter>,
    /// The head of a message that has been asked for and not answered: this many bytes that are read
    /// and not cleared.
    pub(super) held: usize,
}

/// Where a lane stops. What it stopped at is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayStop {
    /// A message begins, and goes no further until it is admitted.
    Message,
    /// A frame is beyond a bound.
    Excess(Excess),
}

impl RelayDirection {
    /// What comes from the client, whose messages are asked for.
    pub(super) fn of_client(bounds: &MessageBounds) -> Self {
        Self {
            meter: Some(MessageMeter::new(bounds)),
            ..Self::new(Side::Client)
        }
    }

    /// What comes from the upstream, which may send what it likes.
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

    /// Passes frames on as far as it goes at present. Not to be asked while a message is held.
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
            // Nobody is asked for a message that cannot be delivered.
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

    /// The held message may pass.
    pub(super) fn admit(&mut self) {
        self.pipe.clear(self.held);
        self.held = 0;
    }

    /// Clears what was read, up to where it stops.
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
