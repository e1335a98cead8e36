//! A request that is being sent: its head, and its body as it arrives.
//!
//! One piece of the body is held, and the next one is read when that was written. So an upstream that does
//! not read is not sent more, and the client gets backpressure.

use super::write::{self, Framing};
use crate::error::UploadError;
use crate::outgoing::OutgoingRequest;
use crate::upload::Upload;
use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::HeaderName;
use http_body::{Body, Frame};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Pieces up to this size are copied behind the text before them, which is cheaper than a vectored write.
const COPY_MAX: usize = 4 << 10;

/// The most memory for heads that is kept from one request to the next.
const KEPT_MAX: usize = 4 << 10;

const CRLF: &[u8] = b"\r\n";

/// A request that is being sent.
#[derive(Debug, Default)]
pub(super) struct RequestSender {
    /// The bytes to send first, and the number of those already sent.
    text: Vec<u8>,
    sent: usize,
    /// The bytes to send next, if they are too large to be copied, and the bytes after them.
    piece: Bytes,
    tail: &'static [u8],
    /// The rest of the body.
    body: Option<Box<Upload>>,
    framing: Framing,
    announced: Vec<HeaderName>,
    /// The data taken from the body before anything was sent, and the body itself if that was all of it.
    first: Bytes,
    spent: Option<Box<Upload>>,
    /// True if a piece of the body waits to be sent.
    is_full: bool,
    /// True if any byte was sent.
    has_begun: bool,
    is_unflushed: bool,
}

/// The reason why a request is not sent any further.
#[derive(Debug)]
pub(super) enum SendStop {
    /// The connection broke.
    Io(io::Error),
    /// The body ended with an error.
    Upload(UploadError),
}

impl RequestSender {
    /// Starts with `request`, and takes its body if it has one.
    pub(super) fn begin(&mut self, request: &mut OutgoingRequest) {
        self.framing = Framing::of(request.body());
        write::head(&mut self.text, request, self.framing, request.lines());
        if self.framing != Framing::None {
            self.announced = write::announced(request.headers());
            let body = std::mem::replace(request.body_mut(), Upload::none());
            self.body = Some(Box::new(body));
        }
    }

    /// Resets the state of the previous request.
    pub(super) fn forget(&mut self) {
        self.has_begun = false;
    }

    /// Returns true if any byte was sent.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns true if everything was sent.
    pub(super) fn is_done(&self) -> bool {
        self.body.is_none() && !self.is_unflushed && self.is_written()
    }

    fn is_written(&self) -> bool {
        self.text.is_empty() && self.piece.is_empty() && self.tail.is_empty()
    }

    /// Returns the body in its original state. Only for a request of which nothing was sent.
    pub(super) fn take_back(&mut self) -> Option<Upload> {
        let mut body = self.body.take().or(self.spent.take())?;
        body.put_back(std::mem::take(&mut self.first));
        Some(*body)
    }

    /// Sends as much as possible. Ready when everything is sent.
    #[inline]
    pub(super) fn poll_send<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut W,
    ) -> Poll<Result<(), SendStop>> {
        while self.body.is_some() {
            // Send the available part of the body together with the head.
            let is_late = !self.is_full && self.poll_piece(context)?.is_pending();
            ready!(self.poll_write(context, stream)).map_err(SendStop::Io)?;
            if is_late {
                ready!(self.poll_flush(context, stream)).map_err(SendStop::Io)?;
                return Poll::Pending;
            }
        }
        ready!(self.poll_write(context, stream)).map_err(SendStop::Io)?;
        self.poll_flush(context, stream).map_err(SendStop::Io)
    }

    /// Takes the next piece of the body.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SendStop>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(()));
        };
        let frame = ready!(Pin::new(&mut **body).poll_frame(context));
        let is_last = body.is_end_stream();
        let added = match frame {
            Some(frame) => frame.and_then(|frame| self.add(frame, is_last)),
            None => self.end(None),
        };
        Poll::Ready(added.map_err(SendStop::Upload))
    }

    fn add(&mut self, frame: Frame<Bytes>, is_last: bool) -> Result<(), UploadError> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                // Trailers cannot be put back, so treat the request as begun.
                self.has_begun = true;
                return self.end(frame.into_trailers().ok().as_ref());
            }
        };
        let is_chunk = self.framing == Framing::Chunked && !data.is_empty();
        if let Framing::Length(left) = &mut self.framing {
            let rest = left.checked_sub(data.len() as u64);
            *left = rest.ok_or(UploadError::Broken)?;
        }
        if is_chunk {
            write::chunk_size(&mut self.text, data.len());
        }
        if !self.has_begun {
            self.first = data.clone();
        }
        self.is_full = true;
        let tail = if is_chunk { CRLF } else { &[] };
        if data.len() > COPY_MAX {
            self.piece = data;
            self.tail = tail;
            // The end of a chunked body follows the piece, and is written later.
            let is_told = self.framing == Framing::Length(0);
            return if is_told { self.end(None) } else { Ok(()) };
        }
        self.text.extend_from_slice(&data);
        self.text.extend_from_slice(tail);
        if is_last { self.end(None) } else { Ok(()) }
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), UploadError> {
        match self.framing {
            Framing::Chunked => {
                write::last_chunk(&mut self.text, trailers, &self.announced);
            }
            Framing::None | Framing::Length(0) => {}
            Framing::Length(_) => return Err(UploadError::Broken),
        }
        self.spent = self.body.take().filter(|_| !self.has_begun);
        Ok(())
    }

    /// Writes the buffered bytes.
    fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.is_written() {
            let text = self.text.get(self.sent..).unwrap_or_default();
            let stream = Pin::new(&mut *stream);
            let wrote = ready!(if self.piece.is_empty() && self.tail.is_empty() {
                stream.poll_write(context, text)
            } else {
                let all = [text, &self.piece, self.tail].map(IoSlice::new);
                stream.poll_write_vectored(context, &all)
            })?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.wrote(wrote);
        }
        self.is_full = false;
        Poll::Ready(Ok(()))
    }

    /// Records that this many bytes were written.
    fn wrote(&mut self, bytes: usize) {
        self.is_unflushed = true;
        if !self.has_begun {
            self.has_begun = true;
            self.first = Bytes::new();
            self.spent = None;
        }
        let of_text = bytes.min(self.text.len().saturating_sub(self.sent));
        self.sent = self.sent.saturating_add(of_text);
        if self.sent == self.text.len() {
            self.text.clear();
            self.sent = 0;
        }
        let rest = bytes.saturating_sub(of_text);
        let of_piece = rest.min(self.piece.len());
        self.piece.advance(of_piece);
        let of_tail = rest.saturating_sub(of_piece);
        self.tail = self.tail.get(of_tail..).unwrap_or_default();
    }

    fn poll_flush<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut W,
    ) -> Poll<io::Result<()>> {
        if self.is_unflushed {
            ready!(Pin::new(stream).poll_flush(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Prepares for the next request.
    pub(super) fn rest(&mut self) {
        if self.text.capacity() > KEPT_MAX {
            self.text = Vec::new();
        }
    }
}
