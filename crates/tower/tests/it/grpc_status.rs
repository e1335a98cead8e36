//! gRPC statuses as read by another implementation.

use ::tonic::{Code as TonicCode, Status as TonicStatus};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use std::time::Duration;
use tidegate_http::grpc::{Code, GrpcContentType, Status};
use tonic_types::StatusExt as _;

fn told(told: &Status) -> (Response<()>, TonicStatus) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let flavour = GrpcContentType::of(&headers).expect("gRPC");
    let http = Response::builder()
        .status(429)
        .header("x-ratelimit-limit", "5");
    let answer = told.instead_of(http.body("a body").expect("an answer"), flavour);
    let status = TonicStatus::from_header_map(answer.headers()).expect("a status");
    (answer, status)
}

#[test]
fn another_implementation_decodes_the_status() {
    for (code, expected) in [
        (Code::ResourceExhausted, TonicCode::ResourceExhausted),
        (Code::Unavailable, TonicCode::Unavailable),
    ] {
        for micros in [0, 1, 999_999, 1_000_000, 300_000_250, 1 << 53] {
            let wait = Duration::from_micros(micros);
            let message = "100 % of it is gone.\nTry again in \u{2153} s.";
            let (answer, status) = told(&Status {
                code,
                message: message.into(),
                retry_after: Some(wait),
            });
            assert_eq!((status.code(), status.message()), (expected, message));
            let details = status.get_error_details();
            let info = details.retry_info().unwrap();
            assert_eq!(info.retry_delay, Some(wait));
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.headers()["content-type"], "application/grpc");
            assert_eq!(answer.headers()["x-ratelimit-limit"], "5");
        }
    }
}

#[test]
fn a_wait_beyond_the_protobuf_range_saturates() {
    let (_, status) = told(&Status {
        code: Code::ResourceExhausted,
        message: "".into(),
        retry_after: Some(Duration::from_micros(u64::MAX)),
    });
    let details = status.get_error_details();
    let told = details.retry_info().and_then(|info| info.retry_delay);
    assert_eq!(told.map(|wait| wait.as_secs()), Some(315_576_000_000));
}

#[test]
fn a_request_that_can_never_pass_has_no_retry_info() {
    let (_, status) = told(&Status {
        code: Code::ResourceExhausted,
        message: "never".into(),
        retry_after: None,
    });
    assert_eq!(status.code(), TonicCode::ResourceExhausted);
    assert!(status.get_error_details().retry_info().is_none());
    // The details repeat code and message, as `google.rpc.Status` has them.
    assert!(!status.details().is_empty());
}
