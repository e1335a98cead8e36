//! A copy of a request for a retry over HTTP/2. Over HTTP/1 there is no need for one: a request is only
//! borrowed while it is sent.

use super::upload::Upload;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};

/// A copy of a request that is safe to send twice. Hardly one in thousands is needed, so it has the form that
/// is cheapest to make: a header map would have to be hashed again.
#[derive(Debug)]
pub(super) struct SpareRequest {
    method: Method,
    uri: Uri,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl SpareRequest {
    /// Copies `request`, if it may be sent twice: it has no body, and its method is idempotent.
    pub(super) fn of(request: &Request<Upload>) -> Option<Self> {
        if !request.method().is_idempotent() || !request.body().is_none() {
            return None;
        }
        let fields = request.headers().iter();
        Some(Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            fields: fields
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        })
    }

    /// Returns the request, with the lines of each field in the order sent.
    pub(super) fn into_request(self) -> Request<Upload> {
        let mut request = Request::new(Upload::none());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        let headers: &mut HeaderMap = request.headers_mut();
        headers.reserve(self.fields.len());
        for (name, value) in self.fields {
            headers.append(name, value);
        }
        request
    }
}
