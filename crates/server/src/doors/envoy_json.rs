//! `POST /json` and `GET /healthcheck`: Envoy's rate limit service as its own server has it over HTTP.

use super::grpc::rls::{self, Unanswered};
use super::respond::{self, Answer};
use crate::decider::{Decider, Standing};
use crate::promise::Promise;
use crate::server::phase::Phase;
use crate::telemetry::traces::Trace;
use crate::wire::fault::Fault;
use crate::wire::rls::json;
use crate::wire::rls::write::Code;
use tidegate::{Purpose, Store};

pub(super) const JSON: &str = "/json";
pub(super) const HEALTH: &str = "/healthcheck";

/// Answers what would be a call of `ShouldRateLimit`.
pub(super) fn answer<'a, S: Store>(
    decider: &'a Decider<S>,
    text: &[u8],
    trace: &'a Trace,
) -> Promise<'a, Answer> {
    let message = match json::to_request(text) {
        Ok(message) => message,
        Err(fault) => return Promise::Now(respond::bad_question(&fault)),
    };
    let answered = rls::answer((decider, trace), Purpose::Pass, &message, Vec::new());
    answered.map(|answered| match answered {
        Ok((code, response)) => {
            respond::rate_limited(json::of_response(&response), code == Code::OverLimit)
        }
        Err(Unanswered::Bad(why)) => respond::bad_question(&Fault::new(0, why)),
        Err(Unanswered::Undecided) => respond::cannot_decide(),
    })
}

/// Whether this server wants calls: the same as `/readyz`, in fewer words.
pub(super) async fn health<S: Store>(decider: &Decider<S>, phase: Phase) -> Answer {
    let is_well = phase == Phase::Serving && decider.standing().await != Standing::Stuck;
    respond::well(is_well)
}
