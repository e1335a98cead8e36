//! The gateway's own responses to gRPC clients.
//!
//! A response is built as for HTTP, counted by its HTTP status, and translated last. An upstream's
//! response is never translated.

use super::answer::GatewayResponse;
use super::body::GatewayBody;
use http::{Method, Request, Response};
use std::mem;
use tidegate_http::grpc::{Code, GrpcContentType, Status};

/// The gRPC status to send instead of the response's own.
#[derive(Clone, Debug)]
struct ReplacementStatus(GrpcContentType, Status);

/// Returns the gRPC content type of a request, if it is gRPC.
pub(super) fn flavour<B>(request: &Request<B>) -> Option<GrpcContentType> {
    // Every gRPC call is a POST, and most other requests have no content type.
    let is_call = *request.method() == Method::POST;
    is_call
        .then(|| GrpcContentType::of(request.headers()))
        .flatten()
}

/// Returns the response to `request`, with `status` if the request is a gRPC call.
pub(super) fn or_status<A, B>(
    mut answer: Response<A>,
    request: &Request<B>,
    status: impl FnOnce() -> Status,
) -> Response<A> {
    if let Some(flavour) = flavour(request) {
        mark(&mut answer, flavour, status());
    }
    answer
}

/// Marks a response to be sent as `status`.
pub(super) fn mark<B>(answer: &mut Response<B>, flavour: GrpcContentType, status: Status) {
    answer
        .extensions_mut()
        .insert(ReplacementStatus(flavour, status));
}

/// Translates a response that is marked with a status.
pub(super) fn translate(answer: &mut GatewayResponse) {
    if let Some(ReplacementStatus(flavour, status)) = answer.extensions_mut().remove() {
        let replaced = mem::replace(answer, Response::new(GatewayBody::Ours(None)));
        let change = status.instead_of(replaced, flavour);
        *answer = change.map(|()| GatewayBody::Ours(None));
    }
}

/// Returns the gRPC code for an HTTP status that the gateway sends.
pub(super) fn code(status: u16) -> Code {
    match status {
        400 => Code::InvalidArgument,
        404 | 405 => Code::Unimplemented,
        408 => Code::DeadlineExceeded,
        413 | 429 => Code::ResourceExhausted,
        _ => Code::Unavailable,
    }
}
