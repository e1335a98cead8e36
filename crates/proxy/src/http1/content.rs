//! The parser of a response body.

use super::chunks::Chunks;
use super::framing::BodyExtent;
use crate::fault::Http1Fault;
use bytes::{Buf, Bytes};
use http::{HeaderMap, Method, StatusCode};
use http_body::{Frame, SizeHint};

/// The rest of a response body.
#[derive(Debug)]
pub(super) enum Content {
    /// This many bytes, at least one.
    Length(u64),
    Chunked(Chunks),
    /// Everything until the connection ends.
    UntilClose,
    /// The body is complete.
    Done,
    /// The body is invalid, for this reason.
    Wrong(Option<Http1Fault>),
}

/// The next piece of a body.
#[derive(Debug)]
pub(super) enum ContentPiece {
    Frame(Frame<Bytes>),
    /// The body is complete.
    End,
    /// More bytes are needed.
    More,
}

impl Content {
    /// Returns the body of a response with this status and framing to a request of this method.
    pub(super) fn of(method: &Method, status: StatusCode, extent: BodyExtent) -> Self {
        let is_head_only = *method == Method::HEAD
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match extent {
            _ if is_head_only => Self::Done,
            BodyExtent::Length(0) => Self::Done,
            BodyExtent::Length(bytes) => Self::Length(bytes),
            BodyExtent::Chunked => Self::Chunked(Chunks::BEGIN),
            // A response with doubtful framing is not forwarded, and its connection is never reused.
            BodyExtent::Close | BodyExtent::Doubtful => Self::UntilClose,
        }
    }

    /// Returns true if all of the body was taken.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Returns the number of bytes to come, if it is known.
    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Length(bytes) => SizeHint::with_exact(*bytes),
            Self::Done => SizeHint::with_exact(0),
            Self::Chunked(_) | Self::UntilClose | Self::Wrong(_) => SizeHint::default(),
        }
    }

    /// Returns the whole body at once, if all of it is there and it is not chunked.
    pub(super) fn whole(&mut self, input: &mut Bytes) -> Option<Bytes> {
        match *self {
            Self::Done => Some(Bytes::new()),
            Self::Length(bytes) if bytes <= input.len() as u64 => {
                let whole = take(input, bytes);
                *self = Self::Done;
                Some(whole)
            }
            _ => None,
        }
    }

    /// Takes the next piece from the front of `input`. If it is the last one, the state becomes done with it.
    pub(super) fn next(&mut self, input: &mut Bytes) -> Result<ContentPiece, Http1Fault> {
        match self {
            Self::Done => Ok(ContentPiece::End),
            Self::Wrong(fault) => match fault.take() {
                Some(fault) => Err(fault),
                None => Ok(ContentPiece::End),
            },
            Self::UntilClose | Self::Length(_) if input.is_empty() => Ok(ContentPiece::More),
            Self::UntilClose => Ok(data(std::mem::take(input))),
            Self::Length(left) => {
                let piece = take(input, *left);
                match left.saturating_sub(piece.len() as u64) {
                    0 => *self = Self::Done,
                    rest => *left = rest,
                }
                Ok(data(piece))
            }
            Self::Chunked(_) => self.next_chunk(input),
        }
    }

    fn next_chunk(&mut self, input: &mut Bytes) -> Result<ContentPiece, Http1Fault> {
        if let Some(trailers) = self.pass(input)? {
            *self = Self::Done;
            return Ok(ContentPiece::Frame(Frame::trailers(*trailers)));
        }
        let Self::Chunked(chunks) = self else {
            return Ok(ContentPiece::End);
        };
        let &mut Chunks::Data(left) = chunks else {
            return Ok(ContentPiece::More);
        };
        if input.is_empty() {
            return Ok(ContentPiece::More);
        }
        let piece = take(input, left);
        chunks.taken(piece.len() as u64);
        // The following bytes may be there as well, above all the end of the body.
        match self.pass(input) {
            Ok(None) => {}
            Ok(trailers @ Some(_)) => *self = Self::Chunked(Chunks::Done(trailers)),
            // Deliver the data that came before the fault first.
            Err(fault) => *self = Self::Wrong(Some(fault)),
        }
        Ok(data(piece))
    }

    /// Consumes bytes other than data. Sets the state to done at the end, unless there are trailers to
    /// return.
    fn pass(&mut self, input: &mut Bytes) -> Result<Option<Box<HeaderMap>>, Http1Fault> {
        let Self::Chunked(chunks) = self else {
            return Ok(None);
        };
        let passed = chunks.pass(input)?;
        input.advance(passed);
        let Chunks::Done(trailers) = chunks else {
            return Ok(None);
        };
        let trailers = trailers.take();
        if trailers.is_none() {
            *self = Self::Done;
        }
        Ok(trailers)
    }

    /// Records that the connection has ended. Returns an error if the body does not end with the connection.
    pub(super) fn end(&mut self) -> Result<(), Http1Fault> {
        match self {
            Self::UntilClose | Self::Done => {
                *self = Self::Done;
                Ok(())
            }
            _ => Err(Http1Fault::Ended),
        }
    }
}

fn data(bytes: Bytes) -> ContentPiece {
    ContentPiece::Frame(Frame::data(bytes))
}

/// Takes up to `bytes` from the front.
fn take(input: &mut Bytes, bytes: u64) -> Bytes {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes < input.len() => input.split_to(bytes),
        _ => std::mem::take(input),
    }
}
