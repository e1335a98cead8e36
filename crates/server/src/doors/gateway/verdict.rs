//! Whether a request may pass.

use super::answer::{Outcome, whole};
use super::lane::Lane;
use super::messages::Messages;
use super::table::Table;
use super::{GatewayDoor, grpc, respond};
use crate::telemetry::traces::Trace;
use http::HeaderMap;
use http::request::Request;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Policy, Repeated, Rules, Store};
use tidegate_http::grpc::Status;
use tidegate_http::question::{Head, Question};
use tidegate_policy::Respond;
use tidegate_policy::client::Identity;

/// What becomes of a request.
pub(super) enum Verdict {
    /// It is passed on; `None` where its route is not limited.
    Pass(Option<Box<Decision>>),
    /// It is answered here.
    Answer(Box<Outcome>),
}

impl<S: Store + 'static> GatewayDoor<S> {
    /// Decides a request, if that can be done without waiting for anything.
    pub(super) fn decide_at_once<B>(
        &self,
        (table, lane): (&Table, &Lane),
        request: &Request<B>,
        peer: IpAddr,
        trace: &Trace,
    ) -> Option<Verdict> {
        let Some(carried) = &lane.route.policy else {
            return Some(self.guard((table, lane), request, peer, None));
        };
        // The client would have to be identified again.
        if !self
            .decider
            .decides_at_once(&table.rules, Some(&carried.name))
        {
            return None;
        }
        let question = lane.question(&table.rules, &carried.name, request, peer, None);
        let pairs = question.pairs();
        let asked = question.request(&pairs);
        let leg = trace.leg();
        let outcome = self.decider.decide_at_once(&table.rules, &asked)?;
        trace.decided(leg, outcome.as_ref());
        self.note_token(&question);
        let respond = lane.respond(table);
        Some(self.conclude(outcome, request.headers(), respond))
    }

    /// Decides a request, however long that takes. `known` is its client, if that is identified already.
    pub(super) async fn decide<'a, B>(
        &self,
        (table, lane): (&'a Table, &'a Lane),
        request: &'a Request<B>,
        peer: IpAddr,
        trace: &Trace,
        known: Option<&Identity<'a>>,
    ) -> Verdict {
        let Some(carried) = &lane.route.policy else {
            return self.guard((table, lane), request, peer, known);
        };
        let question = lane.question(&table.rules, &carried.name, request, peer, known);
        self.note_token(&question);
        let pairs = question.pairs();
        let asked = question.request(&pairs);
        let leg = trace.leg();
        let outcome = self.decider.decide_by(&table.rules, &asked).await;
        trace.decided(leg, outcome.as_ref());
        self.conclude(outcome, request.headers(), lane.respond(table))
    }

    /// Decides the request that a WebSocket begins with whose messages are limited by `policy`, and
    /// prepares to decide those. The client is identified once for all of it.
    pub(super) async fn decide_connection<B>(
        &self,
        (table, lane): (&Table, &Arc<Lane>),
        policy: &str,
        request: &Request<B>,
        peer: IpAddr,
        trace: &Trace,
    ) -> (Verdict, Messages<S>) {
        let identity = head(request, peer).identify(&table.rules);
        let known = Some(&identity);
        let verdict = self.decide((table, lane), request, peer, trace, known);
        let verdict = verdict.await;
        let question = lane.question(&table.rules, policy, request, peer, known);
        let message = Repeated::new(&table.rules, &question.request(&question.pairs()));
        (verdict, Messages::new(&self.decider, lane, message))
    }

    /// Decides a request whose route is not limited: guards keep out whom they know all the same, and it
    /// counts for its address.
    fn guard<'a, B>(
        &self,
        (table, lane): (&'a Table, &'a Lane),
        request: &'a Request<B>,
        peer: IpAddr,
        known: Option<&Identity<'a>>,
    ) -> Verdict {
        let rules = &table.rules;
        let is_asked = !rules.guards().is_empty() || rules.counts_addresses();
        let Some(policy) = rules.policy(None).filter(|_| is_asked) else {
            return Verdict::Pass(None);
        };
        // Every policy reads what guards look at, and the address.
        let question = lane.question(rules, &policy.name, request, peer, known);
        let pairs = question.pairs();
        let asked = question.request(&pairs);
        match self.decider.guard_by(rules, &asked) {
            Ok(decision) if !decision.is_allowed() => {
                let headers = request.headers();
                let answer = respond::refused(&decision, headers, self.decider.refusals());
                let answer = grpc::or_status(answer, headers, || Status::refused(&decision));
                Verdict::Answer(Box::new(whole(answer)))
            }
            _ => Verdict::Pass(None),
        }
    }

    fn note_token(&self, question: &Question<'_>) {
        if let Some(why) = question.token_refused() {
            self.decider.metrics().callers.count_token(why);
        }
    }

    fn conclude(
        &self,
        outcome: Result<Decision, CheckError>,
        headers: &HeaderMap,
        respond: Option<&Respond>,
    ) -> Verdict {
        let answer = match outcome {
            Ok(decision) if decision.is_allowed() => {
                return Verdict::Pass(Some(Box::new(decision)));
            }
            Ok(decision) => {
                let answer = respond::refused(&decision, headers, self.decider.refusals());
                grpc::or_status(answer, headers, || Status::refused(&decision))
            }
            Err(_) => {
                let answer = respond::unavailable(respond, headers);
                grpc::or_status(answer, headers, Status::undecided)
            }
        };
        Verdict::Answer(Box::new(whole(answer)))
    }
}

fn head<B>(request: &Request<B>, peer: IpAddr) -> Head<'_> {
    Head {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer: Some(peer),
    }
}

impl Lane {
    /// What is asked of `policy` about a request that takes this route. `known` is its client, if that
    /// is identified already.
    fn question<'a, B>(
        &'a self,
        rules: &'a Rules,
        policy: &'a str,
        request: &'a Request<B>,
        peer: IpAddr,
        known: Option<&Identity<'a>>,
    ) -> Question<'a> {
        let head = head(request, peer);
        let mut question = match known {
            None => Question::direct(rules, Some(policy), head),
            Some(identity) => Question::identified(rules, Some(policy), head, identity.clone()),
        };
        question.route(self.route.id.as_str());
        question
    }

    /// How the clients of this route are answered.
    pub(super) fn respond<'t>(&self, table: &'t Table) -> Option<&'t Respond> {
        let name = self.route.policy.as_ref().map(|it| it.name.as_str());
        table.rules.policy(name).map(Policy::respond)
    }
}
