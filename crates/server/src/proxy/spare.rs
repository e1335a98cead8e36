//! A second copy of a request, for the case that nobody answers the first. Over HTTP/1 there is no need
//! for one: a request is only looked at while it is sent.

use super::upload::Upload;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};

/// A second copy of a request that may safely be sent twice. Hardly one in thousands is needed, so it is
/// kept in the form that is cheapest to make: a header map would be hashed anew.
#[derive(Debug)]
pub(super) struct Spare {
    method: Method,
    uri: Uri,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl Spare {
    /// A copy of `request`, if it may be sent twice: it has no body, and its method means the same
    /// however often it is done.
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

    /// The request again, with the lines of each field in the order sent.
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
