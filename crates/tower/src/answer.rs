//! What callers are told where the application is not asked.

use crate::RequestHead;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Response};
use tidegate::{Decision, Policy};
use tidegate_http::answer::{self, Correlation};
use tidegate_http::grpc::{GrpcContentType, Status};

/// A whole answer.
pub(crate) type LayerResponse = Response<Bytes>;

/// The answer to a request that is refused.
pub(crate) fn refused(decision: &Decision, head: RequestHead<'_>) -> LayerResponse {
    let correlation = Correlation::of(head.headers(), decision.respond());
    let http = answer::refuse(decision, &correlation);
    match GrpcContentType::of(head.headers()) {
        Some(flavour) => over_grpc(&Status::refused(decision), http, flavour),
        None => plain(http, head),
    }
}

/// The answer where nothing could be decided; `policy` was asked, if that much is known.
pub(crate) fn undecided(policy: Option<&Policy>, head: RequestHead<'_>) -> LayerResponse {
    let respond = policy.map(Policy::respond);
    let correlation = match respond {
        Some(respond) => Correlation::of(head.headers(), respond),
        None => Correlation::made(),
    };
    let http = answer::unavailable(respond, &correlation);
    match GrpcContentType::of(head.headers()) {
        Some(flavour) => over_grpc(&Status::undecided(), http, flavour),
        None => plain(http, head),
    }
}

fn over_grpc(status: &Status, http: Response<Vec<u8>>, flavour: GrpcContentType) -> LayerResponse {
    status.instead_of(http, flavour).map(|()| Bytes::new())
}

/// The answer as it goes out over plain HTTP. To `HEAD` it only says how long its body would be:
/// over HTTP/2 servers send what they are given, and clients take that for a broken connection.
fn plain(http: Response<Vec<u8>>, head: RequestHead<'_>) -> LayerResponse {
    if head.method() != Method::HEAD {
        return http.map(Bytes::from);
    }
    let length = HeaderValue::from(http.body().len());
    let mut answer = http.map(|_| Bytes::new());
    answer.headers_mut().insert(CONTENT_LENGTH, length);
    answer
}
