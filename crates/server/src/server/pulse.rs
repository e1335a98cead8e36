//! Signs of life of one connection, and the socket that gives them.
//!
//! hyper can time out the reading of a head, at the cost of a timer for every request. Here a
//! connection has one timer for life, which looks every now and then whether anything happened: see
//! `connection`.

use super::linger::Linger;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Signs of life of one connection. All fields are written by the connection's own task alone, so
/// loads and stores suffice; they are atomic because that task moves between threads.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Requests whose head has been read.
    requests: AtomicU64,
    /// Whether the last of them has a body, of which some may still be to come.
    has_body: AtomicBool,
    /// Whether the client has sent anything at all.
    heard: AtomicBool,
    /// Whether the next answer is to be the connection's last.
    closing: AtomicBool,
}

impl Pulse {
    /// A request has begun, with a body or without.
    pub(crate) fn begin(&self, has_body: bool) {
        self.requests
            .store(self.requests().wrapping_add(1), Relaxed);
        self.has_body.store(has_body, Relaxed);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    pub(crate) fn was_heard(&self) -> bool {
        self.heard.load(Relaxed)
    }

    /// Makes the next answer the last.
    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }
}

/// A stream that tells its pulse what happens on it.
#[derive(Debug)]
pub(crate) struct Watched<I> {
    stream: I,
    pulse: Arc<Pulse>,
    /// How many requests had begun when something was last read.
    read_at: u64,
    linger: Linger,
}

impl<I> Watched<I> {
    pub(crate) fn new(stream: I, pulse: Arc<Pulse>) -> Self {
        Self {
            stream,
            pulse,
            read_at: u64::MAX,
            linger: Linger::default(),
        }
    }

    /// Whether the client may be in the middle of something: a head that did not come to its end, or
    /// a body that nobody waited for.
    fn is_interrupted(&self) -> bool {
        self.read_at == self.pulse.requests() || self.pulse.has_body.load(Relaxed)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if poll.is_ready() {
            self.pulse.heard.store(true, Relaxed);
            self.read_at = self.pulse.requests();
        }
        poll
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    #[inline]
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    #[inline]
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_interrupted = self.is_interrupted();
        let Self { stream, linger, .. } = &mut *self;
        if is_interrupted {
            return linger.poll_shutdown(stream, context);
        }
        Pin::new(stream).poll_shutdown(context)
    }
}
