//! The stream of a client, with or without TLS, as one type.
//!
//! Everything above it is generic over its stream: hyper's connections of both versions, once for each frontend.
//! With a type for each kind of stream the program would contain all of it twice.

use super::socket::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// The stream of a client.
#[derive(Debug)]
pub(super) enum PeerStream {
    Plain(Stream),
    /// Boxed: it is large, and connections without TLS need no space for it.
    Secure(Box<TlsStream<Stream>>),
}

/// Calls a method of the stream inside.
macro_rules! of {
    ($stream:expr, $method:ident($($argument:expr),*)) => {
        match $stream.get_mut() {
            PeerStream::Plain(stream) => Pin::new(stream).$method($($argument),*),
            PeerStream::Secure(stream) => Pin::new(&mut **stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for PeerStream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        of!(self, poll_read(context, buffer))
    }
}

impl AsyncWrite for PeerStream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        of!(self, poll_write(context, bytes))
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of!(self, poll_write_vectored(context, slices))
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of!(self, poll_flush(context))
    }

    #[inline]
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of!(self, poll_shutdown(context))
    }
}
