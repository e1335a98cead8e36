//! `POST /v1/check`: decisions, one or several.

use super::{DECISION_BYTES, HttpDoor};
use crate::decider::{AskTerms, CheckOutcome, Logged};
use crate::doors::respond::{self, Answer};
use crate::promise::Promise;
use crate::telemetry::traces::Trace;
use crate::wire::answer;
use crate::wire::question::{Asked, Question};
use std::sync::Arc;
use tidegate::{CheckError, Decision, Rules, Store};

/// A decision, and a remark for the caller, if there is one.
type Remarked = Result<(Decision, Option<String>), CheckError>;

impl<S: Store> HttpDoor<S> {
    /// Answers questions.
    pub(super) fn check<'a>(&'a self, text: &'a [u8], trace: &'a Trace) -> Promise<'a, Answer> {
        let asked = match Asked::read(text) {
            Err(fault) => return Promise::Now(respond::bad_question(&fault)),
            Ok(Asked::One(question)) => {
                let rules = self.decider.rules().map_err(|error| (error, None));
                rules.map(|rules| self.decide(&rules, &question, trace).map(tell_one))
            }
            Ok(Asked::Several(questions)) => {
                let rules = self.accept(&questions);
                let rules = rules.map_err(|(error, nth)| (error, Some(nth)));
                rules.map(|rules| self.decide_all(&rules, &questions, trace).map(tell_all))
            }
        };
        asked.unwrap_or_else(|(error, nth)| Promise::Now(respond::undecided(&error, nth)))
    }

    /// Decides a question by what it contains, and by its headers and its path where a field is missing.
    fn decide<'a>(
        &'a self,
        rules: &Arc<Rules>,
        question: &Question<'_>,
        trace: &'a Trace,
    ) -> Promise<'a, Remarked> {
        question.identified(rules.client(), |request| {
            let notice = rules.notice(request);
            let terms = AskTerms::pass(trace, Logged::Here);
            let tell = move |outcome: CheckOutcome| Ok((outcome?, notice));
            self.decider.ask(rules, request, terms, tell)
        })
    }

    /// Decides a list, each by itself and in order: none waits for the answer of the one before, so
    /// that a store across the network is asked for all at once.
    fn decide_all<'a>(
        &'a self,
        rules: &Arc<Rules>,
        questions: &[Question<'_>],
        trace: &'a Trace,
    ) -> Promise<'a, Vec<Remarked>> {
        let each = questions.iter();
        Promise::all(each.map(|it| self.decide(rules, it, trace)).collect())
    }

    /// Returns the rules to decide a list by. A question that is wrong fails the list before any is
    /// decided, so that a list that is sent again, corrected, is charged once.
    fn accept(&self, questions: &[Question<'_>]) -> Result<Arc<Rules>, (CheckError, usize)> {
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

fn tell_one(decided: Remarked) -> Answer {
    let mut json = Vec::with_capacity(DECISION_BYTES);
    match decided {
        Ok((decision, notice)) => {
            answer::write_with_notice(&decision, notice.as_deref(), &mut json);
            respond::decided(json)
        }
        Err(error) => respond::undecided(&error, None),
    }
}

fn tell_all(decided: Vec<Remarked>) -> Answer {
    let mut json = Vec::with_capacity(DECISION_BYTES.saturating_mul(decided.len()));
    json.push(b'[');
    for (nth, decided) in decided.into_iter().enumerate() {
        if nth > 0 {
            json.push(b',');
        }
        match decided {
            Ok((decision, notice)) => {
                answer::write_with_notice(&decision, notice.as_deref(), &mut json);
            }
            Err(error) => return respond::undecided(&error, Some(nth)),
        }
    }
    json.push(b']');
    respond::decided(json)
}
