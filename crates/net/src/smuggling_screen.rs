//! A filter between the socket and hyper on a listener for untrusted clients.
//!
//! Bytes pass through it unchanged, or not at all. In the middle of a head that is rejected, hyper gets a
//! byte that no head may have, answers 400 and closes; in the middle of a body, hyper and the reader of the
//! body get an error.

use super::idle_clock::Pulse;
use super::strict::{ReadStop, StrictReader};
use bytes::{Buf, BytesMut};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The preface of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size of the first read. Most requests fit in, and it is copied once more.
const FIRST: usize = 2 << 10;

/// Bytes that no head may have, and the end of a head: hyper parses a head that came in pieces once it is
/// complete.
const POISON: &[u8] = b"\0\r\n\r\n";

/// A filter between the socket and hyper.
#[derive(Debug)]
pub(super) struct Screen {
    mode: ScreenState,
    reader: StrictReader,
    /// Bytes that were read from the socket, and not handed on.
    ahead: BytesMut,
    rejected: Family<[(&'static str, &'static str); 1], Counter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScreenState {
    /// Bytes are checked before they are handed on.
    Reading,
    /// Bytes are held until it is known if they are a request.
    Holding,
    /// Everything is handed on.
    Open,
    /// Nothing is handed on.
    Refused { in_body: bool },
}

impl Screen {
    pub(super) fn new(rejected: Family<[(&'static str, &'static str); 1], Counter>) -> Self {
        Self {
            mode: ScreenState::Reading,
            reader: StrictReader::default(),
            ahead: BytesMut::new(),
            rejected,
        }
    }

    /// Hands everything on from here on.
    pub(super) fn open(&mut self) {
        self.mode = ScreenState::Open;
    }

    /// Reads the first bytes. Ready with true if they begin an HTTP/2 connection.
    pub(super) fn poll_is_http2<I: AsyncRead + Unpin>(
        &mut self,
        stream: &mut I,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        loop {
            let known = self.ahead.len().min(PREFACE.len());
            if self.ahead.get(..known) != PREFACE.get(..known) {
                return Poll::Ready(Ok(false));
            }
            if known == PREFACE.len() {
                return Poll::Ready(Ok(true));
            }
            let mut space = [0; FIRST];
            let mut buffer = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            self.ahead.extend_from_slice(buffer.filled());
        }
    }

    pub(super) fn poll_read<I: AsyncRead + Unpin>(
        &mut self,
        stream: &mut I,
        pulse: &Pulse,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        loop {
            match self.mode {
                ScreenState::Reading | ScreenState::Open => {}
                // The rest of the poison.
                ScreenState::Refused { in_body: false } if !self.ahead.is_empty() => {}
                ScreenState::Holding => {
                    if !self.is_settled(pulse) {
                        return self.poll_hold(stream, context, buffer);
                    }
                }
                ScreenState::Refused { in_body: true } => return Poll::Ready(Err(refused())),
                ScreenState::Refused { in_body: false } => return Poll::Ready(Ok(())),
            }
            if self.ahead.is_empty() {
                ready!(Pin::new(&mut *stream).poll_read(context, buffer))?;
            } else {
                let count = self.ahead.len().min(buffer.remaining());
                buffer.put_slice(self.ahead.get(..count).unwrap_or_default());
                self.ahead.advance(count);
            }
            let is_end = buffer.filled().len() == before;
            if self.mode == ScreenState::Reading {
                self.judge(buffer, before);
            }
            // Zero bytes would mean that the connection has ended.
            if is_end || buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Keeps in `buffer`, after the first `before` bytes, only those that may be handed on.
    fn judge(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let new = buffer.filled().get(before..).unwrap_or_default();
        let Err((at, stop)) = self.reader.read(new) else {
            return;
        };
        match stop {
            ReadStop::Turn => {
                let mut held = BytesMut::from(new.get(at..).unwrap_or_default());
                held.extend_from_slice(&self.ahead);
                self.ahead = held;
                self.mode = ScreenState::Holding;
                buffer.set_filled(before.saturating_add(at));
            }
            ReadStop::Refused(reason) => {
                let label = [("reason", reason.as_str())];
                self.rejected.get_or_create(&label).inc();
                let in_body = self.reader.is_in_body();
                self.mode = ScreenState::Refused { in_body };
                buffer.set_filled(before.saturating_add(at));
                if !in_body {
                    // Write the poison in place of the rejected bytes; the part that does not fit comes next.
                    self.ahead.clear();
                    let count = POISON.len().min(buffer.remaining());
                    let (now, later) = POISON.split_at_checked(count).unwrap_or((POISON, &[]));
                    buffer.put_slice(now);
                    self.ahead.extend_from_slice(later);
                }
            }
        }
    }

    /// Returns true if the held bytes may pass: they belong to a tunnel, or are read as requests.
    fn is_settled(&mut self, pulse: &Pulse) -> bool {
        if pulse.answered() < self.reader.heads() {
            return false;
        }
        if pulse.is_tunnel() {
            self.mode = ScreenState::Open;
        } else {
            self.reader.go_on();
            self.mode = ScreenState::Reading;
        }
        true
    }

    /// Holds one piece of incoming data, so that the end of the connection is noticed. No wake-up is needed
    /// for more: hyper reads again once there is a response.
    fn poll_hold<I: AsyncRead + Unpin>(
        &mut self,
        stream: &mut I,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        if new.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.ahead.extend_from_slice(new);
        buffer.set_filled(before);
        Poll::Pending
    }
}

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the length of the body is ambiguous",
    )
}
