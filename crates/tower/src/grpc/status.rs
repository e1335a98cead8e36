//! A status instead of an answer: what gRPC calls trailers only.

use super::Flavour;
use super::encode::{self, percent};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use std::time::Duration;

const CODE: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The codes that we answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// A limit is exceeded.
    ResourceExhausted = 8,
    /// Nothing could be decided.
    Unavailable = 14,
}

/// A call that is not carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status<'a> {
    pub(crate) code: Code,
    /// What people are told.
    pub(crate) message: &'a str,
    /// When to try again; `None` for never.
    pub(crate) retry_after: Option<Duration>,
}

impl Status<'_> {
    /// Turns what would be answered over plain HTTP into what gRPC wants: the same headers, and the
    /// status among them.
    pub(crate) fn instead_of<B>(self, http: Response<B>, flavour: Flavour) -> Response<Bytes> {
        let mut answer = http.map(|_| Bytes::new());
        *answer.status_mut() = StatusCode::OK;
        let code = self.code as u8;
        let details = STANDARD_NO_PAD.encode(encode::status(code, self.message, self.retry_after));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, flavour.content_type());
        headers.insert(CODE, HeaderValue::from(u16::from(code)));
        // Both are plain ASCII, whatever the message is.
        if let Ok(message) = HeaderValue::try_from(percent(self.message)) {
            headers.insert(MESSAGE, message);
        }
        if let Ok(details) = HeaderValue::try_from(details) {
            headers.insert(DETAILS, details);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use tonic::{Code as TonicCode, Status as TonicStatus};
    use tonic_types::StatusExt as _;

    fn told(told: Status<'_>) -> (Response<Bytes>, TonicStatus) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let flavour = Flavour::of(&headers).unwrap();
        let http = Response::builder()
            .status(429)
            .header("x-ratelimit-limit", "5");
        let answer = told.instead_of(http.body("a body").unwrap(), flavour);
        let status = TonicStatus::from_header_map(answer.headers()).unwrap();
        (answer, status)
    }

    #[test]
    fn another_implementation_reads_what_we_write() {
        for (code, expected) in [
            (Code::ResourceExhausted, TonicCode::ResourceExhausted),
            (Code::Unavailable, TonicCode::Unavailable),
        ] {
            for micros in [0, 1, 999_999, 1_000_000, 300_000_250, 1 << 53] {
                let wait = Duration::from_micros(micros);
                let message = "100 % of it is gone.\nTry again in \u{2153} s.";
                let (answer, status) = told(Status {
                    code,
                    message,
                    retry_after: Some(wait),
                });
                assert_eq!((status.code(), status.message()), (expected, message));
                let details = status.get_error_details();
                let info = details.retry_info().unwrap();
                assert_eq!(info.retry_delay, Some(wait));
                assert_eq!(answer.status(), 200);
                assert_eq!(answer.headers()["content-type"], "application/grpc");
                assert_eq!(answer.headers()["x-ratelimit-limit"], "5");
                assert!(answer.body().is_empty());
            }
        }
    }

    #[test]
    fn a_wait_that_protobuf_cannot_tell_is_as_long_as_it_can() {
        let (_, status) = told(Status {
            code: Code::ResourceExhausted,
            message: "",
            retry_after: Some(Duration::from_micros(u64::MAX)),
        });
        let details = status.get_error_details();
        let told = details.retry_info().and_then(|info| info.retry_delay);
        assert_eq!(told.map(|wait| wait.as_secs()), Some(315_576_000_000));
    }

    #[test]
    fn what_can_never_pass_has_no_retry_info() {
        let (_, status) = told(Status {
            code: Code::ResourceExhausted,
            message: "never",
            retry_after: None,
        });
        assert_eq!(status.code(), TonicCode::ResourceExhausted);
        assert!(status.get_error_details().retry_info().is_none());
        // The details repeat code and message, as `google.rpc.Status` has them.
        assert!(!status.details().is_empty());
    }
}
