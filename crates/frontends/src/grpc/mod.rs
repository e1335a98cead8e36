//! The gRPC frontend: Envoy's rate limit service, and the standard services of a gRPC server.
//!
//! | module | what it is |
//! |---|---|
//! | this one | dispatch of a path to a method |
//! | `limiting` | the methods that decide: Envoy's, and Kuadrant's |
//! | `rls`, `response` | from a rate limit request to a decision, and from a decision to a response |
//! | `reserving` | the same for Kuadrant's reservations |
//! | `health` | `grpc.health.v1`: whether this server accepts calls |
//! | `reflection` | the list of services, for tools |
//! | `frame`, `body`, `status` | gRPC's messages, responses and statuses |

mod body;
mod frame;
mod health;
mod limiting;
mod reflection;
mod reserving;
mod response;
pub mod rls;
mod status;

use self::body::GrpcBody;
use self::limiting::ReservationCall;
use self::status::{GRPC, GrpcCode, GrpcStatus, STATUS};
use crate::decider::Decider;
use crate::wire::fault::quote;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tidegate::{AnyStore, AskPurpose, Store};
use tidegate_net::bounds::Bounds;
use tidegate_net::frontend::{Frontend, Http2Settings, Protocols};
use tidegate_net::phase::PhaseWatch;
use tidegate_net::session::RequestContext;

const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The gRPC frontend.
#[derive(Debug)]
pub struct GrpcFrontend<S = AnyStore> {
    decider: Decider<S>,
    bounds: Bounds,
    phase: PhaseWatch,
}

impl<S: Store + 'static> GrpcFrontend<S> {
    /// Creates the frontend.
    pub fn new(decider: Decider<S>, bounds: Bounds, phase: PhaseWatch) -> Self {
        Self {
            decider,
            bounds,
            phase,
        }
    }

    async fn call(
        &self,
        request: Request<Incoming>,
        visit: RequestContext<'_>,
    ) -> Result<GrpcBody, GrpcStatus> {
        match request.uri().path() {
            limiting::SHOULD_RATE_LIMIT => self.limit(AskPurpose::Pass, request).await,
            limiting::CHECK_RATE_LIMIT => self.limit(AskPurpose::Test, request).await,
            limiting::REPORT => self.limit(AskPurpose::Report, request).await,
            limiting::RESERVE => self.lend(ReservationCall::Reserve, request).await,
            limiting::COMMIT => self.lend(ReservationCall::Commit, request).await,
            health::CHECK => self.check_health(request.into_body()).await,
            health::WATCH => self.watch_health(request.into_body(), visit).await,
            reflection::V1 | reflection::V1_ALPHA => Ok(GrpcBody::stream(
                reflection::ReflectionStream::new(request.into_body()),
                visit.alive(),
            )),
            path => Err(GrpcStatus::new(
                GrpcCode::Unimplemented,
                format!("unknown method {}", quote(path)),
            )),
        }
    }

    /// Reads the only message of a call.
    async fn message(&self, body: Incoming) -> Result<Bytes, GrpcStatus> {
        let bounds = &self.bounds;
        let bytes_max = bounds.body_bytes.saturating_add(frame::PREFIX);
        let body = super::body::read(body, bytes_max, bounds.body_time).await?;
        Ok(body)
    }
}

impl<S: Store + 'static> Frontend for GrpcFrontend<S> {
    type Body = GrpcBody;
    type Memory = ();
    type PendingState = ();

    const PROTOCOLS: Protocols = Protocols::Http2;
    const HTTP2: Http2Settings = Http2Settings::OF_PROXIES;

    async fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_>,
        (): (),
    ) -> Response<GrpcBody> {
        if !is_grpc(request.headers()) {
            return with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        if *request.method() != Method::POST {
            return with_status(StatusCode::METHOD_NOT_ALLOWED);
        }
        match self.call(*request, visit).await {
            Ok(body) => {
                let mut answer = Response::new(body);
                answer.headers_mut().insert(CONTENT_TYPE, GRPC);
                answer
            }
            Err(status) => ended(&status),
        }
    }

    fn unauthorized() -> Response<GrpcBody> {
        ended(&GrpcStatus::unauthenticated())
    }

    /// Health is for probes and load balancers, which seldom can hold a secret.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        matches!(request.uri().path(), health::CHECK | health::WATCH)
    }

    /// Returns the gRPC code, if there is one. A call that cannot be decided is not the caller's mistake.
    fn problem(answer: &Response<GrpcBody>) -> Option<u16> {
        if answer.status().is_client_error() {
            return Some(answer.status().as_u16());
        }
        let code = answer.headers().get(STATUS)?.to_str().ok()?.parse().ok()?;
        (code != GrpcCode::Unavailable as u16).then_some(code)
    }
}

/// Returns true if a request is gRPC with protobuf messages.
fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return false;
    };
    let kind = kind.as_bytes();
    if kind == GRPC.as_bytes() {
        return true;
    }
    let rest = kind.strip_prefix(GRPC.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"+proto") || rest.starts_with(b";"))
}

/// Returns a response that has a status and no message.
fn ended(status: &GrpcStatus) -> Response<GrpcBody> {
    let mut answer = Response::new(GrpcBody::Empty);
    *answer.headers_mut() = status.head();
    if status.code == GrpcCode::Unimplemented {
        // The message may have been compressed.
        let identity = HeaderValue::from_static("identity");
        answer.headers_mut().insert(ACCEPT_ENCODING, identity);
    }
    answer
}

/// Returns the response to a request that is not gRPC.
fn with_status(status: StatusCode) -> Response<GrpcBody> {
    let mut answer = Response::new(GrpcBody::Empty);
    *answer.status_mut() = status;
    answer
}
