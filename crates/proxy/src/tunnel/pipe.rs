//! One direction of a tunnel.
//!
//! A pipe reads only once everything cleared for writing is written. So a side that does not read is not sent
//! more, and its peer gets backpressure.

use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// The capacity of a pipe in bytes.
pub(crate) const ROOM: usize = 16 << 10;

/// The number of steps before a pipe yields, above all to the other direction, which would otherwise starve
/// while this one always has work.
pub(crate) const STEPS: usize = 16;

/// The state of one end of a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PipeEnd {
    #[default]
    Open,
    /// Nothing more goes through it.
    Over,
    Broken(ErrorKind),
}

/// The end of a pipe that broke, with the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipeBreak {
    Reading(ErrorKind),
    Writing(ErrorKind),
}

/// One direction. Its bytes are in three parts: sent, cleared for sending, not yet cleared.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Holds memory only while it holds bytes: most tunnels are silent most of the time.
    bytes: Vec<u8>,
    sent: usize,
    cleared: usize,
    input: PipeEnd,
    output: PipeEnd,
    is_unflushed: bool,
    read: u64,
    written: u64,
}

impl Pipe {
    /// Creates a pipe with nothing to read, and `bytes` to be sent.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        Self {
            cleared: bytes.len(),
            bytes,
            input: PipeEnd::Over,
            // Earlier writes may wait to be flushed, even if there is nothing to add.
            is_unflushed: true,
            ..Self::default()
        }
    }

    /// Copies as much as possible at present.
    pub(super) fn poll_copy<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        for _ in 0..STEPS {
            self.clear(usize::MAX);
            if self.poll_step(context, reader, writer).is_pending() {
                return;
            }
        }
        context.waker().wake_by_ref();
    }

    /// Writes cleared bytes; or reads more; or ends if no more comes. Pending if it can do nothing now, or
    /// ever.
    pub(crate) fn poll_step<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        if self.is_over() {
            return Poll::Pending;
        }
        if self.has_unsent() {
            return self.poll_write(context, writer);
        }
        if self.reads() {
            if self.poll_fill(context, reader).is_ready() {
                return Poll::Ready(());
            }
            // The time of the next data is unknown, so nothing may wait for it.
            ready!(self.poll_flush(context, writer));
            return Poll::Pending;
        }
        match self.input {
            // An interrupted side did not finish, so the other side's connection is not shut down.
            PipeEnd::Broken(_) => {
                ready!(self.poll_flush(context, writer));
                if self.output == PipeEnd::Open {
                    self.output = PipeEnd::Over;
                }
                Poll::Ready(())
            }
            _ => self.poll_shut(context, writer),
        }
    }

    /// Writes and flushes the cleared bytes. Ready once all of them are written, or never can be.
    pub(crate) fn poll_send<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<()> {
        while self.has_unsent() {
            ready!(self.poll_write(context, writer));
        }
        self.poll_flush(context, writer)
    }

    /// Reads once. Everything cleared must have been sent.
    pub(crate) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
    ) -> Poll<()> {
        // At most the beginning of a frame header is left, and moves to the front.
        self.bytes.drain(..self.sent);
        self.cleared = self.cleared.saturating_sub(self.sent);
        self.sent = 0;
        let room = ROOM.saturating_sub(self.bytes.len());
        if room == 0 {
            return Poll::Pending;
        }
        self.bytes.reserve_exact(room);
        match pin!(reader.read_buf(&mut self.bytes)).poll(context) {
            Poll::Ready(Ok(0)) => self.input = PipeEnd::Over,
            Poll::Ready(Ok(count)) => self.read = self.read.saturating_add(wide(count)),
            Poll::Ready(Err(error)) => self.input = PipeEnd::Broken(error.kind()),
            Poll::Pending => {
                if self.bytes.is_empty() {
                    self.bytes = Vec::new();
                }
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Shuts the writer down. Ready once that is done, or the writer is gone.
    pub(crate) fn poll_shut<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<()> {
        if self.output == PipeEnd::Open {
            self.output = match ready!(Pin::new(writer).poll_shutdown(context)) {
                Ok(()) => PipeEnd::Over,
                Err(error) => self.give_up(&error),
            };
        }
        Poll::Ready(())
    }

    /// Writes once.
    pub(crate) fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<()> {
        let unsent = self.bytes.get(self.sent..self.cleared).unwrap_or_default();
        match ready!(Pin::new(writer).poll_write(context, unsent)) {
            Ok(0) => self.output = self.give_up(&ErrorKind::WriteZero.into()),
            Ok(count) => {
                self.sent = self.sent.saturating_add(count).min(self.cleared);
                self.written = self.written.saturating_add(wide(count));
                self.is_unflushed = true;
            }
            Err(error) => self.output = self.give_up(&error),
        }
        Poll::Ready(())
    }

    fn poll_flush<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<()> {
        if self.is_unflushed && self.output == PipeEnd::Open {
            match ready!(Pin::new(writer).poll_flush(context)) {
                Ok(()) => self.is_unflushed = false,
                Err(error) => self.output = self.give_up(&error),
            }
        }
        Poll::Ready(())
    }

    /// Discards unsent bytes, which can never be sent.
    fn give_up(&mut self, error: &io::Error) -> PipeEnd {
        self.sent = self.cleared;
        PipeEnd::Broken(error.kind())
    }

    /// Returns the bytes that were read and are not cleared.
    pub(crate) fn uncleared(&self) -> &[u8] {
        self.bytes.get(self.cleared..).unwrap_or_default()
    }

    /// Clears up to `count` more bytes for sending.
    pub(crate) fn clear(&mut self, count: usize) {
        self.cleared = self.cleared.saturating_add(count).min(self.bytes.len());
    }

    /// Discards up to `count` bytes. Everything cleared must have been sent.
    pub(crate) fn skip(&mut self, count: usize) {
        self.clear(count);
        self.sent = self.cleared;
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.cleared
    }

    /// Returns true if more may come.
    pub(crate) fn reads(&self) -> bool {
        self.input == PipeEnd::Open
    }

    /// Returns true if nothing more can be written.
    pub(crate) fn is_over(&self) -> bool {
        self.output != PipeEnd::Open
    }

    /// Returns the error that broke it, once the data read before is sent.
    pub(super) fn broken(&self) -> Option<PipeBreak> {
        match (self.input, self.output) {
            (_, PipeEnd::Broken(kind)) => Some(PipeBreak::Writing(kind)),
            (PipeEnd::Broken(kind), PipeEnd::Over) => Some(PipeBreak::Reading(kind)),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(super) fn room_taken(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the number of bytes written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Returns a number that changes whenever anything is read or written.
    pub(super) fn moved(&self) -> u64 {
        self.read.wrapping_add(self.written)
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
