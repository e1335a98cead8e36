//! What comes on a connection, and was not taken yet.

use super::fault::Http1Fault;
use super::read::{HEAD_BYTES, ResponseHead, is_worth_it, parse};
use bytes::{Buf, Bytes, BytesMut};
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is asked for at first: more than most answers have.
const ROOM_MIN: usize = 8 << 10;
/// And how much where there is always more.
const ROOM_MAX: usize = 64 << 10;

/// What comes on a connection, and was not taken yet. What is taken out of it is not copied.
#[derive(Debug)]
pub(super) struct Input {
    /// Where it is read into. It is the same memory again and again, as long as nobody holds on to it.
    buffer: BytesMut,
    /// What was read before that.
    ahead: Bytes,
    /// How much is asked for next.
    room: usize,
    /// How much of a head that is not complete was looked at in vain.
    seen: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            ahead: Bytes::new(),
            room: ROOM_MIN,
            seen: 0,
        }
    }
}

impl Input {
    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.buffer.is_empty()
    }

    /// Reads more: so many bytes, none at the end.
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

    /// Adds what was not read from a connection.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let ahead = std::mem::take(&mut self.ahead);
        if !ahead.is_empty() {
            self.buffer = BytesMut::from(&*ahead);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// What was read, to take pieces from.
    pub(super) fn bytes(&mut self) -> &mut Bytes {
        if self.ahead.is_empty() && !self.buffer.is_empty() {
            self.ahead = self.buffer.split().freeze();
        }
        &mut self.ahead
    }

    /// All that there is.
    pub(super) fn into_bytes(mut self) -> Bytes {
        std::mem::take(self.bytes())
    }

    /// Takes the next head, if all of it is there.
    pub(super) fn head(&mut self) -> Result<Option<ResponseHead>, Http1Fault> {
        if self.ahead.is_empty() && !is_worth_it(&self.buffer, self.seen) {
            return self.bounded();
        }
        let all = self.bytes();
        let Some((head, length)) = parse(all)? else {
            // Hardly ever; what comes next is to follow on it.
            self.seen = self.ahead.len();
            self.buffer = BytesMut::from(&*self.ahead);
            self.ahead = Bytes::new();
            return self.bounded();
        };
        if length > HEAD_BYTES {
            return Err(Http1Fault::TOO_LARGE);
        }
        if length == all.len() {
            *all = Bytes::new();
        } else {
            all.advance(length);
        }
        self.seen = 0;
        Ok(Some(head))
    }

    /// Waits for more of a head, if there may be more.
    fn bounded(&self) -> Result<Option<ResponseHead>, Http1Fault> {
        if self.buffer.len() > HEAD_BYTES {
            return Err(Http1Fault::TOO_LARGE);
        }
        Ok(None)
    }

    /// Makes ready for the next answer.
    pub(super) fn rest(&mut self) {
        self.room = ROOM_MIN;
    }

    /// Gives its memory back, for a while in which nothing comes.
    pub(super) fn sleep(&mut self) {
        self.buffer = BytesMut::new();
    }
}
