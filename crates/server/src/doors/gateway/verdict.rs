//! Whether a request may pass.

use super::answer::{Outcome, whole};
use super::lane::Lane;
use super::table::Table;
use super::{GatewayDoor, respond};
use http::HeaderMap;
use http::request::Request;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Policy, Store};
use tidegate_http::question::{Head, Question};
use tidegate_policy::Respond;

/// What becomes of a request.
pub(super) enum Verdict {
    /// It is passed on; `None` where its route is not limited.
    Pass(Option<Decision>),
    /// It is answered here.
    Answer(Box<Outcome>),
}

impl<S: Store + 'static> GatewayDoor<S> {
    /// Decides a request, whether it has to wait for that or not.
    pub(super) async fn decide<B>(
        &self,
        table: &Arc<Table>,
        lane: &Lane,
        request: &Request<B>,
        peer: IpAddr,
    ) -> Verdict {
        let Some(carried) = &lane.route.policy else {
            return Verdict::Pass(None);
        };
        let head = Head {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            peer: Some(peer),
        };
        let rules = &table.rules;
        let mut question = Question::direct(rules, Some(&carried.name), head);
        question.route(lane.route.id.as_str());
        if let Some(why) = question.token_refused() {
            self.decider.metrics().callers.count_token(why);
        }
        let pairs = question.pairs();
        let request = question.request(&pairs);
        let outcome = match self.decider.decide_at_once(rules, &request) {
            Some(outcome) => outcome,
            None => Box::pin(self.decider.decide_by(rules, &request)).await,
        };
        conclude(outcome, head.headers, lane.respond(table))
    }
}

fn conclude(
    outcome: Result<Decision, CheckError>,
    headers: &HeaderMap,
    respond: Option<&Respond>,
) -> Verdict {
    let answer = match outcome {
        Ok(decision) if decision.is_allowed() => return Verdict::Pass(Some(decision)),
        Ok(decision) => respond::refused(&decision, headers),
        Err(_) => respond::unavailable(respond, headers),
    };
    Verdict::Answer(Box::new(whole(answer)))
}

impl Lane {
    /// How the clients of this route are answered.
    pub(super) fn respond<'t>(&self, table: &'t Table) -> Option<&'t Respond> {
        let name = self.route.policy.as_ref().map(|it| it.name.as_str());
        table.rules.policy(name).map(Policy::respond)
    }
}
