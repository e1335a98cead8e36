//! Responses to requests that do not reach the application.

use crate::RequestHead;
pub(crate) use crate::custom::LayerResponse;
use crate::custom::ResponseHandlers;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Response};
use tidegate::{CheckError, Decision, Policy};
use tidegate_http::answer::{self, Correlation};
use tidegate_http::grpc::{GrpcContentType, Status};

/// Returns the response to a refused request.
pub(crate) fn refused(
    decision: &Decision,
    head: RequestHead<'_>,
    handlers: &ResponseHandlers,
) -> LayerResponse {
    let correlation = Correlation::of(head.headers(), decision.respond());
    let http = answer::refuse(decision, &correlation);
    match GrpcContentType::of(head.headers()) {
        Some(flavour) => over_grpc(&Status::refused(decision), http, flavour),
        None => plain(
            handlers.refused(http.map(Bytes::from), decision, head),
            head,
        ),
    }
}

/// Returns the response if the request could not be decided. `policy` is its policy, if known.
pub(crate) fn undecided(
    policy: Option<&Policy>,
    error: &CheckError,
    head: RequestHead<'_>,
    handlers: &ResponseHandlers,
) -> LayerResponse {
    let respond = policy.map(Policy::respond);
    let correlation = match respond {
        Some(respond) => Correlation::of(head.headers(), respond),
        None => Correlation::made(),
    };
    let http = answer::unavailable(respond, &correlation);
    match GrpcContentType::of(head.headers()) {
        Some(flavour) => over_grpc(&Status::undecided(), http, flavour),
        None => plain(handlers.undecided(http.map(Bytes::from), error, head), head),
    }
}

fn over_grpc(status: &Status, http: Response<Vec<u8>>, flavour: GrpcContentType) -> LayerResponse {
    status.instead_of(http, flavour).map(|()| Bytes::new())
}

/// Returns the response over plain HTTP. For `HEAD` it has no body, only its length: HTTP/2 servers would
/// send the body, which clients treat as a protocol error.
fn plain(http: LayerResponse, head: RequestHead<'_>) -> LayerResponse {
    if head.method() != Method::HEAD {
        return http;
    }
    let length = HeaderValue::from(http.body().len());
    let mut answer = http.map(|_| Bytes::new());
    answer.headers_mut().insert(CONTENT_LENGTH, length);
    answer
}
