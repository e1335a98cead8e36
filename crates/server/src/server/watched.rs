//! The socket of a connection, which tells its pulse what happens on it.

use super::linger::Linger;
use super::pulse::Pulse;
use super::screen::Screen;
use bytes::{Buf, Bytes};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that tells its pulse what happens on it.
#[derive(Debug)]
pub(super) struct Watched<I, O> {
    stream: I,
    pulse: Arc<Pulse>,
    /// How many requests had begun when something was last read.
    read_at: u64,
    linger: Linger,
    /// What is left to write of an interim answer that was begun.
    interim: Bytes,
    /// At a door for strangers.
    screen: Option<Box<Screen>>,
    /// Counts the connection as open for as long as its socket is, whoever holds it: a tunnel may.
    _open: O,
}

impl<I, O> Watched<I, O> {
    pub(super) fn new(stream: I, pulse: Arc<Pulse>, open: O) -> Self {
        Self {
            stream,
            pulse,
            read_at: u64::MAX,
            linger: Linger::default(),
            interim: Bytes::new(),
            screen: None,
            _open: open,
        }
    }

    /// The same, with everything that is read going through `screen` first.
    pub(super) fn screened(mut self, screen: Screen) -> Self {
        self.screen = Some(Box::new(screen));
        self
    }

    /// Lets everything pass: what comes is not HTTP/1.
    pub(super) fn open(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.open();
        }
    }

    /// Waits for the first bytes, and tells whether they begin an HTTP/2 connection.
    pub(super) async fn is_http2(&mut self) -> io::Result<bool>
    where
        I: AsyncRead + Unpin,
    {
        let Self { stream, screen, .. } = self;
        match screen {
            Some(screen) => poll_fn(|context| screen.poll_is_http2(stream, context)).await,
            None => Ok(false),
        }
    }

    /// Whether the client may be in the middle of something: a head that did not come to its end, or
    /// a body that nobody waited for.
    fn is_interrupted(&self) -> bool {
        self.read_at == self.pulse.requests() || self.pulse.has_body()
    }
}

impl<I: AsyncRead + Unpin, O: Unpin> AsyncRead for Watched<I, O> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let poll = match &mut this.screen {
            None => Pin::new(&mut this.stream).poll_read(context, buffer),
            Some(screen) => screen.poll_read(&mut this.stream, &this.pulse, context, buffer),
        };
        if poll.is_ready() {
            self.pulse.hear();
            self.read_at = self.pulse.requests();
        }
        poll
    }
}

impl<I: AsyncWrite + Unpin, O> Watched<I, O> {
    /// Writes the rest of an interim answer that was begun.
    fn poll_interim(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.is_empty() {
            let stream = Pin::new(&mut self.stream);
            let wrote = ready!(stream.poll_write(context, &self.interim))?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.advance(wrote);
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin, O: Unpin> AsyncWrite for Watched<I, O> {
    #[inline]
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    #[inline]
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when it has nothing left to write, so nothing is cut in two here.
        ready!(self.poll_interim(context))?;
        while let Some(interim) = self.pulse.interims().take() {
            self.interim = interim;
            ready!(self.poll_interim(context))?;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // In a tunnel the other direction goes on.
        let is_interrupted = self.is_interrupted() && !self.pulse.is_tunnel();
        let Self { stream, linger, .. } = &mut *self;
        if is_interrupted {
            return linger.poll_shutdown(stream, context);
        }
        Pin::new(stream).poll_shutdown(context)
    }
}
