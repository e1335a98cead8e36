//! Successful responses of the admin API, and the headers that all its responses have.

use super::etag::ETag;
use super::problem::AdminProblem;
use crate::admin::body::AdminBody;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Responses depend on roles and change over time, so no cache may store one.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A successful response. A handler returns one with a typed body; the dispatch sends it as JSON.
#[derive(Debug)]
pub(super) struct AdminReply<T = AdminBody> {
    status: StatusCode,
    body: Option<T>,
    etag: Option<ETag>,
    location: Option<String>,
}

/// The result of a handler.
pub(super) type ReplyResult<T> = Result<AdminReply<T>, AdminProblem>;

impl<T> AdminReply<T> {
    /// Returns status 200 with a body.
    pub(super) fn ok(body: T) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
            etag: None,
            location: None,
        }
    }

    /// Turns a response into a 201 for a new item at `location`.
    pub(super) fn created(self, location: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            location: Some(location),
            ..self
        }
    }

    /// Returns status 204.
    pub(super) fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
            etag: None,
            location: None,
        }
    }

    /// Sets the version.
    pub(super) fn at(mut self, etag: ETag) -> Self {
        self.etag = Some(etag);
        self
    }

    /// Returns the version.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// Turns a response into a 304: the caller has seen this version already.
    pub(super) fn unchanged(self) -> Self {
        Self {
            status: StatusCode::NOT_MODIFIED,
            body: None,
            ..self
        }
    }
}

impl<T: Serialize> AdminReply<T> {
    /// Writes the body as JSON.
    pub(super) fn into_json(self) -> Result<AdminReply, AdminProblem> {
        let json = self.body.as_ref().map(serde_json::to_vec).transpose();
        let json = json.map_err(|_| AdminProblem::internal())?;
        Ok(AdminReply {
            status: self.status,
            body: json.map(AdminBody::whole),
            etag: self.etag,
            location: self.location,
        })
    }
}

impl AdminReply {
    /// Returns the response.
    pub(super) fn into_response(self) -> Response<AdminBody> {
        let mut response = response(self.status, self.body.map(|body| (JSON, body)));
        let headers = response.headers_mut();
        if let Some(etag) = self.etag {
            headers.insert(ETAG, etag.header());
        }
        if let Some(Ok(location)) = self.location.map(HeaderValue::try_from) {
            headers.insert(LOCATION, location);
        }
        response
    }
}

/// Returns a response with the headers that all have. A body comes with its content type.
pub(super) fn response(
    status: StatusCode,
    body: Option<(HeaderValue, AdminBody)>,
) -> Response<AdminBody> {
    let (kind, body) = body.unzip();
    let mut response = Response::new(body.unwrap_or(AdminBody::Static(b"")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    response
}
