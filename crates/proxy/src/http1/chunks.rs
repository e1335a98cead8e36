//! Chunked bodies, parsed byte by byte except for data.

use super::read::{FIELDS_MAX, what};
use crate::fault::Http1Fault;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use httparse::Status;

/// The most digits of a chunk's size that fit into 64 bits.
const DIGITS_MAX: u8 = 16;
/// The most bytes after the size of a chunk. Chunk extensions are unused, and not forwarded.
const EXTENSION_MAX: u16 = 256;
/// The most bytes of trailers.
const TRAILERS_MAX: usize = 16 << 10;

/// The parser state of a chunked body.
#[derive(Debug)]
pub(super) enum Chunks {
    Size {
        size: u64,
        digits: u8,
    },
    Extension {
        size: u64,
        taken: u16,
    },
    /// The size was followed by CR.
    SizeLf(u64),
    /// This many bytes of the chunk are still to come.
    Data(u64),
    /// The chunk is complete, and its line end is to come.
    DataCr,
    DataLf,
    /// The last chunk was seen. Holds the trailer section so far.
    Trailers(Vec<u8>),
    Done(Option<Box<HeaderMap>>),
}

impl Chunks {
    pub(super) const BEGIN: Self = Self::Size { size: 0, digits: 0 };

    /// Consumes bytes other than data from the front of `input` and returns their number. Afterwards data is
    /// next, the body is complete, or more input is needed.
    pub(super) fn pass(&mut self, input: &[u8]) -> Result<usize, Http1Fault> {
        for (at, byte) in input.iter().enumerate() {
            if matches!(self, Self::Data(_) | Self::Done(_)) {
                return Ok(at);
            }
            self.step(*byte)?;
        }
        Ok(input.len())
    }

    fn step(&mut self, byte: u8) -> Result<(), Http1Fault> {
        let next = match (&mut *self, byte) {
            (Self::Size { size, digits }, byte) => Self::size(*size, *digits, byte)?,
            (Self::Extension { size, .. }, b'\r') => Self::SizeLf(*size),
            (Self::Extension { size, taken }, byte) => {
                if *taken == EXTENSION_MAX || matches!(byte, b'\n' | 0) {
                    return Err(Http1Fault::NotHttp("a chunk extension is invalid"));
                }
                let (size, taken) = (*size, taken.saturating_add(1));
                Self::Extension { size, taken }
            }
            (Self::SizeLf(0), b'\n') => Self::Trailers(Vec::new()),
            (Self::SizeLf(size), b'\n') => Self::Data(*size),
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::BEGIN,
            (Self::Trailers(bytes), byte) => match trailers(bytes, byte)? {
                Some(done) => done,
                None => return Ok(()),
            },
            _ => return Err(Http1Fault::NotHttp("a chunk has the wrong length")),
        };
        *self = next;
        Ok(())
    }

    fn size(size: u64, digits: u8, byte: u8) -> Result<Self, Http1Fault> {
        let has_digits = digits > 0;
        if let Some(digit) = char::from(byte).to_digit(16)
            && digits < DIGITS_MAX
        {
            return Ok(Self::Size {
                // The number of digits is bounded, so no bit is shifted out.
                size: (size << 4) | u64::from(digit),
                digits: digits.saturating_add(1),
            });
        }
        match byte {
            b'\r' if has_digits => Ok(Self::SizeLf(size)),
            // Some servers pad the size with spaces.
            b';' | b' ' | b'\t' if has_digits => Ok(Self::Extension { size, taken: 0 }),
            _ => Err(Http1Fault::NotHttp("a chunk size is not a number")),
        }
    }

    /// Records that this many bytes of data were taken.
    pub(super) fn taken(&mut self, bytes: u64) {
        if let Self::Data(left) = self {
            *self = match left.saturating_sub(bytes) {
                0 => Self::DataCr,
                left => Self::Data(left),
            };
        }
    }
}

/// Appends to the trailers. Returns the next state once they are complete.
fn trailers(bytes: &mut Vec<u8>, byte: u8) -> Result<Option<Chunks>, Http1Fault> {
    if bytes.len() == TRAILERS_MAX {
        return Err(Http1Fault::NotHttp("its trailers are too large"));
    }
    if (byte == b'\n') != (bytes.last() == Some(&b'\r')) {
        return Err(Http1Fault::NotHttp("a line has an invalid ending"));
    }
    bytes.push(byte);
    if bytes == b"\r\n" {
        return Ok(Some(Chunks::Done(None)));
    }
    if !bytes.ends_with(b"\r\n\r\n") {
        return Ok(None);
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let parsed = httparse::parse_headers(bytes, &mut fields);
    let parsed = parsed.map_err(|error| Http1Fault::NotHttp(what(error)))?;
    let Status::Complete((_, fields)) = parsed else {
        return Err(Http1Fault::NotHttp("its trailers are invalid"));
    };
    let mut headers = Box::new(HeaderMap::with_capacity(fields.len()));
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let name = name.map_err(|_| Http1Fault::NotHttp("a header name is invalid"))?;
        let value = HeaderValue::from_bytes(field.value);
        let value = value.map_err(|_| Http1Fault::NotHttp("a header value is invalid"))?;
        headers.append(name, value);
    }
    Ok(Some(Chunks::Done(Some(headers))))
}
