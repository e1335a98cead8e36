//! The end of a relay: each side gets a Close frame, at the end of a frame, and some time to reply.
//!
//! Closing a connection with unread data resets it, and the data last sent may be lost with it. So data after
//! the Close frame is read and discarded, until the other side has sent its own Close frame.

use super::super::tunnel::{Pipe, STEPS};
use super::frame::{FrameStep, WebSocketFrames};
use super::lane::RelayDirection;
use std::mem::take;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

/// One direction of a relay that closes.
#[derive(Debug)]
pub(super) struct ClosingDirection<'a> {
    pipe: &'a mut Pipe,
    frames: &'a mut WebSocketFrames,
    /// The size of the held frame header of a message that is not forwarded.
    held: usize,
    /// The Close frame.
    farewell: Pipe,
    /// True if the Close frame has been sent, or cannot be.
    is_said: bool,
    /// True if part of an incomplete frame was forwarded.
    is_passing: bool,
    /// True if the incoming data is invalid.
    is_unreadable: bool,
}

impl<'a> ClosingDirection<'a> {
    /// Closes a direction in its present state. The bytes that it holds go no further. `farewell` is the
    /// Close frame for the receiving side. `is_unreadable` is true if the sending side violated the protocol.
    pub(super) fn new(
        lane: &'a mut RelayDirection,
        farewell: Vec<u8>,
        is_unreadable: bool,
    ) -> Self {
        let RelayDirection {
            pipe, frames, held, ..
        } = lane;
        // No side gets a second Close frame, nor one after its peer's own.
        let farewell = Some(farewell).filter(|_| !frames.has_closed());
        Self {
            held: *held,
            farewell: Pipe::holding(farewell.unwrap_or_default()),
            is_said: pipe.is_over(),
            is_passing: *held == 0 && !is_unreadable && !frames.is_between(),
            is_unreadable,
            pipe,
            frames,
        }
    }

    /// Makes as much progress as possible at present.
    pub(super) fn poll<R, W>(&mut self, context: &mut Context<'_>, reader: &mut R, writer: &mut W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        for _ in 0..STEPS {
            if self.poll_step(context, reader, writer).is_pending() {
                return;
            }
        }
        context.waker().wake_by_ref();
    }

    /// Returns true if, as far as this direction goes, the receiving side may be closed.
    pub(super) fn is_said(&self) -> bool {
        self.is_said
    }

    /// Returns true if no further incoming data matters.
    pub(super) fn has_heard(&self) -> bool {
        self.is_unreadable || self.expects_no_data()
    }

    /// Returns true if no further data is expected.
    pub(super) fn expects_no_data(&self) -> bool {
        let has_closed = self.frames.has_closed() && self.frames.is_between();
        !self.pipe.reads() || (has_closed && !self.is_unreadable)
    }

    /// Shuts down the receiving side.
    pub(super) fn poll_shut<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<()> {
        self.pipe.poll_shut(context, writer)
    }

    fn poll_step<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.sort();
        if self.pipe.has_unsent() {
            return self.pipe.poll_write(context, writer);
        }
        // The end of the frame will never come, and no Close frame can be sent within it.
        if self.is_passing && (!self.pipe.reads() || self.pipe.is_over()) {
            self.is_passing = false;
            self.is_said = true;
        }
        if !self.is_passing && !self.is_said {
            ready!(self.farewell.poll_send(context, writer));
            self.is_said = true;
        }
        if self.expects_no_data() {
            return Poll::Pending;
        }
        self.pipe.poll_fill(context, reader)
    }

    /// Clears the rest of a frame that was begun, and discards everything else that was read.
    fn sort(&mut self) {
        while !self.pipe.has_unsent() {
            self.pipe.skip(take(&mut self.held));
            if self.is_unreadable {
                return self.pipe.skip(usize::MAX);
            }
            match self.frames.next(self.pipe.uncleared()) {
                Ok(FrameStep::Payload { bytes }) if self.is_passing => {
                    self.pipe.clear(bytes);
                    self.is_passing = !self.frames.is_between();
                }
                Ok(FrameStep::Head { bytes, .. } | FrameStep::Payload { bytes }) => {
                    self.pipe.skip(bytes);
                }
                Ok(FrameStep::More) => return,
                Err(_) => self.is_unreadable = true,
            }
        }
    }
}
