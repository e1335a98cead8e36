//! Interim responses (1xx) of an upstream, forwarded to the client.

use super::read::ResponseHead;
use super::write::field;
use crate::proxy::hop;
use crate::proxy::rewrite::HeaderChanges;
use crate::server::interim::InterimSink;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use std::sync::Arc;

/// A forwarder of interim responses to a client that speaks HTTP/1.1.
#[derive(Clone, Debug)]
pub(crate) struct Interim {
    client: InterimSink,
    changes: Arc<HeaderChanges>,
}

impl Interim {
    /// Forwards to `client`, with these header changes of the route.
    pub(crate) fn new(client: InterimSink, changes: &Arc<HeaderChanges>) -> Self {
        Self {
            client,
            changes: Arc::clone(changes),
        }
    }

    /// Forwards one and returns true if it was sent. A 100 is not for the client: the gateway sends its own
    /// when it reads the body.
    pub(super) fn pass(&self, head: ResponseHead) -> bool {
        if head.status == StatusCode::CONTINUE {
            return false;
        }
        let mut headers = head.headers;
        hop::strip_response(&mut headers);
        // There is no body, regardless of the header.
        headers.remove(CONTENT_LENGTH);
        self.changes.apply(&mut headers);
        let mut text = Vec::with_capacity(256);
        text.extend_from_slice(b"HTTP/1.1 ");
        text.extend_from_slice(head.status.as_str().as_bytes());
        text.push(b' ');
        let reason = head.status.canonical_reason().unwrap_or_default();
        text.extend_from_slice(reason.as_bytes());
        text.extend_from_slice(b"\r\n");
        for (name, value) in &headers {
            field(&mut text, name.as_str(), value.as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        self.client.send(&text)
    }
}
