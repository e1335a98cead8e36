//! Interim responses (1xx) of an upstream, forwarded to the client.

use super::hop;
use super::rewrite::HeaderChanges;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use tidegate_net::idle_clock::InterimSink;

/// A forwarder of interim responses to a client that speaks HTTP/1.1.
#[derive(Clone, Debug)]
pub struct InterimForwarder {
    client: InterimSink,
    changes: Arc<HeaderChanges>,
}

impl InterimForwarder {
    /// Forwards to `client`, with these header changes of the route.
    pub fn new(client: InterimSink, changes: &Arc<HeaderChanges>) -> Self {
        Self {
            client,
            changes: Arc::clone(changes),
        }
    }

    /// Forwards one and returns true if it was sent. A 100 is not for the client: the gateway sends its own
    /// when it reads the body.
    pub fn pass(&self, status: StatusCode, mut headers: HeaderMap) -> bool {
        if status == StatusCode::CONTINUE {
            return false;
        }
        hop::strip_response(&mut headers);
        // There is no body, regardless of the header.
        headers.remove(CONTENT_LENGTH);
        self.changes.apply(&mut headers);
        let mut text = Vec::with_capacity(256);
        text.extend_from_slice(b"HTTP/1.1 ");
        text.extend_from_slice(status.as_str().as_bytes());
        text.push(b' ');
        let reason = status.canonical_reason().unwrap_or_default();
        text.extend_from_slice(reason.as_bytes());
        text.extend_from_slice(b"\r\n");
        for (name, value) in &headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        self.client.send(&text)
    }
}
