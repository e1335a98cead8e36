//! The head of an answer, from bytes.
//!
//! What httparse takes is HTTP/1.0 or 1.1, fields without folds and without spaces before the colon. A
//! line may end in LF alone: it is written anew for the client, so nobody reads it in another way.

use super::fault::Http1Fault;
use super::framing::{BodyExtent, FramingFields};
use bytes::Bytes;
use http::header::HeaderName;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use httparse::{Error, ParserConfig, Status};
use hyper::ext::ReasonPhrase;
use std::mem::MaybeUninit;

/// Bytes of an answer's head.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// Lines of an answer's head, and of its trailers.
pub(super) const FIELDS_MAX: usize = 100;

/// A head that is this short is looked at again whenever something was added to it.
const SHORT: usize = 512;

/// The head of an answer.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The words beside the status, where they are not the usual ones.
    pub(super) extensions: Extensions,
    pub(super) extent: BodyExtent,
    /// Whether the upstream will take another request on the same connection.
    pub(super) keeps: bool,
}

impl ResponseHead {
    /// Whether it only says that an answer will follow.
    pub(super) fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

/// Whether to look at a head, of which so much was seen in vain: it has come to its end, or has become
/// much longer. One that comes byte by byte would take ages otherwise.
pub(super) fn is_worth_it(input: &[u8], seen: usize) -> bool {
    if input.len() <= SHORT || input.len() / 2 >= seen {
        return !input.is_empty();
    }
    let fresh = input.get(seen.saturating_sub(3)..).unwrap_or(input);
    let mut ends = memchr::memchr_iter(b'\n', fresh);
    ends.any(|at| {
        let next = fresh.get(at.saturating_add(1)..).unwrap_or_default();
        next.starts_with(b"\r\n") || next.starts_with(b"\n")
    })
}

/// A head, and how long it is.
pub(super) fn parse(all: &Bytes) -> Result<Option<(ResponseHead, usize)>, Http1Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    let status = ParserConfig::default()
        .parse_response_with_uninit_headers(&mut parsed, all, &mut fields)
        .map_err(|error| Http1Fault::NotHttp(what(error)))?;
    let Status::Complete(length) = status else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(parsed.code.unwrap_or_default());
    let status = status.map_err(|_| Http1Fault::NotHttp("its status is none"))?;
    let version = match parsed.version {
        Some(1) => Version::HTTP_11,
        _ => Version::HTTP_10,
    };
    let mut fields = HeadFields::new(all, version, parsed.headers.len());
    for field in &*parsed.headers {
        fields.take(field)?;
    }
    if version == Version::HTTP_10 && fields.said.has_encoding() {
        return Err(Http1Fault::NotHttp("HTTP/1.0 has no transfer encodings"));
    }
    let head = ResponseHead {
        status,
        extensions: reason(status, parsed.reason.unwrap_or_default()),
        extent: fields.said.extent(),
        keeps: fields.keeps(),
        headers: fields.headers,
    };
    Ok(Some((head, length)))
}

/// The fields of a head, and what those of them say that are meant for this side.
struct HeadFields<'a> {
    all: &'a Bytes,
    version: Version,
    headers: HeaderMap,
    said: FramingFields,
    closes: bool,
    stays: bool,
}

impl<'a> HeadFields<'a> {
    fn new(all: &'a Bytes, version: Version, count: usize) -> Self {
        Self {
            all,
            version,
            headers: HeaderMap::with_capacity(count),
            said: FramingFields::default(),
            closes: false,
            stays: false,
        }
    }

    #[inline]
    fn take(&mut self, field: &httparse::Header<'_>) -> Result<(), Http1Fault> {
        let name = field.name.as_bytes();
        match name.len() {
            // What only this side needs to know is not given to anybody else.
            10 if is_named(name, b"Connection") && self.connection(field.value) => {
                return Ok(());
            }
            14 if is_named(name, b"Content-Length") => self.said.length(field.value)?,
            17 if is_named(name, b"Transfer-Encoding") => {
                self.said.encoding(field.value);
                return Ok(());
            }
            _ => {}
        }
        let name = HeaderName::from_bytes(name);
        let name = name.map_err(|_| Http1Fault::NotHttp("a field's name is none"))?;
        let value = HeaderValue::from_maybe_shared(self.all.slice_ref(field.value));
        let value = value.map_err(|_| Http1Fault::NotHttp("a field's value is none"))?;
        self.headers.append(name, value);
        Ok(())
    }

    /// Takes in what `Connection` says. Whether that is all, and names no other fields.
    fn connection(&mut self, value: &[u8]) -> bool {
        let mut is_all = true;
        for one in value.split(|byte| *byte == b',') {
            let one = one.trim_ascii();
            if one.eq_ignore_ascii_case(b"close") {
                self.closes = true;
            } else if one.eq_ignore_ascii_case(b"keep-alive") {
                self.stays = true;
            } else {
                is_all = false;
            }
        }
        is_all
    }

    fn keeps(&self) -> bool {
        !self.closes && (self.version == Version::HTTP_11 || self.stays)
    }
}

/// Returns true if a field is called `known`. Nearly everybody writes it just so, which is compared faster.
#[inline]
fn is_named(name: &[u8], known: &[u8]) -> bool {
    name == known || name.eq_ignore_ascii_case(known)
}

/// The words beside a status, if they are not those that everybody says.
fn reason(status: StatusCode, said: &str) -> Extensions {
    let mut extensions = Extensions::new();
    if status.canonical_reason() != Some(said)
        && let Ok(reason) = ReasonPhrase::try_from(said.as_bytes())
    {
        extensions.insert(reason);
    }
    extensions
}

pub(super) fn what(error: Error) -> &'static str {
    match error {
        Error::HeaderName => "a field's name is none",
        Error::HeaderValue => "a field's value is none",
        Error::NewLine => "a line does not end as it should",
        Error::Status => "its status is none",
        Error::Token => "its status line is none",
        Error::TooManyHeaders => "it has too many fields",
        Error::Version => "it does not begin with a version of HTTP",
    }
}
