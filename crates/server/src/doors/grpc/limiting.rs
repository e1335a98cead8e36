//! The methods that decide: Envoy's `ShouldRateLimit`, and Kuadrant's `CheckRateLimit`, `Report`,
//! `Reserve` and `Commit`.
//!
//! Kuadrant's take apart what Envoy's does at once: the gateway asks before a request and tells
//! afterwards what it took, which is how the tokens of a language model are counted. With a reservation
//! nobody else is let in meanwhile on what it will have taken.

use super::body::GrpcBody;
use super::rls::{self, RlsError};
use super::status::{GrpcCode, GrpcStatus};
use super::{GrpcDoor, frame, reserving};
use crate::telemetry::stopwatch::Stopwatch;
use crate::telemetry::traces::{AttributeValue, RequestTrace};
use http::Request;
use hyper::body::Incoming;
use tidegate::{AskPurpose, Store};

pub(super) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
pub(super) const CHECK_RATE_LIMIT: &str =
    "/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit";
pub(super) const REPORT: &str = "/kuadrant.service.ratelimit.v1.RateLimitService/Report";
pub(super) const RESERVE: &str = "/kuadrant.service.ratelimit.v1.RateLimitService/Reserve";
pub(super) const COMMIT: &str = "/kuadrant.service.ratelimit.v1.RateLimitService/Commit";

/// The services that this server is for, by their names.
pub(super) const SERVICES: [&str; 2] = [
    "envoy.service.ratelimit.v3.RateLimitService",
    "kuadrant.service.ratelimit.v1.RateLimitService",
];

/// What an answer takes, nearly always.
const ANSWER_BYTES: usize = 120;
/// The same with the id of a reservation.
const RESERVED_BYTES: usize = 512;

/// What is asked of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReservationCall {
    /// That there be one.
    Reserve,
    /// That it be settled.
    Commit,
}

impl<S: Store + 'static> GrpcDoor<S> {
    pub(super) async fn limit(
        &self,
        purpose: AskPurpose,
        request: Request<Incoming>,
    ) -> Result<GrpcBody, GrpcStatus> {
        let trace = self.begin(&request);
        let answered = self.limit_in(&trace, purpose, request).await;
        end(&trace, &answered);
        answered
    }

    async fn limit_in(
        &self,
        trace: &RequestTrace,
        purpose: AskPurpose,
        request: Request<Incoming>,
    ) -> Result<GrpcBody, GrpcStatus> {
        let watch = Stopwatch::start();
        let body = self.message(request.into_body()).await?;
        let message = frame::only(&body)?;
        let decider = &self.decider;
        let out = frame::begin(ANSWER_BYTES);
        let answered = rls::answer((decider, trace), purpose, message, out);
        let answered = answered.value().await;
        decider.metrics().grpc.durations.observe(watch.elapsed());
        let (_, answer) = answered?;
        Ok(GrpcBody::Message(frame::finish(answer)))
    }

    pub(super) async fn lend(
        &self,
        lending: ReservationCall,
        request: Request<Incoming>,
    ) -> Result<GrpcBody, GrpcStatus> {
        let trace = self.begin(&request);
        let answered = self.lend_in(&trace, lending, request).await;
        end(&trace, &answered);
        answered
    }

    async fn lend_in(
        &self,
        trace: &RequestTrace,
        lending: ReservationCall,
        request: Request<Incoming>,
    ) -> Result<GrpcBody, GrpcStatus> {
        let watch = Stopwatch::start();
        let body = self.message(request.into_body()).await?;
        let message = frame::only(&body)?;
        let decider = &self.decider;
        // Put aside, so that calls that decide need not carry them around.
        let answered = match lending {
            ReservationCall::Reserve => {
                let out = frame::begin(RESERVED_BYTES);
                Box::pin(reserving::reserve((decider, trace), message, out)).await
            }
            ReservationCall::Commit => {
                let out = frame::begin(ANSWER_BYTES);
                Box::pin(reserving::commit(decider, message, out)).await
            }
        };
        decider.metrics().grpc.durations.observe(watch.elapsed());
        Ok(GrpcBody::Message(frame::finish(answered?)))
    }

    /// What is recorded of a call. Metadata is headers, and a proxy passes its trace on in them. Whoever
    /// may ask here is believed in everything else, too.
    fn begin(&self, request: &Request<Incoming>) -> RequestTrace {
        let trace = self.decider.trace(request.headers(), || true);
        trace.name(|| request.uri().path().trim_start_matches('/').to_owned());
        trace.note(|| {
            [
                ("rpc.system", AttributeValue::Word("grpc")),
                ("tidegate.door", AttributeValue::Word("grpc")),
            ]
        });
        trace
    }
}

/// Notes how a call ended.
fn end(trace: &RequestTrace, answered: &Result<GrpcBody, GrpcStatus>) {
    let code = answered.as_ref().err().map(|status| status.code as u16);
    trace.called(code.unwrap_or_default());
}

impl From<RlsError> for GrpcStatus {
    fn from(unanswered: RlsError) -> Self {
        match unanswered {
            RlsError::Bad(why) => Self::new(GrpcCode::InvalidArgument, why),
            RlsError::Undecided => Self::new(
                GrpcCode::Unavailable,
                "this cannot be decided at the moment",
            ),
        }
    }
}
