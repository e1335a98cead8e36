//! Answers of the gateway's own to callers over gRPC.
//!
//! An answer is made as for HTTP, counted by that status, and translated last. An upstream's answer is
//! never translated.

use super::answer::GatewayResponse;
use super::body::GatewayBody;
use http::{Method, Request, Response};
use tidegate_http::grpc::{Code, GrpcContentType, Status};

/// What a caller over gRPC is told instead of an answer.
#[derive(Clone, Debug)]
struct Instead(GrpcContentType, Status);

/// The kind of gRPC that a request speaks, if it does.
pub(super) fn flavour<B>(request: &Request<B>) -> Option<GrpcContentType> {
    // Every call is a POST, and most other requests have no content type.
    let is_call = *request.method() == Method::POST;
    is_call
        .then(|| GrpcContentType::of(request.headers()))
        .flatten()
}

/// Returns the answer to `request`, with `status` if the request is a gRPC call.
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

/// Has an answer say `status`.
pub(super) fn mark<B>(answer: &mut Response<B>, flavour: GrpcContentType, status: Status) {
    answer.extensions_mut().insert(Instead(flavour, status));
}

/// Translates an answer that is to say a status.
pub(super) fn translate(mut answer: GatewayResponse) -> GatewayResponse {
    let Some(Instead(flavour, status)) = answer.extensions_mut().remove() else {
        return answer;
    };
    let told = status.instead_of(answer, flavour);
    told.map(|()| GatewayBody::Ours(None))
}

/// The code of gRPC for a status of HTTP that the gateway answers with.
pub(super) fn code(status: u16) -> Code {
    match status {
        400 => Code::InvalidArgument,
        404 | 405 => Code::Unimplemented,
        408 => Code::DeadlineExceeded,
        413 | 429 => Code::ResourceExhausted,
        _ => Code::Unavailable,
    }
}
