//! How a relay ends: each side is told why, at the end of a frame, and heard out for a while.
//!
//! Whoever closes a connection on which something is unread resets it, and what was last sent may be
//! lost with it. So what comes after the farewell is read and thrown away, until the other side has
//! said farewell as well.

use super::super::tunnel::{Pipe, STEPS};
use super::frame::{FrameStep, WebSocketFrames};
use super::lane::RelayDirection;
use std::mem::take;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

/// One direction of a relay that ends.
#[derive(Debug)]
pub(super) struct ClosingDirection<'a> {
    pipe: &'a mut Pipe,
    frames: &'a mut WebSocketFrames,
    /// The head of a message that is not passed on.
    held: usize,
    /// The Close frame.
    farewell: Pipe,
    /// Whether the farewell has been said, or cannot be.
    is_said: bool,
    /// Whether a frame has not come to its end of which part was passed on.
    is_passing: bool,
    /// Whether what comes is not understood.
    is_unreadable: bool,
}

impl<'a> ClosingDirection<'a> {
    /// Of a lane that stopped where it stands. What it holds goes no further. `farewell` is for whom it
    /// leads to; `is_unreadable` says that whoever it comes from broke the rules.
    pub(super) fn new(
        lane: &'a mut RelayDirection,
        farewell: Vec<u8>,
        is_unreadable: bool,
    ) -> Self {
        let RelayDirection {
            pipe, frames, held, ..
        } = lane;
        // Nobody says farewell twice, nor for another.
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

    /// Goes on as far as it goes at present.
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

    /// Whether the side that it leads to may be closed, as far as this direction goes.
    pub(super) fn is_said(&self) -> bool {
        self.is_said
    }

    /// Whether nothing that is still to come could matter.
    pub(super) fn has_heard(&self) -> bool {
        self.is_unreadable || self.is_heard_out()
    }

    /// Whether nothing is still to come.
    pub(super) fn is_heard_out(&self) -> bool {
        let has_closed = self.frames.has_closed() && self.frames.is_between();
        !self.pipe.reads() || (has_closed && !self.is_unreadable)
    }

    /// Closes the side that it leads to.
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
        // The end of the frame will never come, and within it nothing can be said.
        if self.is_passing && (!self.pipe.reads() || self.pipe.is_over()) {
            self.is_passing = false;
            self.is_said = true;
        }
        if !self.is_passing && !self.is_said {
            ready!(self.farewell.poll_send(context, writer));
            self.is_said = true;
        }
        if self.is_heard_out() {
            return Poll::Pending;
        }
        self.pipe.poll_fill(context, reader)
    }

    /// Clears what belongs to a frame that was begun, and throws away the rest of what was read.
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
