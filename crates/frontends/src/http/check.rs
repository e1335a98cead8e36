//! `POST /v1/check`: decisions, one or several.

use super::{DECISION_BYTES, HttpFrontend};
use crate::decider::{AskTerms, CheckOutcome, RefusalLogging};
use crate::respond::{self, FrontendResponse};
use crate::wire::answer;
use crate::wire::question::{JsonQuestion, QuestionBody};
use std::sync::Arc;
use tidegate::{CheckError, Rules, Store};
use tidegate_net::promise::Promise;
use tidegate_telemetry::traces::RequestTrace;

/// A decision in JSON, or the error response if there is none.
type CheckResult = Result<Vec<u8>, Box<FrontendResponse>>;

impl<S: Store> HttpFrontend<S> {
    /// Answers a body of one check or a list of checks.
    pub(super) fn check<'a>(
        &'a self,
        text: &'a [u8],
        trace: &'a RequestTrace,
    ) -> Promise<'a, FrontendResponse> {
        match QuestionBody::read(text) {
            Err(fault) => Promise::Now(respond::bad_question(&fault)),
            Ok(QuestionBody::One(question)) => match self.decider.rules() {
                Ok(rules) => self.decide((&rules, trace), &question, None).map(answered),
                Err(error) => Promise::Now(respond::undecided(&error, None)),
            },
            Ok(QuestionBody::Several(questions)) => match self.accept(&questions) {
                // Each check is separate, and they are started in order. None waits for the result of an
                // earlier one, so a store across the network gets them all at once.
                Ok(rules) => {
                    let mut results = Vec::with_capacity(questions.len());
                    for (nth, question) in questions.iter().enumerate() {
                        let is_behind = results.iter().any(Promise::is_later);
                        let place = Some((nth, is_behind));
                        results.push(self.decide((&rules, trace), question, place));
                    }
                    Promise::all(results).map(|results| answered(joined(results)))
                }
                Err((error, nth)) => Promise::Now(respond::undecided(&error, Some(nth))),
            },
        }
    }

    /// Decides a check by its fields, and by the headers and the path in it if a field is missing. In a
    /// list, `place` is its index, and whether an earlier check is pending.
    fn decide<'a>(
        &'a self,
        (rules, trace): (&Arc<Rules>, &'a RequestTrace),
        question: &JsonQuestion<'_>,
        place: Option<(usize, bool)>,
    ) -> Promise<'a, CheckResult> {
        question.identified(rules.client(), |request, token_refused| {
            let notice = rules.notice(request);
            let terms = AskTerms {
                is_behind: place.is_some_and(|(_, is_behind)| is_behind),
                ..AskTerms::pass(trace, RefusalLogging::Here, token_refused)
            };
            let tell = move |outcome: CheckOutcome<'_>| match outcome {
                Ok(decision) => {
                    let mut json = Vec::with_capacity(DECISION_BYTES);
                    answer::write_with_notice(decision, notice.as_deref(), &mut json);
                    Ok(json)
                }
                Err(error) => {
                    let nth = place.map(|(nth, _)| nth);
                    Err(Box::new(respond::undecided(error, nth)))
                }
            };
            self.decider.ask(rules, request, terms, tell)
        })
    }

    /// Returns the rules to decide a list by. An invalid check fails the list before any is decided, so a
    /// list that is corrected and sent again is charged once.
    fn accept(&self, questions: &[JsonQuestion<'_>]) -> Result<Arc<Rules>, (CheckError, usize)> {
        let rules = self.decider.rules().map_err(|error| (error, 0))?;
        for (nth, question) in questions.iter().enumerate() {
            let is_plain = question.policy.is_none()
                && question.cost.is_none()
                && question.described.is_empty();
            if !is_plain {
                let pairs = question.pairs();
                let descriptors = question.descriptors(&pairs);
                let request = question.request(&pairs).descriptors(&descriptors);
                rules.accepts(&request).map_err(|error| (error, nth))?;
            }
        }
        Ok(rules)
    }
}

fn answered(told: CheckResult) -> FrontendResponse {
    told.map_or_else(|answer| *answer, respond::decided)
}

/// Joins the decisions of a list. The first error response replaces them all.
fn joined(told: Vec<CheckResult>) -> CheckResult {
    let decisions = told.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut json = vec![b'['];
    json.extend(decisions.join(&b','));
    json.push(b']');
    Ok(json)
}
