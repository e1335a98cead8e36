//! `POST /v1/acquire` for requests in flight; `/v1/renew` and `/v1/release` prolong and end them.

use super::{DECISION_BYTES, HttpFrontend};
use crate::respond::{self, FrontendResponse};
use crate::wire::permit::{self, PermitRequest, PermitVerb};
use crate::wire::question::JsonQuestion;
use std::time::Duration;
use tidegate::Store;
use tidegate_http::unix_seconds;
use tidegate_telemetry::traces::RequestTrace;

impl<S: Store> HttpFrontend<S> {
    /// Decides a request that is in flight until its permits are released, or end.
    pub(super) async fn acquire(&self, text: &[u8], trace: &RequestTrace) -> FrontendResponse {
        let question = match JsonQuestion::read_reserving(text) {
            Ok(question) => question,
            Err(fault) => return respond::bad_question(&fault),
        };
        let rules = match self.decider.rules() {
            Ok(rules) => rules,
            Err(error) => return respond::undecided(&error, None),
        };
        let learnt = question.learn(rules.client(), &unix_seconds);
        let pairs = question.pairs_with(learnt.as_ref());
        let described = question.descriptors(&pairs);
        let request = question.request(&pairs).descriptors(&described);
        let ttl = question.ttl_ms.map(Duration::from_millis);
        let refused = learnt.as_ref().and_then(|learnt| learnt.token_refused);
        let acquired = self
            .decider
            .acquire(&rules, (&request, ttl), trace, refused);
        match acquired.await {
            Ok(acquired) => {
                let mut json = Vec::with_capacity(DECISION_BYTES.saturating_mul(2));
                permit::write_acquired(&acquired, &mut json);
                respond::decided(json)
            }
            Err(error) => respond::undecided(&error, None),
        }
    }

    /// Renews or releases permits.
    pub(super) async fn settle_permits(&self, text: &[u8], verb: PermitVerb) -> FrontendResponse {
        let request = match PermitRequest::read(text, verb) {
            Ok(request) => request,
            Err(fault) => return respond::bad_question(&fault),
        };
        let done = match verb {
            PermitVerb::Renew => self.decider.renew(&request.id, request.ttl).await,
            PermitVerb::Release => self.decider.release(&request.id).await,
        };
        match done {
            Ok(is_done) => {
                let mut json = Vec::new();
                permit::write_result(verb, is_done, &mut json);
                respond::decided(json)
            }
            Err(_) => respond::no_permits(),
        }
    }
}
