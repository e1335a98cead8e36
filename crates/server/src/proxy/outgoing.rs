//! A request on its way to an upstream.

use super::http1::Interim;
use super::upload::Upload;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use std::ops::{Deref, DerefMut};

/// A request on its way to an upstream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    request: Request<Upload>,
    /// Fields beside those of the request, as lines of HTTP/1. Those of one connection are mostly the
    /// same, so they are written once; to put each into a map would be the dearer part of telling them.
    lines: Bytes,
    /// Where interim answers to it go.
    interim: Option<Interim>,
}

impl Outgoing {
    /// This request, and these lines beside its fields.
    pub(crate) fn new(request: Request<Upload>, lines: Bytes) -> Self {
        Self {
            request,
            lines,
            interim: None,
        }
    }

    /// The same, with interim answers to it going there.
    pub(crate) fn with_interim(self, interim: Option<Interim>) -> Self {
        Self { interim, ..self }
    }

    /// Where interim answers to it go, if anywhere.
    pub(super) fn interim(&self) -> Option<&Interim> {
        self.interim.as_ref()
    }

    /// The fields that are not among those of the request, as lines.
    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The request with all its fields, where nobody speaks in lines.
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

/// Puts lines into a map, each as a field.
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
