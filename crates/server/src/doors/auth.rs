//! Forward-auth, `/v1/auth` and `/v1/auth/POLICY`: a proxy asks whether a request may pass, and shows
//! the answer to the client if not.
//!
//! Everything that leaves here may reach a client, so nothing internal is said.

use super::promptly::promptly;
use super::respond::{self, Answer};
use super::{body, deny};
use crate::bounds::Bounds;
use crate::decider::Decider;
use crate::telemetry::stopwatch::Stopwatch;
use http::Request;
use http::request::Parts;
use hyper::body::{Body, Incoming};
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, DecidedBy, Policy, Rules, Store};
use tidegate_http::question::{Head, Question, Told};

/// Whether a path belongs here.
pub(super) fn is_at(path: &str) -> bool {
    path == "/v1/auth" || policy(path).is_some()
}

/// The policy that a path names. Names need no escapes, so none are undone.
fn policy(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/auth/")
}

/// Answers a question from `peer`.
///
/// Of a body nothing is looked at, but some proxies pass one on: it is read, so that the connection
/// can be used for the next question.
pub(super) async fn answer<S: Store>(
    decider: &Decider<S>,
    bounds: &Bounds,
    request: Request<Incoming>,
    peer: IpAddr,
) -> Answer {
    let watch = Stopwatch::start();
    let (parts, body) = request.into_parts();
    let Ok(rules) = decider.rules() else {
        return respond::closing(respond::unavailable(None, &parts.headers));
    };
    if !rules.client().trusts(peer) {
        decider.metrics().callers.count_untrusted(peer);
        // Nothing more is read from strangers.
        return respond::closing(respond::untrusted());
    }
    let is_read = body.is_end_stream() || {
        let read = body::read(body, bounds.body_bytes, bounds.body_time).await;
        if read.is_err() {
            // Lets hyper notice that nobody reads the rest.
            tokio::task::yield_now().await;
        }
        read.is_ok()
    };
    let decide = || decide(decider, &rules, &parts, peer);
    let answer = promptly(decider.waits(), decide).await;
    decider.metrics().durations.observe(watch.elapsed());
    if is_read {
        return answer;
    }
    respond::closing(answer)
}

async fn decide<S: Store>(
    decider: &Decider<S>,
    rules: &Arc<Rules>,
    parts: &Parts,
    peer: IpAddr,
) -> Answer {
    let policy = policy(parts.uri.path());
    let head = Head {
        method: &parts.method,
        uri: &parts.uri,
        headers: &parts.headers,
        peer: Some(peer),
    };
    let question = match Question::forwarded(rules, policy, head) {
        Ok(question) => question,
        Err(error) => return respond::bad_forward(error),
    };
    if let Some(why) = question.token_refused() {
        decider.metrics().callers.count_token(why);
    }
    let pairs = question.pairs();
    let request = question.request(&pairs);
    match decider.decide_by(rules, &request).await {
        Ok(decision) if decision.is_allowed() => respond::allowed(&decision),
        Ok(decision) => {
            let answer = respond::refused(&decision, &parts.headers);
            // Without a store nobody was refused; that stays a 503 for everybody to see.
            if decision.decided_by() != DecidedBy::Failure && is_deny_asked(parts) {
                return respond::denied(answer);
            }
            answer
        }
        Err(CheckError::UnknownPolicy { .. }) => respond::no_such_policy(),
        Err(_) => {
            let respond = rules.policy(policy).map(Policy::respond);
            respond::unavailable(respond, &parts.headers)
        }
    }
}

fn is_deny_asked(parts: &Parts) -> bool {
    let told = Told::by(&parts.headers);
    told.is_ok_and(|told| deny::is_asked(parts.uri.query(), &told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_the_rest_of_the_path() {
        for (path, belongs, named) in [
            ("/v1/auth", true, None),
            ("/v1/auth/api", true, Some("api")),
            // Nobody's names, so that they are answered as such.
            ("/v1/auth/", true, Some("")),
            ("/v1/auth/a/b", true, Some("a/b")),
            ("/v1/authority", false, None),
            ("/v1", false, None),
            ("/", false, None),
        ] {
            assert_eq!((is_at(path), policy(path)), (belongs, named), "{path}");
        }
    }
}
