//! A request to an upstream.

use super::forwarding_headers::FieldLines;
use super::interim::InterimForwarder;
use super::upload::Upload;
use http::header::{HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use std::ops::{Deref, DerefMut};

/// A request to an upstream.
#[derive(Debug)]
pub struct OutgoingRequest {
    request: Request<Upload>,
    /// Further fields as lines of HTTP/1. They are mostly the same for one connection, so they are written
    /// once; inserting each into a map would cost more than sending them.
    lines: FieldLines,
    /// The recipient of interim responses.
    interim: Option<InterimForwarder>,
}

impl OutgoingRequest {
    /// Creates a request with these lines in addition to its fields.
    pub fn new(request: Request<Upload>, lines: FieldLines) -> Self {
        Self {
            request,
            lines,
            interim: None,
        }
    }

    /// Sets the recipient of interim responses.
    #[must_use]
    pub fn with_interim(self, interim: Option<InterimForwarder>) -> Self {
        Self { interim, ..self }
    }

    /// Returns the recipient of interim responses, if any.
    pub fn interim(&self) -> Option<&InterimForwarder> {
        self.interim.as_ref()
    }

    /// Returns the additional fields, as lines.
    pub fn lines(&self) -> &[u8] {
        &self.lines.text
    }

    /// Returns true if the request names a host.
    pub(super) fn has_host(&self) -> bool {
        // To look through the few names of a request is cheaper than a lookup.
        self.lines.has_host || self.request.headers().keys().any(|name| *name == HOST)
    }

    /// Returns the request with all its fields in the map, for protocols without lines.
    pub(super) fn into_request(mut self) -> Request<Upload> {
        unfold(&self.lines.text, self.request.headers_mut());
        self.request
    }
}

impl From<Request<Upload>> for OutgoingRequest {
    fn from(request: Request<Upload>) -> Self {
        Self::new(request, FieldLines::default())
    }
}

impl Deref for OutgoingRequest {
    type Target = Request<Upload>;

    fn deref(&self) -> &Request<Upload> {
        &self.request
    }
}

impl DerefMut for OutgoingRequest {
    fn deref_mut(&mut self) -> &mut Request<Upload> {
        &mut self.request
    }
}

/// Parses lines into a map, each as a field.
fn unfold(mut lines: &[u8], headers: &mut HeaderMap) {
    while let Some(end) = memchr::memchr(b'\n', lines) {
        let (line, rest) = lines.split_at(end.saturating_add(1));
        lines = rest;
        let Some(colon) = memchr::memchr(b':', line) else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn forwarding_lines_convert_back_to_fields() {
        let request = Request::new(Upload::none());
        let text = b"via: 1.1 tidegate\r\nforwarded: host=\"a:1\"\r\nx-none: \r\n";
        let lines = FieldLines {
            text: Bytes::from_static(text),
            has_host: false,
        };
        let request = OutgoingRequest::new(request, lines).into_request();
        let headers = request.headers();
        assert_eq!(headers.len(), 3);
        assert_eq!(headers["via"], "1.1 tidegate");
        assert_eq!(headers["forwarded"], "host=\"a:1\"");
        assert_eq!(headers["x-none"], "");
    }
}
