//! Whether a request may pass.

use super::answer::{Outcome, whole};
use super::lane::Lane;
use super::messages::Messages;
use super::table::Table;
use super::{GatewayDoor, grpc, respond};
use crate::decider::Logged;
use crate::telemetry::traces::Trace;
use http::request::Request;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Policy, Repeated, Rules, Store};
use tidegate_http::grpc::Status;
use tidegate_http::question::{Head, Question};
use tidegate_policy::Respond;
use tidegate_policy::client::Identity;
use tidegate_policy::route::Carried;

/// What becomes of a request.
pub(super) enum Verdict {
    /// It is passed on; `None` where its route is not limited.
    Pass(Option<Box<Decision>>),
    /// It is answered here.
    Answer(Box<Outcome>),
}

impl<S: Store + 'static> GatewayDoor<S> {
    /// Decides a request, if that can be done without waiting for anything and it has no messages to be
    /// decided later.
    pub(super) fn decide_at_once<B>(
        &self,
        (table, lane): (&Table, &Lane),
        from: (&Request<B>, IpAddr),
        trace: &Trace,
        becomes_websocket: bool,
    ) -> Option<Verdict> {
        // The client is identified once for the request and its messages.
        if lane.message_policy(becomes_websocket).is_some() {
            return None;
        }
        let Some(carried) = &lane.route.policy else {
            return Some(self.guard((table, lane), from, None));
        };
        // The client would have to be identified again.
        if !self
            .decider
            .decides_at_once(&table.rules, Some(&carried.name))
        {
            return None;
        }
        let question = lane.question(&table.rules, &carried.name, from, None);
        let pairs = question.pairs();
        let asked = question.request(&pairs);
        let leg = trace.leg();
        let outcome = self
            .decider
            .decide_at_once(&table.rules, &asked, Logged::WithAnswer)?;
        trace.decided(leg, outcome.as_ref());
        self.note_token(&question);
        let respond = lane.respond(table);
        Some(self.conclude(outcome, from.0, respond))
    }

    /// Decides a request, however long that takes. Where it begins a WebSocket whose messages are limited
    /// (`becomes_websocket`), prepares to decide those as well: the client is identified once for both.
    pub(super) async fn decide<B>(
        &self,
        (table, lane): (&Table, &Arc<Lane>),
        from: (&Request<B>, IpAddr),
        trace: &Trace,
        becomes_websocket: bool,
    ) -> (Verdict, Option<Box<Messages<S>>>) {
        let rules = &table.rules;
        let messages = lane.message_policy(becomes_websocket);
        let identity = messages.map(|_| head(from).identify(rules));
        let known = identity.as_ref();
        let verdict = match &lane.route.policy {
            None => self.guard((table, lane), from, known),
            Some(carried) => {
                let question = lane.question(rules, &carried.name, from, known);
                self.note_token(&question);
                let pairs = question.pairs();
                let asked = question.request(&pairs);
                let leg = trace.leg();
                let outcome = self
                    .decider
                    .decide_by(rules, &asked, Logged::WithAnswer)
                    .await;
                trace.decided(leg, outcome.as_ref());
                self.conclude(outcome, from.0, lane.respond(table))
            }
        };
        let messages = messages.map(|policy| {
            let question = lane.question(rules, &policy.name, from, known);
            let message = Repeated::new(rules, &question.request(&question.pairs()));
            Box::new(Messages::new(&self.decider, lane, message))
        });
        (verdict, messages)
    }

    /// Decides a request whose route is not limited: guards keep out whom they know all the same, and it
    /// counts for its address.
    fn guard<'a, B>(
        &self,
        (table, lane): (&'a Table, &'a Lane),
        from: (&'a Request<B>, IpAddr),
        known: Option<&Identity<'a>>,
    ) -> Verdict {
        let rules = &table.rules;
        let is_asked = !rules.guards().is_empty() || rules.counts_addresses();
        let Some(policy) = rules.policy(None).filter(|_| is_asked) else {
            return Verdict::Pass(None);
        };
        // Every policy reads what guards look at, and the address.
        let question = lane.question(rules, &policy.name, from, known);
        let pairs = question.pairs();
        let asked = question.request(&pairs);
        match self.decider.guard_by(rules, &asked) {
            Ok(decision) if !decision.is_allowed() => {
                Verdict::Answer(Box::new(self.refusal(&decision, from.0)))
            }
            _ => Verdict::Pass(None),
        }
    }

    fn note_token(&self, question: &Question<'_>) {
        if let Some(why) = question.token_refused() {
            self.decider.metrics().callers.count_token(why);
        }
    }

    fn refusal<B>(&self, decision: &Decision, request: &Request<B>) -> Outcome {
        let answer = respond::refused(decision, request.headers(), self.decider.refusals());
        whole(grpc::or_status(answer, request, || {
            Status::refused(decision)
        }))
    }

    fn conclude<B>(
        &self,
        outcome: Result<Decision, CheckError>,
        request: &Request<B>,
        respond: Option<&Respond>,
    ) -> Verdict {
        let answer = match outcome {
            Ok(decision) if decision.is_allowed() => {
                return Verdict::Pass(Some(Box::new(decision)));
            }
            Ok(decision) => self.refusal(&decision, request),
            Err(_) => {
                let answer = respond::unavailable(respond, request.headers());
                whole(grpc::or_status(answer, request, Status::undecided))
            }
        };
        Verdict::Answer(Box::new(answer))
    }
}

fn head<B>((request, peer): (&Request<B>, IpAddr)) -> Head<'_> {
    Head {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer: Some(peer),
    }
}

impl Lane {
    /// The policy of the messages of a request that becomes a WebSocket, if they have one.
    pub(super) fn message_policy(&self, becomes_websocket: bool) -> Option<&Carried> {
        let messages = self.route.messages.as_ref();
        messages.filter(|_| becomes_websocket)?.policy.as_ref()
    }

    /// What is asked of `policy` about a request that takes this route. `known` is its client, if that
    /// is identified already.
    fn question<'a, B>(
        &'a self,
        rules: &'a Rules,
        policy: &'a str,
        from: (&'a Request<B>, IpAddr),
        known: Option<&Identity<'a>>,
    ) -> Question<'a> {
        let head = head(from);
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
