//! Signs of life of one connection, and the socket that gives them.
//!
//! hyper can time out the reading of a head, at the cost of a timer for every request. Here a
//! connection has one timer for life, which looks every now and then whether anything happened: see
//! `connection`.

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
    /// Whether the client has sent anything at all.
    heard: AtomicBool,
    /// Whether the next answer is to be the connection's last.
    closing: AtomicBool,
}

impl Pulse {
    /// A request has begun.
    pub(crate) fn begin(&self) {
        self.requests
            .store(self.requests().wrapping_add(1), Relaxed);
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
    pub(crate) stream: I,
    pub(crate) pulse: Arc<Pulse>,
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
        }
        poll
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
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
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
