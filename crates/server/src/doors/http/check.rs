//! `POST /v1/check`: decisions, one or several.

use super::{DECISION_BYTES, HttpDoor};
use crate::decider::{AskTerms, CheckOutcome, Logged};
use crate::doors::respond::{self, DoorResponse};
use crate::promise::Promise;
use crate::telemetry::traces::RequestTrace;
use crate::wire::answer;
use crate::wire::question::{JsonQuestion, QuestionBody};
use std::sync::Arc;
use tidegate::{CheckError, Rules, Store};

/// A decision in JSON, or the error response if there is none.
type Told = Result<Vec<u8>, Box<DoorResponse>>;

impl<S: Store> HttpDoor<S> {
    /// Answers a body of one check or a list of checks.
    pub(super) fn check<'a>(
        &'a self,
        text: &'a [u8],
        trace: &'a RequestTrace,
    ) -> Promise<'a, DoorResponse> {
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
                    let mut told = Vec::with_capacity(questions.len());
                    for (nth, question) in questions.iter().enumerate() {
                        let is_behind = told.iter().any(Promise::is_later);
                        let place = Some((nth, is_behind));
                        told.push(self.decide((&rules, trace), question, place));
                    }
                    Promise::all(told).map(|told| answered(joined(told)))
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
    ) -> Promise<'a, Told> {
        question.identified(rules.client(), |request| {
            let notice = rules.notice(request);
            let terms = AskTerms {
                is_behind: place.is_some_and(|(_, is_behind)| is_behind),
                ..AskTerms::pass(trace, Logged::Here)
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
        for (nth, question) in questions.iter().enumerate() {
            if question.policy.is_some() || !question.described.is_empty() {
                let pairs = question.pairs();
                let descriptors = question.descriptors(&pairs);
                let request = question.request(&pairs).descriptors(&descriptors);
                let accepted = self.decider.accepts(&request);
                accepted.map_err(|error| (error, nth))?;
            }
        }
        self.decider.rules().map_err(|error| (error, 0))
    }
}

fn answered(told: Told) -> DoorResponse {
    told.map_or_else(|answer| *answer, respond::decided)
}

/// Joins the decisions of a list. The first error response replaces them all.
fn joined(told: Vec<Told>) -> Told {
    let decisions = told.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut json = vec![b'['];
    json.extend(decisions.join(&b','));
    json.push(b']');
    Ok(json)
}
