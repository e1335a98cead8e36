//! One direction of a relay: a pipe that knows where frames begin, and stops where a message must be
//! asked for.

use super::super::tunnel::{Pipe, STEPS, Side};
use super::frame::{Frames, Next};
use super::violation::Violation;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

/// One direction, until it is decided that the relay ends; then it becomes a `Parting`.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) pipe: Pipe,
    pub(super) frames: Frames,
    /// Whether messages have to be asked for.
    asks: bool,
    /// The head of a message that has been asked for and not answered: this many bytes that are read
    /// and not cleared.
    pub(super) held: usize,
}

/// A message begins, and goes no further until it is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message;

impl Lane {
    /// What comes from `side`. Only the messages of clients are asked for.
    pub(super) fn new(side: Side) -> Self {
        Self {
            pipe: Pipe::default(),
            frames: Frames::new(side),
            asks: side == Side::Client,
            held: 0,
        }
    }

    /// Passes frames on as far as it goes at present. Not to be asked while a message is held.
    pub(super) fn poll<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<Result<Message, Violation>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        for _ in 0..STEPS {
            // Nobody is asked for a message that cannot be delivered.
            if self.pipe.is_over() {
                return Poll::Pending;
            }
            if let Some(found) = self.find_message().transpose() {
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

    /// Clears what was read, up to a message that has to be asked for.
    fn find_message(&mut self) -> Result<Option<Message>, Violation> {
        loop {
            match self.frames.next(self.pipe.uncleared())? {
                Next::Head {
                    bytes,
                    begins_message: true,
                } if self.asks => {
                    self.held = bytes;
                    return Ok(Some(Message));
                }
                Next::Head { bytes, .. } | Next::Payload { bytes } => self.pipe.clear(bytes),
                Next::More => return Ok(None),
            }
        }
    }
}
