//! The socket of a connection, which reports its activity to the pulse.

use super::frames::FrameMeter;
use super::idle_clock::Pulse;
use super::lingering_close::Linger;
use super::smuggling_screen::Screen;
use bytes::{Buf, Bytes};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that reports its activity to the pulse.
#[derive(Debug)]
pub(super) struct WatchedStream<I, O> {
    stream: I,
    pulse: Arc<Pulse>,
    /// The number of requests that had begun when data was last read.
    read_at: u64,
    linger: Linger,
    /// The rest of an interim response that was begun.
    interim: Bytes,
    /// Set on a listener for untrusted clients.
    screen: Option<Box<Screen>>,
    /// Set on an HTTP/2 connection.
    meter: Option<Box<FrameMeter>>,
    /// True if the client has sent too many frames: nothing more is read or written.
    is_cut: bool,
    /// Counts the connection as open for as long as its socket is, even if a tunnel holds it.
    _open: O,
}

impl<I, O> WatchedStream<I, O> {
    pub(super) fn new(stream: I, pulse: Arc<Pulse>, open: O) -> Self {
        Self {
            stream,
            pulse,
            read_at: u64::MAX,
            linger: Linger::default(),
            interim: Bytes::new(),
            screen: None,
            meter: None,
            is_cut: false,
            _open: open,
        }
    }

    /// Passes all data that is read through `smuggling_screen` first.
    pub(super) fn screened(mut self, screen: Screen) -> Self {
        self.screen = Some(Box::new(screen));
        self
    }

    /// Hands everything on: the data is not HTTP/1.
    pub(super) fn open(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.open();
        }
    }

    /// Counts frames: the connection is HTTP/2.
    pub(super) fn metered(mut self, meter: FrameMeter) -> Self {
        self.meter = Some(Box::new(meter));
        self
    }

    /// Waits for the first bytes. Returns true if they begin an HTTP/2 connection.
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

    /// Returns true if the client may be in the middle of a message: an incomplete head, or a body that was
    /// not read.
    fn is_interrupted(&self) -> bool {
        self.read_at == self.pulse.requests() || self.pulse.has_body()
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin, O> WatchedStream<I, O> {
    /// Sends the reason to the client, and closes. Further data is discarded for a while, so that a reset
    /// does not overtake the reason.
    fn poll_cut(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_cut {
            self.is_cut = true;
            let goaway = self.meter.as_ref().and_then(|meter| meter.goaway());
            if let Some(goaway) = goaway {
                let mut stream = Pin::new(&mut self.stream);
                // A client that does not read does not get it.
                let is_sent = stream.as_mut().poll_write(context, &goaway).is_ready();
                let _flushed = is_sent && stream.poll_flush(context).is_ready();
            }
        }
        let closed = self.linger.poll_shutdown(&mut self.stream, context);
        closed.map(|_| {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "too many control frames",
            ))
        })
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin, O: Unpin> AsyncRead for WatchedStream<I, O> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_cut {
            return this.poll_cut(context);
        }
        let before = buffer.filled().len();
        let poll = match &mut this.screen {
            None => Pin::new(&mut this.stream).poll_read(context, buffer),
            Some(screen) => screen.poll_read(&mut this.stream, &this.pulse, context, buffer),
        };
        if poll.is_ready() {
            this.pulse.note_received();
            this.read_at = this.pulse.requests();
            if let Some(meter) = &mut this.meter
                && !meter.receive(buffer.filled().get(before..).unwrap_or_default())
            {
                buffer.set_filled(before);
                return this.poll_cut(context);
            }
        }
        poll
    }
}

impl<I: AsyncWrite + Unpin, O> WatchedStream<I, O> {
    /// Writes the rest of an interim response that was begun.
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

impl<I: AsyncRead + AsyncWrite + Unpin, O: Unpin> AsyncWrite for WatchedStream<I, O> {
    #[inline]
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.pulse.note_unflushed(true);
        ready!(self.poll_interim(context))?;
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let (Some(meter), Poll::Ready(Ok(count))) = (&mut self.meter, &poll) {
            meter.send(bytes.get(..*count).unwrap_or_default());
        }
        poll
    }

    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        self.pulse.note_unflushed(true);
        ready!(self.poll_interim(context))?;
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        if let (Some(meter), Poll::Ready(Ok(count))) = (&mut self.meter, &poll) {
            let mut left = *count;
            for slice in slices {
                let sent = left.min(slice.len());
                meter.send(slice.get(..sent).unwrap_or_default());
                left = left.saturating_sub(sent);
            }
        }
        poll
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    #[inline]
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when it has nothing left to write, so no message is split here.
        ready!(self.poll_interim(context))?;
        while let Some(interim) = self.pulse.interims().take() {
            self.interim = interim;
            ready!(self.poll_interim(context))?;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.pulse.note_unflushed(false);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // In a tunnel the other direction continues.
        let is_interrupted = self.is_interrupted() && !self.pulse.is_tunnel();
        let Self { stream, linger, .. } = &mut *self;
        if is_interrupted {
            return linger.poll_shutdown(stream, context);
        }
        Pin::new(stream).poll_shutdown(context)
    }
}
