//! What clients are told where no upstream has an answer for them: problems of RFC 9457, with the id by
//! which the request can be found again.

use super::body::GatewayBody;
use super::grpc;
use crate::doors::respond::{self, Answer};
use crate::proxy::trouble::{Trouble, UploadError};
use crate::wire::problem::{self, Problem};
use futures_util::FutureExt;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tidegate_http::answer::Correlation;
use tidegate_http::grpc::{Flavour, Status};
use tidegate_policy::Respond;

/// What goes back to the client.
pub(super) type Outcome = Response<GatewayBody>;

/// Whom a problem is told to.
#[derive(Debug)]
pub(super) struct Addressee<'t> {
    respond: &'t Respond,
    /// The header in which clients name their own id, as this one sent it.
    sent: Option<HeaderValue>,
    /// The kind of gRPC that the client speaks, if it does.
    flavour: Option<Flavour>,
}

impl<'t> Addressee<'t> {
    /// The client that sent this request, where answers are given as `respond` says.
    pub(super) fn of<B>(request: &Request<B>, respond: Option<&'t Respond>) -> Self {
        let headers = request.headers();
        let respond = respond.unwrap_or(Respond::standard());
        // It is looked for in every request, and most have none: to look through the names is cheaper.
        let is_it = |name: &HeaderName| {
            let (name, wanted) = (name.as_str(), respond.correlation.as_str());
            name.len() == wanted.len() && name.eq_ignore_ascii_case(wanted)
        };
        let name = headers.keys().find(|name| is_it(name));
        let sent = name.and_then(|name| {
            let mut sent = headers.get_all(name).iter();
            // What is said twice is not said at all.
            sent.next().filter(|_| sent.next().is_none()).cloned()
        });
        Self {
            respond,
            sent,
            flavour: grpc::flavour(request),
        }
    }

    /// Why no upstream answered.
    pub(super) fn trouble(&self, trouble: &Trouble) -> Outcome {
        match trouble {
            Trouble::Unreachable(_) => self
                .problem(Problem::new(502, "Bad Gateway").detail("no upstream could be reached")),
            Trouble::ConnectTimeout => self.problem(
                Problem::new(504, "Gateway Timeout").detail("no upstream took the request in time"),
            ),
            Trouble::Full => {
                let detail =
                    "all connections to the upstream are in use, and none became free in time";
                let problem = Problem::new(503, "Service Unavailable").detail(detail);
                let mut answer = self.problem(problem);
                let headers = answer.headers_mut();
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                answer
            }
            Trouble::ResponseTimeout => self.problem(
                Problem::new(504, "Gateway Timeout").detail("the upstream did not answer in time"),
            ),
            Trouble::Broken(_) => self.problem(
                Problem::new(502, "Bad Gateway")
                    .detail("the upstream broke off before it had answered"),
            ),
            Trouble::Malformed(_) => self.problem(
                Problem::new(502, "Bad Gateway")
                    .detail("the upstream's answer cannot be passed on"),
            ),
            Trouble::Upload(error) => self.upload(*error),
        }
    }

    /// What was wrong with the body of a request. What is left of it cannot be told from the next
    /// request, so this is the connection's last answer.
    pub(super) fn upload(&self, error: UploadError) -> Outcome {
        respond::closing(
            self.problem(match error {
                UploadError::TooLarge => Problem::new(413, "Content Too Large")
                    .detail("the body is larger than is taken here"),
                UploadError::TooSlow => {
                    Problem::new(408, "Request Timeout").detail("the body did not go on in time")
                }
                UploadError::TooLittle => Problem::new(408, "Request Timeout")
                    .detail("the body came more slowly than is accepted here"),
                UploadError::Broken => {
                    Problem::new(400, "Bad Request").detail("the body ended too early")
                }
            }),
        )
    }

    /// Nobody knows which upstream this is for.
    pub(super) fn no_route(&self) -> Outcome {
        let detail = "there is no route for this host, path and method";
        self.problem(Problem::new(404, "Not Found").detail(detail))
    }

    /// Nobody knows for sure whom or what this is for, nor what else its sender has in mind.
    pub(super) fn doubtful(&self, why: &'static str) -> Outcome {
        respond::closing(self.problem(Problem::new(400, "Bad Request").detail(why)))
    }

    /// A stream of HTTP/2 is to become a WebSocket where none is taken.
    pub(super) fn no_websocket(&self) -> Outcome {
        let detail = "no WebSocket is taken here";
        self.problem(Problem::new(501, "Not Implemented").detail(detail))
    }

    /// A method that is not for gateways.
    pub(super) fn wrong_method(&self) -> Outcome {
        let detail = "this method is not passed on";
        let mut answer = self.problem(Problem::new(405, "Method Not Allowed").detail(detail));
        let allowed = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        answer.headers_mut().insert(ALLOW, allowed);
        answer
    }

    fn problem(&self, problem: Problem) -> Outcome {
        let correlation = self.correlation();
        let problem = problem.correlation(correlation.as_str());
        let status = StatusCode::from_u16(problem.status());
        let mut answer = Response::new(GatewayBody::ours(problem.to_json()));
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

    /// The id by which the request can be found again.
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

/// An answer of another door's making.
pub(super) fn whole(answer: Answer) -> Outcome {
    let (parts, body) = answer.into_parts();
    // It is there already, in one piece.
    let body = match body.collect().now_or_never() {
        Some(Ok(body)) => GatewayBody::Ours(Some(body.to_bytes()).filter(|it| !it.is_empty())),
        _ => GatewayBody::Ours(None),
    };
    Response::from_parts(parts, body)
}
