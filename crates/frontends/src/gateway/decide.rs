//! Decides whether a request may pass.
//!
//! A route without a policy is still subject to guards and counts for its address. The rules are those
//! of the route's configuration version, so that a reload between finding the route and deciding
//! changes nothing.

use super::active_route::ActiveRoute;
use super::answer::{GatewayResponse, whole};
use super::messages::MessageLimiter;
use super::route_table::RouteTable;
use super::{GatewayFrontend, grpc, respond};
use crate::decider::{AskTerms, CheckAttempt, CheckOutcome, RefusalLogging};
use http::request::Request;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{AskPurpose, Decision, Policy, RepeatedRequest, Rules, Store};
use tidegate_http::grpc::Status;
use tidegate_http::question::{HttpQuestion, RequestHeadRef};
use tidegate_net::promise::{Promise, boxed};
use tidegate_policy::Respond;
use tidegate_policy::client::ClientIdentity;
use tidegate_policy::route::{RefundRule, RoutePolicy};
use tidegate_telemetry::traces::{RequestTrace, UNTRACED};

/// The decision about a request.
pub(super) enum GatewayVerdict {
    /// The request is forwarded; `None` if its route is not limited, or if nothing reads the decision.
    Pass(Option<Box<Decision>>),
    /// The gateway itself responds.
    Answer(Box<GatewayResponse>),
}

impl<S: Store + 'static> GatewayFrontend<S> {
    /// Decides a request. If it opens a WebSocket whose messages are limited (`becomes_websocket`),
    /// prepares to decide those as well: the client is identified once for both.
    pub(super) fn decide<'a, B: Sync>(
        &'a self,
        (table, lane): (&'a RouteTable, &'a Arc<ActiveRoute>),
        from: (&'a Request<B>, IpAddr),
        trace: &'a RequestTrace,
        becomes_websocket: bool,
    ) -> (Promise<'a, GatewayVerdict>, Option<Box<MessageLimiter<S>>>) {
        let rules = &table.rules;
        let messages = lane.message_policy(becomes_websocket);
        let identity = messages.map(|_| head(from).identify(rules));
        let known = identity.as_ref();
        let verdict = match &lane.route.policy {
            None => Promise::Now(self.guard((table, lane), from, known)),
            Some(carried) => {
                let mut question = check_of(rules, &carried.name, from, known);
                question.route(lane.route.name.as_str());
                let refused = question.token_refused();
                let terms = AskTerms::pass(trace, RefusalLogging::WithAnswer, refused);
                let pairs = question.pairs();
                let tell = move |outcome: CheckOutcome<'_>| {
                    self.conclude(outcome, from.0, (lane, lane.respond(table)))
                };
                let request = question.request(&pairs);
                self.decider.ask(rules, &request, terms, tell)
            }
        };
        let messages = messages.map(|policy| {
            let mut question = check_of(rules, &policy.name, from, known);
            question.route(lane.route.name.as_str());
            let message = RepeatedRequest::new(rules, &question.request(&question.pairs()));
            Box::new(MessageLimiter::new(&self.decider, lane, message))
        });
        (verdict, messages)
    }

    /// Decides a request whose route is not limited: guards still apply, and it counts for its address.
    fn guard<'a, B>(
        &self,
        (table, lane): (&'a RouteTable, &'a ActiveRoute),
        from: (&'a Request<B>, IpAddr),
        known: Option<&ClientIdentity<'a>>,
    ) -> GatewayVerdict {
        let rules = &table.rules;
        let is_asked = !rules.guards().is_empty() || rules.counts_addresses();
        let Some(policy) = rules.policy(None).filter(|_| is_asked) else {
            self.decider
                .count_token(known.and_then(|known| known.token_refused));
            return GatewayVerdict::Pass(None);
        };
        // Every policy reads the fields that guards use, and the address.
        let mut question = check_of(rules, &policy.name, from, known);
        question.route(lane.route.name.as_str());
        let pairs = question.pairs();
        let terms = AskTerms {
            purpose: AskPurpose::Guards,
            // Guards leave no span.
            ..AskTerms::pass(
                &UNTRACED,
                RefusalLogging::WithAnswer,
                question.token_refused(),
            )
        };
        let tell = |outcome: CheckOutcome<'_>| match outcome {
            Ok(decision) if !decision.is_allowed() => {
                GatewayVerdict::Answer(Box::new(self.refusal(decision, from.0)))
            }
            _ => GatewayVerdict::Pass(None),
        };
        match self
            .decider
            .attempt(rules, &question.request(&pairs), terms, tell)
        {
            CheckAttempt::Done(verdict) => verdict,
            // Guards never wait.
            CheckAttempt::Pending(..) => GatewayVerdict::Pass(None),
        }
    }

    fn refusal<B>(&self, decision: &Decision, request: &Request<B>) -> GatewayResponse {
        let answer = respond::refused(decision, request.headers(), self.decider.refusals());
        whole(grpc::or_status(answer, request, || {
            Status::refused(decision)
        }))
    }

    fn conclude<B>(
        &self,
        outcome: CheckOutcome<'_>,
        request: &Request<B>,
        (lane, respond): (&ActiveRoute, Option<&Respond>),
    ) -> GatewayVerdict {
        let answer = match outcome {
            Ok(decision) if decision.is_allowed() => {
                // Kept only if something reads it: the client, in headers, or the refund of its charge. Or if the
                // request holds permits until it ends.
                let is_read = !decision.respond().headers.is_empty()
                    || lane.route.refund != RefundRule::Never
                    || decision.permit().is_some();
                return GatewayVerdict::Pass(is_read.then(|| boxed(|| decision.clone())));
            }
            Ok(decision) => self.refusal(decision, request),
            Err(_) => {
                let answer = respond::unavailable(respond, request.headers());
                whole(grpc::or_status(answer, request, Status::undecided))
            }
        };
        GatewayVerdict::Answer(Box::new(answer))
    }
}

fn head<B>((request, peer): (&Request<B>, IpAddr)) -> RequestHeadRef<'_> {
    RequestHeadRef {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer: Some(peer),
    }
}

/// Returns the check of `policy` for a request. `known` is its client, if already identified. The caller adds
/// the route: a check is large, and would be moved otherwise.
fn check_of<'a, B>(
    rules: &'a Rules,
    policy: &'a str,
    from: (&'a Request<B>, IpAddr),
    known: Option<&ClientIdentity<'a>>,
) -> HttpQuestion<'a> {
    let head = head(from);
    match known {
        None => HttpQuestion::direct(rules, Some(policy), head),
        Some(identity) => HttpQuestion::identified(rules, Some(policy), head, identity.clone()),
    }
}

impl ActiveRoute {
    /// Returns the policy for the messages of a request that becomes a WebSocket, if they have one.
    pub(super) fn message_policy(&self, becomes_websocket: bool) -> Option<&RoutePolicy> {
        let messages = self.route.messages.as_ref();
        messages.filter(|_| becomes_websocket)?.policy.as_ref()
    }

    /// Returns the response settings for the clients of this route.
    pub(super) fn respond<'t>(&self, table: &'t RouteTable) -> Option<&'t Respond> {
        let name = self.route.policy.as_ref().map(|it| it.name.as_str());
        table.rules.policy(name).map(Policy::respond)
    }
}
