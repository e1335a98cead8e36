//! The methods that decide: Envoy's `ShouldRateLimit`, and Kuadrant's `CheckRateLimit`, `Report`,
//! `Reserve` and `Commit`.
//!
//! Kuadrant's methods split what Envoy's does in one call: the gateway checks before a request, and
//! afterwards reports the cost. Tokens of language models are counted like this. A reservation also holds
//! the estimated cost meanwhile, so other clients cannot consume it.

use super::body::GrpcBody;
use super::rls::{self, RlsError};
use super::status::{GrpcCode, GrpcStatus};
use super::{GrpcFrontend, frame, reserving};
use http::Request;
use hyper::body::Incoming;
use tidegate::{AskPurpose, Store};
use tidegate_telemetry::stopwatch::Stopwatch;
use tidegate_telemetry::traces::{AttributeValue, RequestTrace};

pub(super) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
pub(super) const CHECK_RATE_LIMIT: &str =
    "/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit";
pub(super) const REPORT: &str = "/kuadrant.service.ratelimit.v1.RateLimitService/Report";
pub(super) const RESERVE: &str = "/kuadrant.service.ratelimit.v1.RateLimitService/Reserve";
pub(super) const COMMIT: &str = "/kuadrant.service.ratelimit.v1.RateLimitService/Commit";

/// The names of the services that this server provides.
pub(super) const SERVICES: [&str; 2] = [
    "envoy.service.ratelimit.v3.RateLimitService",
    "kuadrant.service.ratelimit.v1.RateLimitService",
];

/// The capacity for a response; nearly every response fits.
const ANSWER_BYTES: usize = 120;
/// The capacity for a response with a reservation id.
const RESERVED_BYTES: usize = 512;

/// The methods for reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReservationCall {
    /// Creates a reservation.
    Reserve,
    /// Settles a reservation.
    Commit,
}

impl<S: Store + 'static> GrpcFrontend<S> {
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
        // Boxed, so that calls that only decide need not carry these futures.
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

    /// Starts the trace of a call. Metadata is headers, in which a proxy passes its trace context on.
    /// Every caller that may check here is trusted with that too.
    fn begin(&self, request: &Request<Incoming>) -> RequestTrace {
        let trace = self.decider.trace(request.headers(), || true);
        trace.name(|| request.uri().path().trim_start_matches('/').to_owned());
        trace.note(|| {
            [
                ("rpc.system", AttributeValue::Word("grpc")),
                ("tidegate.listener", AttributeValue::Word("grpc")),
            ]
        });
        trace
    }
}

/// Records the status of a call.
fn end(trace: &RequestTrace, answered: &Result<GrpcBody, GrpcStatus>) {
    let code = answered.as_ref().err().map(|status| status.code as u16);
    trace.called(code.unwrap_or_default());
}

impl From<RlsError> for GrpcStatus {
    fn from(unanswered: RlsError) -> Self {
        match unanswered {
            RlsError::Bad(why) => Self::new(GrpcCode::InvalidArgument, why),
            RlsError::Undecided => {
                Self::new(GrpcCode::Unavailable, "decision not possible at the moment")
            }
        }
    }
}
