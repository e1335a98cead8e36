//! A status instead of an answer: what gRPC calls trailers only.

use super::GrpcContentType;
use super::encode::{self, percent};
use crate::answer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use std::borrow::Cow;
use std::time::Duration;
use tidegate::{DecidedBy, Decision, RETRY_AFTER_FAILURE};

/// Header `grpc-status`.
const CODE: HeaderName = HeaderName::from_static("grpc-status");
/// Header `grpc-message`.
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// Header `grpc-status-details-bin`.
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The codes that Tidegate answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Code {
    /// The request can be read in two ways, or not at all.
    InvalidArgument = 3,
    /// The request did not come in time.
    DeadlineExceeded = 4,
    /// A limit is exceeded.
    ResourceExhausted = 8,
    /// There is no such method here.
    Unimplemented = 12,
    /// Nothing could be decided, or no upstream answered.
    Unavailable = 14,
}

/// A call that is not carried out.
///
/// ```
/// use tidegate_http::grpc::Status;
///
/// let status = Status::undecided();
/// assert!(status.retry_after.is_some(), "a client may try again");
/// ```
#[derive(Clone, Debug)]
pub struct Status {
    /// The code, for programs.
    pub code: Code,
    /// The reason, for people.
    pub message: Cow<'static, str>,
    /// When to try again; `None` for never.
    pub retry_after: Option<Duration>,
}

impl Status {
    /// Returns the status of a call that `decision` refuses.
    pub fn refused(decision: &Decision) -> Self {
        Self {
            // Without a store no limit was exceeded.
            code: match decision.decided_by() {
                DecidedBy::Failure => Code::Unavailable,
                _ => Code::ResourceExhausted,
            },
            message: answer::detail(Some(decision)),
            retry_after: match decision.binding() {
                Some(band) => band.retry_after(),
                None => decision.banned_for(),
            },
        }
    }

    /// Returns the status of a call of which nothing could be decided.
    pub fn undecided() -> Self {
        Self {
            code: Code::Unavailable,
            message: answer::detail(None),
            retry_after: Some(RETRY_AFTER_FAILURE),
        }
    }

    /// Turns what would be answered over plain HTTP into what gRPC wants: the same headers, and the
    /// status among them.
    pub fn instead_of<B>(&self, http: Response<B>, flavour: GrpcContentType) -> Response<()> {
        let mut answer = http.map(|_| ());
        *answer.status_mut() = StatusCode::OK;
        let code = self.code as u8;
        let details = STANDARD_NO_PAD.encode(encode::status(code, &self.message, self.retry_after));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, flavour.content_type());
        headers.insert(CODE, HeaderValue::from(u16::from(code)));
        // Both are plain ASCII for any message.
        if let Ok(message) = HeaderValue::try_from(percent(&self.message)) {
            headers.insert(MESSAGE, message);
        }
        if let Ok(details) = HeaderValue::try_from(details) {
            headers.insert(DETAILS, details);
        }
        answer
    }
}
