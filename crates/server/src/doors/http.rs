//! The HTTP API: `POST /v1/check`, and the way to `/v1/auth`.

use super::promptly::promptly;
use super::respond::{self, Answer, Whole};
use super::{Door, auth, body};
use crate::bounds::Bounds;
use crate::decider::Decider;
use crate::server::session::Visit;
use crate::telemetry::stopwatch::Stopwatch;
use crate::wire::answer;
use crate::wire::question::{Asked, Question};
use futures_util::future::join_all;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request};
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate::{AnyStore, CheckError, Decision, Rules, Store};
use tidegate_http::unix_seconds;

/// What one decision takes, nearly always.
const DECISION_BYTES: usize = 192;

/// The HTTP API.
#[derive(Debug)]
pub(crate) struct HttpDoor<S = AnyStore> {
    decider: Decider<S>,
    bounds: Bounds,
}

impl<S: Store> HttpDoor<S> {
    pub(crate) fn new(decider: Decider<S>, bounds: Bounds) -> Self {
        Self { decider, bounds }
    }

    async fn check(&self, request: Request<Incoming>) -> Answer {
        let watch = Stopwatch::start();
        if !is_json(request.headers()) {
            return respond::unsupported();
        }
        let bounds = &self.bounds;
        let body = body::read(request.into_body(), bounds.body_bytes, bounds.body_time).await;
        let answer = match body {
            Ok(body) => promptly(self.decider.may_wait(), || self.decide(&body)).await,
            Err(error) => {
                // Lets hyper notice that nobody reads the body any more; otherwise it would go on
                // waiting for it after the answer, and the connection would stay open.
                tokio::task::yield_now().await;
                return respond::no_body(error, bounds);
            }
        };
        self.decider.metrics().durations.observe(watch.elapsed());
        answer
    }

    async fn decide(&self, text: &[u8]) -> Answer {
        let decided = match Asked::read(text) {
            Err(fault) => return respond::bad_question(&fault),
            Ok(Asked::One(question)) => self
                .decide_one(&question)
                .await
                .map_err(|error| (error, None)),
            Ok(Asked::Several(questions)) => self
                .decide_several(&questions)
                .await
                .map_err(|(error, nth)| (error, Some(nth))),
        };
        match decided {
            Ok(json) => respond::decided(json),
            Err((error, item)) => respond::undecided(&error, item),
        }
    }

    async fn decide_one(&self, question: &Question<'_>) -> Result<Vec<u8>, CheckError> {
        let rules = self.decider.rules()?;
        let decision = self.decide_by(&rules, question).await?;
        let mut json = Vec::with_capacity(DECISION_BYTES);
        answer::write(&decision, &mut json);
        Ok(json)
    }

    /// Decides a question by what it says, and by what its headers and its path tell where it does
    /// not say it.
    async fn decide_by(
        &self,
        rules: &Arc<Rules>,
        question: &Question<'_>,
    ) -> Result<Decision, CheckError> {
        let learnt = question.learn(rules.client(), &unix_seconds);
        let pairs = question.pairs_with(learnt.as_ref());
        self.decider
            .decide_by(rules, &question.request(&pairs))
            .await
    }

    /// Decides a list, each by itself and in order: none waits for the answer of the one before, so
    /// that a store across the network is asked for all at once. A question that is wrong fails the list before
    /// any is decided, so that a list that is sent again, mended, is charged once.
    async fn decide_several(
        &self,
        questions: &[Question<'_>],
    ) -> Result<Vec<u8>, (CheckError, usize)> {
        for (nth, question) in questions.iter().enumerate() {
            if question.policy.is_some() {
                let pairs = question.pairs();
                let accepted = self.decider.accepts(&question.request(&pairs));
                accepted.map_err(|error| (error, nth))?;
            }
        }
        let rules = self.decider.rules().map_err(|error| (error, 0))?;
        let each = questions.iter();
        let decisions = join_all(each.map(|question| self.decide_by(&rules, question)));
        let mut json = Vec::with_capacity(DECISION_BYTES.saturating_mul(questions.len()));
        json.push(b'[');
        for (nth, decision) in decisions.await.into_iter().enumerate() {
            if nth > 0 {
                json.push(b',');
            }
            answer::write(&decision.map_err(|error| (error, nth))?, &mut json);
        }
        json.push(b']');
        Ok(json)
    }
}

impl<S: Store + 'static> Door for HttpDoor<S> {
    type Body = Whole;
    type Memory = ();

    fn answer_at_once(&self, request: &Request<Incoming>, visit: Visit<'_>) -> Option<Answer> {
        if !auth::is_at(request.uri().path()) {
            return None;
        }
        auth::answer_at_once(&self.decider, request, visit.peer())
    }

    async fn answer(&self, request: Request<Incoming>, visit: Visit<'_>) -> Answer {
        match (request.uri().path(), request.method()) {
            ("/v1/check", &Method::POST) => self.check(request).await,
            ("/v1/check", _) => respond::wrong_method("POST"),
            (path, _) if auth::is_at(path) => {
                auth::answer(&self.decider, &self.bounds, request, visit.peer()).await
            }
            (path, _) => respond::not_found(
                path,
                "decisions are at POST /v1/check, and for proxies at /v1/auth",
            ),
        }
    }

    fn whole(answer: Answer) -> Answer {
        answer
    }

    /// What `Authorization` holds at `/v1/auth` is the client's own, passed on by a proxy, which is
    /// known by its address.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        auth::is_at(request.uri().path())
    }
}

/// Whether the body may be JSON. Says so, says nothing, or is what `curl -d` says unless told; the
/// body has to be JSON all the same.
fn is_json(headers: &HeaderMap) -> bool {
    if headers.contains_key(CONTENT_ENCODING) {
        return false;
    }
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let kind = kind.as_bytes();
    let end = kind
        .iter()
        .position(|byte| *byte == b';')
        .unwrap_or(kind.len());
    let kind = kind.get(..end).unwrap_or(kind).trim_ascii();
    let is_suffixed = kind.len().checked_sub(5).and_then(|at| kind.get(at..));
    kind.eq_ignore_ascii_case(b"application/json")
        || kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        || is_suffixed.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_json_is_taken() {
        let check = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            is_json(&headers)
        };
        for kind in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.example+json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(check(kind), "{kind}");
        }
        for kind in [
            "text/xml",
            "multipart/form-data; boundary=json",
            "json",
            "+jso",
            "",
        ] {
            assert!(!check(kind), "{kind}");
        }
        assert!(is_json(&HeaderMap::new()));
    }

    #[test]
    fn what_is_compressed_is_not_json() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
        assert!(!is_json(&headers));
    }
}
