//! The request head, and chunks, as bytes.
//!
//! The output cannot be read as more than one request. By their types, neither a path nor a field contains
//! line ends. The framing is written once, from the body itself and not from the client's fields.

use crate::upload::Upload;
use http::header::{CONTENT_LENGTH, HeaderName, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, Request};
use http_body::Body;

/// The framing of a request body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body.
    #[default]
    None,
    /// This many bytes are still to come.
    Length(u64),
    Chunked,
}

impl Framing {
    /// Returns the framing for `body`.
    pub(super) fn of(body: &Upload) -> Self {
        if body.is_none() {
            return Self::None;
        }
        let length = body.size_hint().exact();
        length.map_or(Self::Chunked, Self::Length)
    }
}

/// Writes the request head with this framing, and `lines` in addition to its own fields.
pub(super) fn head<B>(to: &mut Vec<u8>, request: &Request<B>, framing: Framing, lines: &[u8]) {
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    to.extend_from_slice(request.method().as_str().as_bytes());
    to.push(b' ');
    to.extend_from_slice(path.as_bytes());
    to.extend_from_slice(b" HTTP/1.1\r\n");
    let mut has_length = false;
    for (name, value) in request.headers() {
        if *name == CONTENT_LENGTH {
            has_length = true;
        } else if *name != TRANSFER_ENCODING {
            field(to, name.as_str(), value.as_bytes());
        }
    }
    match framing {
        // Repeat a `Content-Length: 0` of the client.
        Framing::None if has_length => field(to, "content-length", b"0"),
        Framing::None => {}
        Framing::Length(bytes) => {
            let mut digits = itoa::Buffer::new();
            field(to, "content-length", digits.format(bytes).as_bytes());
        }
        Framing::Chunked => field(to, "transfer-encoding", b"chunked"),
    }
    to.extend_from_slice(lines);
    to.extend_from_slice(b"\r\n");
}

/// Writes one field.
#[inline]
pub(super) fn field(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    // Reserve once, and not for each part.
    to.reserve(name.len() + value.len() + 4);
    to.extend_from_slice(name.as_bytes());
    to.extend_from_slice(b": ");
    to.extend_from_slice(value);
    to.extend_from_slice(b"\r\n");
}

/// Writes the size line of a chunk of this many bytes, at least one.
pub(super) fn chunk_size(to: &mut Vec<u8>, bytes: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut is_leading = true;
    for shift in (0..usize::BITS / 4).rev() {
        let digit = (bytes >> (shift * 4)) & 0xf;
        is_leading &= digit == 0;
        if !is_leading {
            to.push(DIGITS.get(digit).copied().unwrap_or(b'0'));
        }
    }
    to.extend_from_slice(b"\r\n");
}

/// Returns the trailers that a head announces. Others are not sent: the recipient does not expect them.
pub(super) fn announced(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(TRAILER).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// Writes the end of a chunked body, with those trailers that were announced.
pub(super) fn last_chunk(to: &mut Vec<u8>, trailers: Option<&HeaderMap>, announced: &[HeaderName]) {
    to.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flatten() {
        if announced.contains(name) {
            field(to, name.as_str(), value.as_bytes());
        }
    }
    to.extend_from_slice(b"\r\n");
}
