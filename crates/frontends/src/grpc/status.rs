//! The status with which a call ends.

use super::super::body::BodyError;
use crate::wire::protobuf::read::ProtobufError;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::fmt::Write;

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The status codes of failed calls. "Unknown" (2) is never sent: a proxy cannot act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrpcCode {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// The status of a call without a response message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrpcStatus {
    pub(super) code: GrpcCode,
    /// The message, for the developer of the client.
    pub(super) message: Cow<'static, str>,
}

impl GrpcCode {
    fn value(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::InvalidArgument => "3",
            Self::DeadlineExceeded => "4",
            Self::NotFound => "5",
            Self::ResourceExhausted => "8",
            Self::FailedPrecondition => "9",
            Self::Unimplemented => "12",
            Self::Unavailable => "14",
            Self::Unauthenticated => "16",
        })
    }
}

impl GrpcStatus {
    pub(super) fn new(code: GrpcCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Returns the status for a missing or wrong token.
    pub(super) fn unauthenticated() -> Self {
        let message = "authentication required: send `authorization: Bearer TOKEN`";
        Self::new(GrpcCode::Unauthenticated, message)
    }

    /// Returns the headers of a response that has a status and no message.
    pub(super) fn head(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(3);
        headers.insert(CONTENT_TYPE, GRPC);
        self.add(&mut headers);
        headers
    }

    /// Returns the trailers of a response that has begun.
    pub(super) fn trailers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(2);
        self.add(&mut headers);
        headers
    }

    fn add(&self, headers: &mut HeaderMap) {
        headers.insert(STATUS, self.code.value());
        if let Ok(message) = HeaderValue::from_str(&escape(&self.message)) {
            headers.insert(MESSAGE, message);
        }
    }
}

/// Escapes a `grpc-message`: `%`, and every byte that is not visible ASCII.
fn escape(message: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'%';
    if message.bytes().all(is_plain) {
        return message.into();
    }
    let mut escaped = String::with_capacity(message.len().saturating_mul(2));
    for byte in message.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            write!(escaped, "%{byte:02X}").ok();
        }
    }
    escaped.into()
}

impl From<ProtobufError> for GrpcStatus {
    fn from(malformed: ProtobufError) -> Self {
        Self::new(GrpcCode::InvalidArgument, malformed.words())
    }
}

impl From<BodyError> for GrpcStatus {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => {
                Self::new(GrpcCode::ResourceExhausted, "the message is too large")
            }
            BodyError::TooSlow => Self::new(
                GrpcCode::DeadlineExceeded,
                "the message did not arrive in time",
            ),
            BodyError::Broken => {
                Self::new(GrpcCode::InvalidArgument, "the message ended too early")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_escaped_as_in_grpc() {
        let status = GrpcStatus::new(GrpcCode::NotFound, "100 % of `ü`\n");
        let head = status.head();
        assert_eq!(head["grpc-status"], "5");
        assert_eq!(head["grpc-message"], "100 %25 of `%C3%BC`%0A");
        assert_eq!(head["content-type"], "application/grpc");
    }

    #[test]
    fn status_codes_match_grpc() {
        for code in [
            GrpcCode::InvalidArgument,
            GrpcCode::DeadlineExceeded,
            GrpcCode::NotFound,
            GrpcCode::ResourceExhausted,
            GrpcCode::FailedPrecondition,
            GrpcCode::Unimplemented,
            GrpcCode::Unavailable,
            GrpcCode::Unauthenticated,
        ] {
            assert_eq!(code.value(), (code as u8).to_string().as_str());
        }
    }
}
