//! The gateway's own responses, sent if no upstream has one: problems of RFC 9457, with a correlation id
//! by which the request can be found in the log.

use super::body::GatewayBody;
use super::grpc;
use crate::respond::{self, FrontendResponse};
use crate::wire::problem::{self, ProblemDetails};
use futures_util::FutureExt;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tidegate_http::answer::Correlation;
use tidegate_http::grpc::{GrpcContentType, Status};
use tidegate_policy::Respond;
use tidegate_proxy::error::{UploadError, UpstreamError};

/// A response to the client.
pub(super) type GatewayResponse = Response<GatewayBody>;

/// The client that gets a problem response.
#[derive(Debug)]
pub(super) struct Addressee<'t> {
    respond: &'t Respond,
    /// The client's own correlation id, from the header configured for it.
    sent: Option<HeaderValue>,
    /// The gRPC content type of the client, if it speaks gRPC.
    flavour: Option<GrpcContentType>,
}

impl<'t> Addressee<'t> {
    /// Returns the client that sent this request. `respond` configures the responses.
    pub(super) fn of<B>(request: &Request<B>, respond: Option<&'t Respond>) -> Self {
        let headers = request.headers();
        let respond = respond.unwrap_or(Respond::standard());
        // Every request is searched for this header, and most lack it. Scanning the names is cheaper than
        // a lookup.
        let is_it = |name: &HeaderName| {
            let (name, wanted) = (name.as_str(), respond.correlation.as_str());
            name.len() == wanted.len() && name.eq_ignore_ascii_case(wanted)
        };
        let name = headers.keys().find(|name| is_it(name));
        let sent = name.and_then(|name| {
            let mut sent = headers.get_all(name).iter();
            // A duplicated header counts as missing.
            sent.next().filter(|_| sent.next().is_none()).cloned()
        });
        Self {
            respond,
            sent,
            flavour: grpc::flavour(request),
        }
    }

    /// Reports why no upstream answered.
    pub(super) fn trouble(&self, trouble: &UpstreamError) -> GatewayResponse {
        match trouble {
            UpstreamError::Unreachable(_) => self.problem(
                ProblemDetails::new(502, "Bad Gateway").detail("no upstream could be reached"),
            ),
            UpstreamError::ConnectTimeout => self.problem(
                ProblemDetails::new(504, "Gateway Timeout")
                    .detail("no upstream accepted the request in time"),
            ),
            UpstreamError::Full => {
                let detail =
                    "all connections to the upstream are in use, and none became free in time";
                let problem = ProblemDetails::new(503, "Service Unavailable").detail(detail);
                let mut answer = self.problem(problem);
                let headers = answer.headers_mut();
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                answer
            }
            UpstreamError::ResponseTimeout => self.problem(
                ProblemDetails::new(504, "Gateway Timeout").detail("the upstream timed out"),
            ),
            UpstreamError::Broken(_) => self.problem(
                ProblemDetails::new(502, "Bad Gateway")
                    .detail("the upstream closed the connection before it responded"),
            ),
            UpstreamError::Malformed(_) => self.problem(
                ProblemDetails::new(502, "Bad Gateway")
                    .detail("the upstream's response cannot be forwarded"),
            ),
            UpstreamError::Upload(error) => self.upload(*error),
        }
    }

    /// Reports an invalid request body. The rest of the body cannot be distinguished from the next
    /// request, so this is the connection's last response.
    pub(super) fn upload(&self, error: UploadError) -> GatewayResponse {
        respond::closing(self.problem(match error {
            UploadError::TooLarge => {
                ProblemDetails::new(413, "Content Too Large").detail("the body is too large")
            }
            UploadError::TooSlow => {
                ProblemDetails::new(408, "Request Timeout").detail("the body timed out")
            }
            UploadError::TooLittle => {
                ProblemDetails::new(408, "Request Timeout").detail("the body was sent too slowly")
            }
            UploadError::Broken => {
                ProblemDetails::new(400, "Bad Request").detail("the body ended too early")
            }
        }))
    }

    /// Reports that no route matches.
    pub(super) fn no_route(&self) -> GatewayResponse {
        let detail = "no route matches this host, path and method";
        self.problem(ProblemDetails::new(404, "Not Found").detail(detail))
    }

    /// Reports an ambiguous request. The connection closes: its sender may be attempting request
    /// smuggling.
    pub(super) fn doubtful(&self, why: &'static str) -> GatewayResponse {
        respond::closing(self.problem(ProblemDetails::new(400, "Bad Request").detail(why)))
    }

    /// Reports that an HTTP/2 stream asks to become a WebSocket where none is accepted.
    pub(super) fn no_websocket(&self) -> GatewayResponse {
        let detail = "WebSockets are not allowed here";
        self.problem(ProblemDetails::new(501, "Not Implemented").detail(detail))
    }

    /// Reports a method that gateways do not forward.
    pub(super) fn wrong_method(&self) -> GatewayResponse {
        let detail = "this method is not allowed";
        let mut answer =
            self.problem(ProblemDetails::new(405, "Method Not Allowed").detail(detail));
        let allowed = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        answer.headers_mut().insert(ALLOW, allowed);
        answer
    }

    fn problem(&self, problem: ProblemDetails) -> GatewayResponse {
        let correlation = self.correlation();
        let problem = problem.correlation(correlation.as_str());
        let status = StatusCode::from_u16(problem.status());
        let mut answer = Response::new(GatewayBody::own(problem.to_json()));
        *answer.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = answer.headers_mut();
        let kind = HeaderValue::from_static(problem::CONTENT_TYPE);
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let id = HeaderValue::from_str(correlation.as_str());
        if let (Some(name), Ok(id)) = (self.header(), id) {
            headers.insert(name, id);
        }
        if let Some(flavour) = self.flavour {
            let status = Status {
                code: grpc::code(problem.status()),
                message: problem.into_detail(),
                retry_after: None,
            };
            grpc::mark(&mut answer, flavour, status);
        }
        answer
    }

    /// Returns the correlation id, by which the request can be found in the log.
    fn correlation(&self) -> Correlation {
        let mut headers = HeaderMap::new();
        if let (Some(name), Some(sent)) = (self.header(), &self.sent) {
            headers.insert(name, sent.clone());
        }
        Correlation::of(&headers, self.respond)
    }

    fn header(&self) -> Option<HeaderName> {
        HeaderName::from_bytes(self.respond.correlation.as_bytes()).ok()
    }
}

/// Converts a response of another frontend.
pub(super) fn whole(answer: FrontendResponse) -> GatewayResponse {
    let (parts, body) = answer.into_parts();
    // The body is complete already, in one piece.
    let body = match body.collect().now_or_never() {
        Some(Ok(body)) => GatewayBody::Ours(Some(body.to_bytes()).filter(|it| !it.is_empty())),
        _ => GatewayBody::Ours(None),
    };
    Response::from_parts(parts, body)
}
