//! The body of an answer, from bytes.

use super::chunks::Chunks;
use super::fault::Http1Fault;
use super::framing::BodyExtent;
use bytes::{Buf, Bytes};
use http::{HeaderMap, Method, StatusCode};
use http_body::{Frame, SizeHint};

/// What is still to come of an answer's body.
#[derive(Debug)]
pub(super) enum Content {
    /// So many bytes, at least one.
    Length(u64),
    Chunked(Chunks),
    /// Whatever comes until the connection ends.
    UntilClose,
    /// Nothing.
    Done,
    /// Nothing that could be read: this was wrong with it.
    Wrong(Option<Http1Fault>),
}

/// What bytes are the next piece of.
#[derive(Debug)]
pub(super) enum ContentPiece {
    Frame(Frame<Bytes>),
    /// The body is complete.
    End,
    /// More bytes are needed to tell.
    More,
}

impl Content {
    /// The body of an answer with this status to this method, which ends there.
    pub(super) fn of(method: &Method, status: StatusCode, extent: BodyExtent) -> Self {
        let is_head_only = *method == Method::HEAD
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match extent {
            _ if is_head_only => Self::Done,
            BodyExtent::Length(0) => Self::Done,
            BodyExtent::Length(bytes) => Self::Length(bytes),
            BodyExtent::Chunked => Self::Chunked(Chunks::BEGIN),
            // What is in doubt is not passed on, and even less is a second request sent after it.
            BodyExtent::Close | BodyExtent::Doubtful => Self::UntilClose,
        }
    }

    /// Whether all of it was taken.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// How much is to come.
    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Length(bytes) => SizeHint::with_exact(*bytes),
            Self::Done => SizeHint::with_exact(0),
            Self::Chunked(_) | Self::UntilClose | Self::Wrong(_) => SizeHint::default(),
        }
    }

    /// All of it at once, if all is there and it is not framed in pieces.
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

    /// The next piece, taken from the front of `input`. If nothing follows it, that is known with it.
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
        // What follows it may be there as well: its end, above all.
        match self.pass(input) {
            Ok(None) => {}
            Ok(trailers @ Some(_)) => *self = Self::Chunked(Chunks::Done(trailers)),
            // What was there before goes first.
            Err(fault) => *self = Self::Wrong(Some(fault)),
        }
        Ok(data(piece))
    }

    /// Passes what is no data. It is done if there is nothing more, but for trailers.
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

    /// The connection has ended: an error, if that is not how the body was to end.
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
