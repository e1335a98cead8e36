//! `POST /json` and `GET /healthcheck`: Envoy's rate limit service as its own server has it over HTTP.

use super::grpc::rls::{self, Purpose, Unanswered};
use super::promptly::promptly;
use super::respond::{self, Answer};
use crate::decider::{Decider, Standing};
use crate::server::phase::Phase;
use crate::telemetry::traces::Trace;
use crate::wire::fault::Fault;
use crate::wire::rls::json;
use crate::wire::rls::write::Code;
use tidegate::Store;

pub(super) const JSON: &str = "/json";
pub(super) const HEALTH: &str = "/healthcheck";

/// Answers what would be a call of `ShouldRateLimit`.
pub(super) async fn answer<S: Store>(decider: &Decider<S>, text: &[u8], trace: &Trace) -> Answer {
    let message = match json::to_request(text) {
        Ok(message) => message,
        Err(fault) => return respond::bad_question(&fault),
    };
    let ask = || rls::answer((decider, trace), Purpose::Decide, &message, Vec::new());
    match promptly(decider.may_wait(), ask).await {
        Ok((code, response)) => {
            respond::rate_limited(json::of_response(&response), code == Code::OverLimit)
        }
        Err(Unanswered::Bad(why)) => respond::bad_question(&Fault::new(0, why)),
        Err(Unanswered::Undecided) => respond::cannot_decide(),
    }
}

/// Whether this server wants calls: the same as `/readyz`, in fewer words.
pub(super) async fn health<S: Store>(decider: &Decider<S>, phase: Phase) -> Answer {
    let is_well = phase == Phase::Serving && decider.standing().await != Standing::Stuck;
    respond::well(is_well)
}
