//! Forward-auth, `/v1/auth` and `/v1/auth/POLICY`: a proxy asks whether a request may pass, and relays a
//! refusal to the client.
//!
//! Every response from here may reach a client, so none contains internals.

use super::respond::{self, FrontendResponse};
use super::{body, refuse};
use crate::decider::{AskTerms, CheckAttempt, CheckOutcome, Decider, PendingCheck, RefusalLogging};
use http::Request;
use hyper::body::{Body, Incoming};
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, DecidedBy, PermitTerm, Policy, Rules, Store};
use tidegate_http::question::{ForwardedRequest, HttpQuestion, RequestHeadRef};
use tidegate_net::bounds::Bounds;
use tidegate_telemetry::stopwatch::Stopwatch;
use tidegate_telemetry::traces::{AttributeValue, RequestTrace};

/// Returns true if forward-auth handles this path.
pub(super) fn is_at(path: &str) -> bool {
    path == "/v1/auth" || named(path).is_some()
}

/// Returns the name of the policy to check, if the path has one.
fn policy(head: RequestHeadRef<'_>) -> Option<&str> {
    named(head.uri.path())
}

/// Returns the policy that a path names. Names need no escapes, so none are decoded.
fn named(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/auth/")
}

/// A check that is not decided yet: it waits for the store or for a limit.
#[derive(Debug)]
pub struct PendingAuth<S> {
    rules: Arc<Rules>,
    check: PendingCheck<S>,
    trace: RequestTrace,
    watch: Stopwatch,
}

/// Answers a check from `peer`, if it has no body. Otherwise, and if it has to wait, returns its state so
/// far.
pub(super) fn answer_at_once<S: Store>(
    decider: &Decider<S>,
    request: &Request<Incoming>,
    peer: IpAddr,
) -> Result<FrontendResponse, Option<Box<PendingAuth<S>>>> {
    if !request.body().is_end_stream() {
        return Err(None);
    }
    let head = RequestHeadRef {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer: Some(peer),
    };
    match authorize(decider, head) {
        Ok(rules) => ask(decider, rules, head).map_err(Some),
        Err(answer) => Ok(*answer),
    }
}

/// Answers a check from `peer`. `begun` is its state so far, if it has no body.
///
/// The body is ignored, but some proxies send one. It is read so that the connection can serve the next
/// check.
pub(super) async fn answer<S: Store>(
    decider: &Decider<S>,
    bounds: &Bounds,
    request: Request<Incoming>,
    (peer, begun): (IpAddr, Option<Box<PendingAuth<S>>>),
) -> FrontendResponse {
    let (parts, body) = request.into_parts();
    let head = RequestHeadRef {
        method: &parts.method,
        uri: &parts.uri,
        headers: &parts.headers,
        peer: Some(peer),
    };
    if let Some(pending) = begun {
        return pending.answer(decider, head).await;
    }
    let rules = match authorize(decider, head) {
        Ok(rules) => rules,
        Err(answer) => return *answer,
    };
    let read = body::read(body, bounds.body_bytes, bounds.body_time).await;
    if read.is_err() {
        // Lets hyper notice that the rest of the body is not read.
        tokio::task::yield_now().await;
    }
    let answer = match ask(decider, rules, head) {
        Ok(answer) => answer,
        Err(pending) => pending.answer(decider, head).await,
    };
    match read {
        Ok(_) => answer,
        Err(_) => respond::closing(answer),
    }
}

/// Returns the rules to decide by if the caller is trusted, and the error response otherwise. Nothing
/// else of an untrusted caller's request is read.
fn authorize<S: Store>(
    decider: &Decider<S>,
    head: RequestHeadRef<'_>,
) -> Result<Arc<Rules>, Box<FrontendResponse>> {
    let Ok(rules) = decider.rules() else {
        let answer = respond::unavailable(None, head.headers);
        return Err(Box::new(respond::closing(answer)));
    };
    let is_trusted = |peer: IpAddr| rules.client().trusts(peer);
    if head.peer.is_some_and(is_trusted) {
        return Ok(rules);
    }
    decider.metrics().callers.count_untrusted(head.peer);
    Err(Box::new(respond::closing(respond::untrusted())))
}

/// Identifies the client and starts the check.
fn ask<S: Store>(
    decider: &Decider<S>,
    rules: Arc<Rules>,
    head: RequestHeadRef<'_>,
) -> Result<FrontendResponse, Box<PendingAuth<S>>> {
    let watch = Stopwatch::start();
    let trace = begin(decider, head);
    let question = match HttpQuestion::forwarded(&rules, policy(head), head) {
        Ok(question) => question,
        Err(error) => {
            let answer = respond::bad_forward(error);
            return Ok(end(decider, &trace, watch, answer));
        }
    };
    let refused = question.token_refused();
    let terms = AskTerms::pass(&trace, RefusalLogging::WithAnswer, refused);
    let pairs = question.pairs();
    let tell = |outcome: CheckOutcome<'_>| conclude(decider, &rules, head, outcome);
    // A proxy does not say when the request ends.
    let request = question.request(&pairs).permit(&PermitTerm::HOLD);
    let check = match decider.attempt(&rules, &request, terms, tell) {
        CheckAttempt::Done(answer) => return Ok(end(decider, &trace, watch, answer)),
        CheckAttempt::Pending(check, _) => check,
    };
    drop(pairs);
    drop(question);
    Err(Box::new(PendingAuth {
        rules,
        check,
        trace,
        watch,
    }))
}

impl<S: Store> PendingAuth<S> {
    async fn answer(
        self: Box<Self>,
        decider: &Decider<S>,
        head: RequestHeadRef<'_>,
    ) -> FrontendResponse {
        let Self {
            rules,
            check,
            trace,
            watch,
        } = *self;
        let outcome = check.outcome(decider, &trace).await;
        let answer = conclude(decider, &rules, head, outcome.as_ref());
        end(decider, &trace, watch, answer)
    }
}

/// Records the result and the duration of a check.
fn end<S: Store>(
    decider: &Decider<S>,
    trace: &RequestTrace,
    watch: Stopwatch,
    answer: FrontendResponse,
) -> FrontendResponse {
    trace.answered(answer.status().as_u16());
    decider.metrics().durations.observe(watch.elapsed());
    answer
}

/// Starts the trace of a check. The trace context may be the client's: every caller that gets here is a
/// trusted proxy, which passes the client's context on unless it has its own.
fn begin<S: Store>(decider: &Decider<S>, head: RequestHeadRef<'_>) -> RequestTrace {
    let trace = decider.trace(head.headers, || true);
    trace.name(|| "/v1/auth".to_owned());
    trace.note(|| [("tidegate.listener", AttributeValue::Word("http"))]);
    trace
}

/// Returns the response for a proxy, and perhaps for its client.
fn conclude<S: Store>(
    decider: &Decider<S>,
    rules: &Rules,
    head: RequestHeadRef<'_>,
    outcome: CheckOutcome<'_>,
) -> FrontendResponse {
    match outcome {
        Ok(decision) if decision.is_allowed() => respond::allowed(decision),
        Ok(decision) => {
            let answer = respond::refused(decision, head.headers, decider.refusals());
            // Without a store no limit refused the request. That stays a visible 503.
            if decision.decided_by() == DecidedBy::Failure {
                respond::decided_without_store(answer)
            } else if is_deny_asked(head) {
                respond::denied(answer)
            } else {
                answer
            }
        }
        Err(CheckError::UnknownPolicy { .. }) => respond::no_such_policy(),
        Err(_) => {
            let respond = rules.policy(policy(head)).map(Policy::respond);
            respond::decided_without_store(respond::unavailable(respond, head.headers))
        }
    }
}

fn is_deny_asked(head: RequestHeadRef<'_>) -> bool {
    let forwarded = ForwardedRequest::by(head.headers);
    forwarded.is_ok_and(|forwarded| refuse::is_asked(head.uri.query(), &forwarded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_the_rest_of_the_path() {
        for (path, belongs, policy) in [
            ("/v1/auth", true, None),
            ("/v1/auth/api", true, Some("api")),
            // No policy has these names, so they get the response for an unknown policy.
            ("/v1/auth/", true, Some("")),
            ("/v1/auth/a/b", true, Some("a/b")),
            ("/v1/authority", false, None),
            ("/v1", false, None),
            ("/", false, None),
        ] {
            assert_eq!((is_at(path), named(path)), (belongs, policy), "{path}");
        }
    }
}
