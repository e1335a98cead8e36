//! `POST /v1/check`: decisions, one or several.

use super::{DECISION_BYTES, HttpDoor};
use crate::doors::respond::{self, Answer};
use crate::telemetry::traces::Trace;
use crate::wire::answer;
use crate::wire::question::{Asked, Question};
use futures_util::future::join_all;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Rules, Store};
use tidegate_http::unix_seconds;

impl<S: Store> HttpDoor<S> {
    /// Answers questions.
    pub(super) async fn check(&self, text: &[u8], trace: &Trace) -> Answer {
        let decided = match Asked::read(text) {
            Err(fault) => return respond::bad_question(&fault),
            Ok(Asked::One(question)) => self
                .decide_one(&question, trace)
                .await
                .map_err(|error| (error, None)),
            Ok(Asked::Several(questions)) => self
                .decide_several(&questions, trace)
                .await
                .map_err(|(error, nth)| (error, Some(nth))),
        };
        match decided {
            Ok(json) => respond::decided(json),
            Err((error, item)) => respond::undecided(&error, item),
        }
    }

    async fn decide_one(
        &self,
        question: &Question<'_>,
        trace: &Trace,
    ) -> Result<Vec<u8>, CheckError> {
        let rules = self.decider.rules()?;
        let (decision, notice) = self.decide_by(&rules, question, trace).await?;
        let mut json = Vec::with_capacity(DECISION_BYTES);
        answer::write_with_notice(&decision, notice.as_deref(), &mut json);
        Ok(json)
    }

    /// Decides a question by what it says, and by what its headers and its path tell where it does
    /// not say it. Tells what the caller should know beside that, if anything.
    async fn decide_by(
        &self,
        rules: &Arc<Rules>,
        question: &Question<'_>,
        trace: &Trace,
    ) -> Result<(Decision, Option<String>), CheckError> {
        let learnt = question.learn(rules.client(), &unix_seconds);
        let pairs = question.pairs_with(learnt.as_ref());
        let descriptors = question.descriptors(&pairs);
        let request = question.request(&pairs).descriptors(&descriptors);
        let leg = trace.leg();
        let outcome = self.decider.decide_by(rules, &request).await;
        trace.decided(leg, outcome.as_ref());
        Ok((outcome?, rules.notice(&request)))
    }

    /// Decides a list, each by itself and in order: none waits for the answer of the one before, so
    /// that a store across the network is asked for all at once. A question that is wrong fails the list before
    /// any is decided, so that a list that is sent again, mended, is charged once.
    async fn decide_several(
        &self,
        questions: &[Question<'_>],
        trace: &Trace,
    ) -> Result<Vec<u8>, (CheckError, usize)> {
        for (nth, question) in questions.iter().enumerate() {
            if question.policy.is_some() || !question.described.is_empty() {
                let pairs = question.pairs();
                let descriptors = question.descriptors(&pairs);
                let request = question.request(&pairs).descriptors(&descriptors);
                let accepted = self.decider.accepts(&request);
                accepted.map_err(|error| (error, nth))?;
            }
        }
        let rules = self.decider.rules().map_err(|error| (error, 0))?;
        let each = questions.iter();
        let decisions = join_all(each.map(|question| self.decide_by(&rules, question, trace)));
        let mut json = Vec::with_capacity(DECISION_BYTES.saturating_mul(questions.len()));
        json.push(b'[');
        for (nth, decision) in decisions.await.into_iter().enumerate() {
            if nth > 0 {
                json.push(b',');
            }
            let (decision, notice) = decision.map_err(|error| (error, nth))?;
            answer::write_with_notice(&decision, notice.as_deref(), &mut json);
        }
        json.push(b']');
        Ok(json)
    }
}
