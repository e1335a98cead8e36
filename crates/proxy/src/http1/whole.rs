//! A whole response from bytes that come in pieces, without a connection: for tests and fuzzers.

use super::content::{Content, ContentPiece};
use super::framing::BodyExtent;
use super::input::Input;
use super::read::ResponseHead;
use crate::fault::Http1Fault;
use http::{HeaderMap, Method, StatusCode};

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeResponse {
    /// The status.
    pub status: StatusCode,
    /// The fields, except for those meant for the gateway only.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
    /// The trailers.
    pub trailers: Option<HeaderMap>,
    /// True if the connection accepts another request.
    pub keeps: bool,
    /// The number of bytes after the response.
    pub stray: usize,
}

/// Reads the response to `method` from these pieces, after which the connection ends. Returns an error
/// message if it cannot be forwarded.
///
/// # Errors
///
/// The fault at which a connection would be closed: a malformed head, contradictory framing, or an early end.
pub fn read<'a>(
    method: &Method,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<WholeResponse, String> {
    let mut pieces = pieces.into_iter();
    let mut reading = ResponseReader::default();
    for piece in pieces.by_ref() {
        reading.input.add(piece);
        let read = reading.go_on(method).map_err(|fault| fault.to_string())?;
        if let Some(whole) = read {
            let left: usize = pieces.map(<[u8]>::len).sum();
            let stray = whole.stray.saturating_add(left);
            return Ok(WholeResponse { stray, ..whole });
        }
    }
    reading.end().map_err(|fault| fault.to_string())
}

#[derive(Debug, Default)]
struct ResponseReader {
    input: Input,
    begun: Option<(WholeResponse, Content)>,
}

impl ResponseReader {
    fn go_on(&mut self, method: &Method) -> Result<Option<WholeResponse>, Http1Fault> {
        while self.begun.is_none() {
            let mut head = ResponseHead::default();
            if !self.input.take_head(&mut head)? {
                return Ok(None);
            }
            if head.is_interim() {
                continue;
            }
            if head.extent == BodyExtent::Doubtful {
                return Err(Http1Fault::NotHttp("it is ambiguous"));
            }
            let content = Content::of(method, head.status, head.extent);
            let whole = WholeResponse {
                status: head.status,
                headers: head.headers,
                body: Vec::new(),
                trailers: None,
                keeps: head.keeps && !matches!(content, Content::UntilClose),
                stray: 0,
            };
            self.begun = Some((whole, content));
        }
        let Some((whole, content)) = &mut self.begun else {
            return Ok(None);
        };
        loop {
            match content.next(self.input.bytes())? {
                ContentPiece::More => return Ok(None),
                ContentPiece::End => break,
                ContentPiece::Frame(frame) => match frame.into_data() {
                    Ok(data) => whole.body.extend_from_slice(&data),
                    Err(frame) => whole.trailers = frame.into_trailers().ok(),
                },
            }
        }
        whole.stray = self.input.bytes().len();
        Ok(Some(whole.clone()))
    }

    fn end(self) -> Result<WholeResponse, Http1Fault> {
        let (whole, mut content) = self.begun.ok_or(Http1Fault::Ended)?;
        content.end()?;
        Ok(whole)
    }
}
