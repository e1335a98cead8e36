//! A connection to an upstream, plain or through TLS.

use super::places::UpstreamPermit;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The byte stream of a connection to an upstream.
#[derive(Debug)]
pub struct UpstreamStream {
    bytes: StreamTransport,
    /// Held while a request or a tunnel uses the connection.
    place: Option<UpstreamPermit>,
}

#[derive(Debug)]
enum StreamTransport {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
}

impl UpstreamStream {
    /// Replaces the permit that is held while this is used, and returns the previous one.
    pub(super) fn set_place(&mut self, place: Option<UpstreamPermit>) -> Option<UpstreamPermit> {
        std::mem::replace(&mut self.place, place)
    }
}

impl From<TcpStream> for UpstreamStream {
    fn from(stream: TcpStream) -> Self {
        Self {
            bytes: StreamTransport::Plain(stream),
            place: None,
        }
    }
}

impl From<TlsStream<TcpStream>> for UpstreamStream {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        Self {
            bytes: StreamTransport::Tls(Box::new(stream)),
            place: None,
        }
    }
}

impl AsyncRead for UpstreamStream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            StreamTransport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            StreamTransport::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for UpstreamStream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            StreamTransport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            StreamTransport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            StreamTransport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            StreamTransport::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            StreamTransport::Plain(stream) => stream.is_write_vectored(),
            StreamTransport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            StreamTransport::Plain(stream) => Pin::new(stream).poll_flush(context),
            StreamTransport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            StreamTransport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            StreamTransport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
