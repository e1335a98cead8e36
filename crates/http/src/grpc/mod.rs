//! Answers to callers over gRPC: a status in the headers, and nothing else.
//!
//! ```
//! use http::{HeaderMap, HeaderValue};
//! use tidegate::{Limiter, Request};
//! use tidegate_http::answer::{self, Correlation};
//! use tidegate_http::grpc::{GrpcContentType, Status};
//!
//! let limiter = Limiter::from_yaml("
//! policies: [{ name: api, limits: [{ name: all, rate: 1/min }] }]
//! ")?;
//! limiter.check_now(&Request::new())?;
//! let refused = limiter.check_now(&Request::new())?;
//!
//! let mut headers = HeaderMap::new();
//! headers.insert("content-type", HeaderValue::from_static("application/grpc"));
//! let flavour = GrpcContentType::of(&headers).ok_or("not gRPC")?;
//! let id = Correlation::of(&headers, refused.respond());
//! let http = answer::refuse(&refused, &id);
//! let answer = Status::refused(&refused).instead_of(http, flavour);
//! assert_eq!(answer.status(), 200);
//! assert_eq!(answer.headers()["grpc-status"], "8");
//! assert_eq!(answer.headers()["retry-after"], "60");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encode;
mod status;

pub use status::{Code, Status};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

/// The kind of gRPC that a caller speaks, which is the content type of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcContentType(&'static str);

impl GrpcContentType {
    /// Returns the kind of gRPC that a request with these headers speaks; `None` if it speaks none.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let kind = headers.get(CONTENT_TYPE)?.as_bytes();
        let rest = strip(kind, b"application/grpc")?;
        // The longer name first. The rest of the name is the encoding of messages, and a refusal
        // has none.
        [
            (&b"-web-text"[..], "application/grpc-web-text"),
            (b"-web", "application/grpc-web"),
            (b"", "application/grpc"),
        ]
        .into_iter()
        .find(|(name, _)| strip(rest, name).is_some_and(is_end))
        .map(|(_, answered)| Self(answered))
    }

    /// Returns the content type of the answer, in the caller's protocol.
    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(self.0)
    }
}

/// Returns true if the protocol's name ends here: at the end, an encoding or a parameter.
fn is_end(rest: &[u8]) -> bool {
    matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// Returns the rest after `prefix`, compared without case.
fn strip<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_detected_by_its_content_type() {
        let flavour = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            GrpcContentType::of(&headers).map(|it| it.0)
        };
        for (kind, expected) in [
            ("application/grpc", Some("application/grpc")),
            ("application/grpc+proto", Some("application/grpc")),
            ("Application/gRPC; x=y", Some("application/grpc")),
            ("application/grpc-web", Some("application/grpc-web")),
            ("application/grpc-web+proto", Some("application/grpc-web")),
            (
                "application/grpc-web-text",
                Some("application/grpc-web-text"),
            ),
            ("application/grpcurl", None),
            ("application/grpc-webx", None),
            ("application/json", None),
            ("application/grp", None),
            ("", None),
        ] {
            assert_eq!(flavour(kind), expected, "{kind}");
        }
        assert_eq!(GrpcContentType::of(&HeaderMap::new()), None);
    }
}
