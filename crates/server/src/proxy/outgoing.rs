//! A request to an upstream.

use super::http1::Interim;
use super::upload::Upload;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use std::ops::{Deref, DerefMut};

/// A request to an upstream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    request: Request<Upload>,
    /// Further fields as lines of HTTP/1. They are mostly the same for one connection, so they are written
    /// once; inserting each into a map would cost more than sending them.
    lines: Bytes,
    /// The recipient of interim responses.
    interim: Option<Interim>,
}

impl Outgoing {
    /// Creates a request with these lines in addition to its fields.
    pub(crate) fn new(request: Request<Upload>, lines: Bytes) -> Self {
        Self {
            request,
            lines,
            interim: None,
        }
    }

    /// Sets the recipient of interim responses.
    pub(crate) fn with_interim(self, interim: Option<Interim>) -> Self {
        Self { interim, ..self }
    }

    /// Returns the recipient of interim responses, if any.
    pub(super) fn interim(&self) -> Option<&Interim> {
        self.interim.as_ref()
    }

    /// Returns the additional fields, as lines.
    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Returns the request with all its fields in the map, for protocols without lines.
    pub(super) fn into_request(mut self) -> Request<Upload> {
        unfold(&self.lines, self.request.headers_mut());
        self.request
    }
}

impl From<Request<Upload>> for Outgoing {
    fn from(request: Request<Upload>) -> Self {
        Self::new(request, Bytes::new())
    }
}

impl Deref for Outgoing {
    type Target = Request<Upload>;

    fn deref(&self) -> &Request<Upload> {
        &self.request
    }
}

impl DerefMut for Outgoing {
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

    #[test]
    fn lines_become_fields_again() {
        let request = Request::new(Upload::none());
        let lines =
            Bytes::from_static(b"via: 1.1 tidegate\r\nforwarded: host=\"a:1\"\r\nx-none: \r\n");
        let request = Outgoing::new(request, lines).into_request();
        let headers = request.headers();
        assert_eq!(headers.len(), 3);
        assert_eq!(headers["via"], "1.1 tidegate");
        assert_eq!(headers["forwarded"], "host=\"a:1\"");
        assert_eq!(headers["x-none"], "");
    }
}
