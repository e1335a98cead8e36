//! `POST /json` and `GET /healthcheck`: Envoy's rate limit service over HTTP, compatible with its own
//! server.

use super::grpc::rls::{self, RlsError};
use super::respond::{self, FrontendResponse};
use crate::decider::{Decider, DeciderHealth};
use crate::wire::fault::WireFault;
use crate::wire::rls::json;
use crate::wire::rls::write::RlsCode;
use tidegate::{AskPurpose, Store};
use tidegate_net::phase::Phase;
use tidegate_net::promise::Promise;
use tidegate_telemetry::traces::RequestTrace;

pub(super) const JSON: &str = "/json";
pub(super) const HEALTH: &str = "/healthcheck";

/// Answers the JSON form of a `ShouldRateLimit` call.
pub(super) fn answer<'a, S: Store>(
    decider: &'a Decider<S>,
    text: &[u8],
    trace: &'a RequestTrace,
) -> Promise<'a, FrontendResponse> {
    let message = match json::to_request(text) {
        Ok(message) => message,
        Err(fault) => return Promise::Now(respond::bad_question(&fault)),
    };
    let answered = rls::answer((decider, trace), AskPurpose::Pass, &message, Vec::new());
    answered.map(|answered| match answered {
        Ok((code, response)) => {
            respond::rate_limited(json::of_response(&response), code == RlsCode::OverLimit)
        }
        Err(RlsError::Bad(why)) => respond::bad_question(&WireFault::new(0, why)),
        Err(RlsError::Undecided) => respond::cannot_decide(),
    })
}

/// Reports whether this server accepts calls: the same condition as `/readyz`, in a shorter response.
pub(super) async fn health<S: Store>(decider: &Decider<S>, phase: Phase) -> FrontendResponse {
    let is_well = phase == Phase::Serving && decider.status().await != DeciderHealth::Stuck;
    respond::well(is_well)
}
