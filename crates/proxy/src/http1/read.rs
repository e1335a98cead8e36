//! The response head, parsed.
//!
//! httparse accepts HTTP/1.0 and 1.1, fields without folds and without spaces before the colon. A line may
//! end in LF alone: the head is rewritten for the client, so no client reads it in another way.

use super::framing::{BodyExtent, FramingFields};
use super::template::HeadMemory;
use crate::fault::Http1Fault;
use bytes::Bytes;
use http::header::HeaderName;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use httparse::{Error, ParserConfig, Status};
use hyper::ext::ReasonPhrase;
use std::mem::MaybeUninit;

/// The maximum size of a response head in bytes.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// The maximum number of fields of a response head, and of its trailers.
pub(super) const FIELDS_MAX: usize = 100;

/// A head up to this length is parsed again after every read.
const SHORT: usize = 512;

/// A response head: status and headers.
#[derive(Debug, Default)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The reason phrase, if it is not the usual one.
    pub(super) extensions: Extensions,
    pub(super) extent: BodyExtent,
    /// True if the upstream accepts another request on the same connection.
    pub(super) keeps: bool,
}

impl ResponseHead {
    /// Returns true if it is an interim response, before the final one.
    pub(super) fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

/// Returns true if a head, of which `seen` bytes were parsed in vain, should be parsed again: its end has
/// come, or it has become much longer. Otherwise a head that comes byte by byte would take ages.
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

/// Parses a head into `head` and returns its length. It is filled in place, because it is large. `memory`
/// has an earlier head of the same connection.
pub(super) fn parse(
    all: &Bytes,
    memory: &mut HeadMemory,
    head: &mut ResponseHead,
) -> Result<Option<usize>, Http1Fault> {
    if let Some(length) = memory.read(all, head) {
        return Ok(Some(length));
    }
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    let status = ParserConfig::default()
        .parse_response_with_uninit_headers(&mut parsed, all, &mut fields)
        .map_err(|error| Http1Fault::NotHttp(what(error)))?;
    let Status::Complete(length) = status else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(parsed.code.unwrap_or_default());
    let status = status.map_err(|_| Http1Fault::NotHttp("its status is invalid"))?;
    let version = match parsed.version {
        Some(1) => Version::HTTP_11,
        _ => Version::HTTP_10,
    };
    let mut fields = HeadFields::new(all, parsed.headers.len());
    for field in &*parsed.headers {
        fields.take(field)?;
    }
    if version == Version::HTTP_10 && fields.said.has_encoding() {
        return Err(Http1Fault::NotHttp("HTTP/1.0 has no transfer encodings"));
    }
    *head = ResponseHead {
        status,
        extensions: reason(status, parsed.reason.unwrap_or_default()),
        extent: fields.said.extent(),
        keeps: fields.connection.keeps(version == Version::HTTP_11),
        headers: fields.headers,
    };
    let names = parsed.headers.iter().map(|field| field.name);
    memory.remember(all.get(..length).unwrap_or_default(), head, names);
    Ok(Some(length))
}

/// The fields of a head, and the settings of those that are meant for the gateway.
struct HeadFields<'a> {
    all: &'a Bytes,
    headers: HeaderMap,
    said: FramingFields,
    connection: ConnectionFields,
}

/// The options in the `Connection` fields of a response.
#[derive(Debug, Default)]
pub(super) struct ConnectionFields {
    closes: bool,
    stays: bool,
}

impl<'a> HeadFields<'a> {
    fn new(all: &'a Bytes, count: usize) -> Self {
        Self {
            all,
            headers: HeaderMap::with_capacity(count),
            said: FramingFields::default(),
            connection: ConnectionFields::default(),
        }
    }

    #[inline]
    fn take(&mut self, field: &httparse::Header<'_>) -> Result<(), Http1Fault> {
        let name = field.name.as_bytes();
        match name.len() {
            // Fields for the gateway only are not forwarded.
            10 if is_named(name, b"Connection") && self.connection.add(field.value) => {
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
        let name = name.map_err(|_| Http1Fault::NotHttp("a header name is invalid"))?;
        let value = HeaderValue::from_maybe_shared(self.all.slice_ref(field.value));
        let value = value.map_err(|_| Http1Fault::NotHttp("a header value is invalid"))?;
        self.headers.append(name, value);
        Ok(())
    }
}

impl ConnectionFields {
    /// Adds a `Connection`. Returns true if it names no other fields.
    pub(super) fn add(&mut self, value: &[u8]) -> bool {
        // Nearly all servers write exactly this.
        if value == b"keep-alive" {
            self.stays = true;
            return true;
        }
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

    /// Returns true if the connection takes another request. With HTTP/1.1 (`is_http11`) it does unless
    /// the response contains `Connection: close`.
    pub(super) fn keeps(&self, is_http11: bool) -> bool {
        !self.closes && (is_http11 || self.stays)
    }
}

/// Returns true if a field is called `known`. Nearly all servers write it exactly so, and that comparison is
/// faster.
#[inline]
fn is_named(name: &[u8], known: &[u8]) -> bool {
    name == known || name.eq_ignore_ascii_case(known)
}

/// Returns the reason phrase, if it is not the canonical one.
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
        Error::HeaderName => "a header name is invalid",
        Error::HeaderValue => "a header value is invalid",
        Error::NewLine => "a line has an invalid ending",
        Error::Status => "its status is invalid",
        Error::Token => "its status line is invalid",
        Error::TooManyHeaders => "it has too many headers",
        Error::Version => "it does not start with an HTTP version",
    }
}
