//! The input buffer of a connection.

use super::read::{HEAD_BYTES, ResponseHead, is_worth_it, parse};
use super::template::HeadMemory;
use crate::fault::Http1Fault;
use bytes::{Buf, Bytes, BytesMut};
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The bytes requested at first: more than most responses have.
const ROOM_MIN: usize = 8 << 10;
/// The bytes requested when reads keep filling the buffer.
const ROOM_MAX: usize = 64 << 10;

/// The bytes received on a connection and not yet taken. Taking bytes does not copy them.
#[derive(Debug)]
pub(super) struct Input {
    /// The buffer that is read into. Its memory is reused unless a taken piece is still held.
    buffer: BytesMut,
    /// The bytes that were read before those in `buffer`.
    ahead: Bytes,
    /// The number of bytes requested next.
    room: usize,
    /// The bytes of an incomplete head that a parse attempt has already seen.
    seen: usize,
    memory: HeadMemory,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            ahead: Bytes::new(),
            room: ROOM_MIN,
            seen: 0,
            memory: HeadMemory::default(),
        }
    }
}

impl Input {
    /// Returns true if there are no bytes.
    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.buffer.is_empty()
    }

    /// Reads more and returns the number of bytes; 0 at the end.
    pub(super) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut R,
    ) -> Poll<std::io::Result<usize>> {
        self.buffer.reserve(self.room);
        let read = ready!(pin!(stream.read_buf(&mut self.buffer)).poll(context))?;
        if read >= self.room {
            self.room = self.room.saturating_mul(2).min(ROOM_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// Adds bytes that were not read from a connection.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let ahead = std::mem::take(&mut self.ahead);
        if !ahead.is_empty() {
            self.buffer = BytesMut::from(&*ahead);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the bytes that were read, to take pieces from.
    pub(super) fn bytes(&mut self) -> &mut Bytes {
        if self.ahead.is_empty() && !self.buffer.is_empty() {
            self.ahead = self.buffer.split().freeze();
        }
        &mut self.ahead
    }

    /// Returns all bytes.
    pub(super) fn into_bytes(mut self) -> Bytes {
        std::mem::take(self.bytes())
    }

    /// Takes the next response head into `head`. Returns false if it is not complete.
    pub(super) fn take_head(&mut self, head: &mut ResponseHead) -> Result<bool, Http1Fault> {
        if self.ahead.is_empty() && !is_worth_it(&self.buffer, self.seen) {
            return self.bounded();
        }
        self.bytes();
        let Self { ahead, memory, .. } = self;
        let Some(length) = parse(ahead, memory, head)? else {
            // Rare. Move the bytes back, so that the next read appends to them.
            self.seen = self.ahead.len();
            self.buffer = BytesMut::from(&*self.ahead);
            self.ahead = Bytes::new();
            return self.bounded();
        };
        if length > HEAD_BYTES {
            return Err(Http1Fault::TOO_LARGE);
        }
        if length == ahead.len() {
            *ahead = Bytes::new();
        } else {
            ahead.advance(length);
        }
        self.seen = 0;
        Ok(true)
    }

    /// Returns false to wait for more of a head, or an error if it is too large.
    fn bounded(&self) -> Result<bool, Http1Fault> {
        if self.buffer.len() > HEAD_BYTES {
            return Err(Http1Fault::TOO_LARGE);
        }
        Ok(false)
    }

    /// Prepares for the next response.
    pub(super) fn rest(&mut self) {
        self.room = ROOM_MIN;
    }

    /// Releases the memory while the connection is idle.
    pub(super) fn sleep(&mut self) {
        self.buffer = BytesMut::new();
    }
}
