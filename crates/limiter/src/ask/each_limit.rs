//! Limits that are decided separately (`evaluate: each`): each counts regardless of the others.
//!
//! In all other modes a request is one atomic step, and if one limit refuses, no other is charged. Here every
//! matched limit is a separate step, in the order matched. The request passes if every enforced limit allows
//! it; but of the limits with `combine: any`, one that allows is enough.

use crate::backend::Backend;
use crate::decision::{Answer, Answers, DecidedBy, Decision};
use crate::error::CheckError;
use crate::request::PreparedRequest;
use futures_util::future::join_all;
use smallvec::SmallVec;
use tidegate_core::{Ask, LimitMode, Store, StoreError, Timestamp, Wait};

/// Decides with a store that answers immediately. `None`, from any other store, means that nothing was done.
pub(crate) fn decide_at_once<S: Store>(
    backend: &Backend<S>,
    question: &PreparedRequest<'_>,
) -> Option<Decision> {
    let mut tally = StepTally::new(question);
    for asks in steps(question) {
        let reply = backend.reply_at_once(asks)?;
        tally.add(asks, Ok(Answers::of(asks, &reply)));
    }
    // A store that decides immediately does not fail.
    tally.conclude().ok()
}

/// Decides with any store. All steps run concurrently, so that they take no longer than one. Steps on the
/// same bucket run one after the other, in the order of the request.
pub(crate) async fn decide<S: Store>(
    backend: &Backend<S>,
    question: &PreparedRequest<'_>,
) -> Result<Decision, CheckError> {
    let asked = lines(question).into_iter();
    let asked = asked.map(|line| decide_in_turn(backend, question, line));
    let answers = join_all(asked).await;
    let mut answers: Vec<_> = answers.into_iter().flatten().collect();
    answers.sort_by_key(|(nth, _)| *nth);
    let mut tally = StepTally::new(question);
    for (asks, (_, answers)) in steps(question).zip(answers) {
        tally.add(asks, answers);
    }
    tally.conclude()
}

/// Steps on the same bucket, in order, each with its index in the request.
type BucketSteps<'q> = SmallVec<[(usize, &'q [Ask<'q>]); 1]>;

/// Groups the steps of a request by bucket. Nearly always each group has one step.
fn lines<'q>(question: &'q PreparedRequest<'_>) -> Vec<BucketSteps<'q>> {
    let bucket = |asks: &'q [Ask<'q>]| asks.first().map(|ask| ask.bucket);
    let mut lines: Vec<BucketSteps<'q>> = Vec::new();
    for (nth, asks) in steps(question).enumerate() {
        // There are few enough for a linear search. All bands of a limit share their bucket.
        let is_same = |line: &&mut BucketSteps<'q>| {
            let first = line.first();
            first.is_some_and(|(_, first)| bucket(first) == bucket(asks))
        };
        match lines.iter_mut().find(is_same) {
            Some(line) => line.push((nth, asks)),
            None => lines.push(BucketSteps::from_iter([(nth, asks)])),
        }
    }
    lines
}

/// Decides one step after the other. If the store does not answer one, the steps behind it are not sent: they
/// would be decided out of order, and each might take as long to fail.
async fn decide_in_turn<S: Store>(
    backend: &Backend<S>,
    question: &PreparedRequest<'_>,
    line: BucketSteps<'_>,
) -> SmallVec<[(usize, Result<Answers, CheckError>); 1]> {
    let mut answers = SmallVec::new();
    let mut failed = None;
    for (nth, asks) in line {
        let reply = match failed {
            Some(kind) => Err(StoreError::transient(
                "an earlier request to the same bucket got no response",
            )
            .with_kind(kind)),
            None => backend.store.decide(asks).await,
        };
        failed = reply.as_ref().err().map(StoreError::kind);
        // Here, and not after all have answered: a caller that drops the future meanwhile would leave partial
        // charges.
        answers.push((nth, backend.answers(question.terms(), asks, reply)));
    }
    answers
}

/// Returns the asks of each matched limit.
fn steps<'q>(question: &'q PreparedRequest<'_>) -> impl Iterator<Item = &'q [Ask<'q>]> {
    question.asks.chunk_by(|one, next| one.limit == next.limit)
}

/// The combined result of the steps so far.
struct StepTally<'q, 'a> {
    question: &'q PreparedRequest<'a>,
    /// The answers of all steps; `decided_by` holds if no limit refuses or fails.
    answers: Answers,
    /// Limits of which each must allow.
    strict: LimitTally,
    /// Limits of which one that allows is enough.
    quotas: LimitTally,
    /// Limits in shadow mode.
    shadows: Shadows,
    /// Of the quota limits that refuse, the one that would allow first.
    spokesman: Option<(Wait, usize)>,
}

/// The result of limits in shadow mode.
struct Shadows {
    by: DecidedBy,
    /// Limits that would refuse because the state of their buckets is unknown.
    denied: SmallVec<[usize; 1]>,
}

/// The result of a group of limits.
#[derive(Default)]
struct LimitTally {
    /// True if there is an enforced one.
    are_any: bool,
    /// True if one of them allows.
    has_room: bool,
    /// The component by which a known limit was refused.
    refused: Option<DecidedBy>,
    /// Limits that refuse because the state of their buckets is unknown.
    denied: SmallVec<[usize; 1]>,
    /// The first error of a limit with an unknown state and `on_failure: error`.
    error: Option<CheckError>,
}

impl<'q, 'a> StepTally<'q, 'a> {
    fn new(question: &'q PreparedRequest<'a>) -> Self {
        Self {
            question,
            answers: Answers::new(Timestamp::default(), true, DecidedBy::Store),
            strict: LimitTally::default(),
            quotas: LimitTally::default(),
            shadows: Shadows {
                by: DecidedBy::Store,
                denied: SmallVec::new(),
            },
            spokesman: None,
        }
    }

    /// Adds the result of a step.
    fn add(&mut self, asks: &[Ask<'_>], step: Result<Answers, CheckError>) {
        let Some(first) = asks.first() else {
            return;
        };
        let nth = usize::from(first.limit);
        let limit = self.question.matched.nth(nth);
        let is_quota = limit.is_some_and(|limit| limit.quota_mode);
        let outcomes = if is_quota {
            &mut self.quotas
        } else {
            &mut self.strict
        };
        outcomes.are_any |= first.mode == LimitMode::Enforce;
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                outcomes.error.get_or_insert(error);
                self.answers.list.extend(asks.iter().map(|_| None));
                return;
            }
        };
        let by = step.decided_by;
        // Only a step that the store passed as a whole is refundable.
        let is_returnable = step.passed && !step.is_fallback();
        // The time until this step would pass, by its own outcomes.
        let wait = step.outcomes().flatten().map(|outcome| outcome.wait).max();
        let wait = wait.unwrap_or(Wait::NONE);
        self.answers.at = self.answers.at.max(step.at);
        self.answers
            .list
            .extend(step.list.into_iter().map(|answer| {
                Some(Answer {
                    is_refundable: is_returnable,
                    ..answer?
                })
            }));
        if first.mode != LimitMode::Enforce {
            self.shadows.by = later(self.shadows.by, by);
            self.shadows.denied.extend(step.denied);
            return;
        }
        self.answers.decided_by = later(self.answers.decided_by, by);
        if step.passed {
            outcomes.has_room = true;
        } else if step.denied.is_empty() {
            outcomes.refused.get_or_insert(by);
            if is_quota && self.spokesman.is_none_or(|(shortest, _)| wait < shortest) {
                self.spokesman = Some((wait, nth));
            }
        }
        outcomes.denied.extend(step.denied);
    }

    /// Returns the combined decision. A limit that is known to refuse decides. Otherwise a limit with an
    /// unknown state decides, if its `on_failure` is an error or a refusal.
    fn conclude(self) -> Result<Decision, CheckError> {
        let Self {
            question,
            answers,
            strict,
            quotas,
            shadows,
            spokesman,
        } = self;
        let are_short = quotas.are_any && !quotas.has_room;
        // Quotas refuse only if none of them might still allow.
        let is_settled = quotas.denied.is_empty() && quotas.error.is_none();
        let short = quotas.refused.filter(|_| are_short && is_settled);
        let refused = strict.refused.or(short);
        let error = strict.error.or(quotas.error.filter(|_| are_short));
        let is_denied = !strict.denied.is_empty() || (are_short && !quotas.denied.is_empty());
        let (passed, decided_by) = match (refused, error) {
            (Some(by), _) => (false, by),
            (None, Some(error)) => return Err(error),
            (None, None) if is_denied => (false, DecidedBy::Failure),
            (None, None) if strict.are_any || quotas.are_any => (true, answers.decided_by),
            (None, None) => (true, shadows.by),
        };
        let mut denied = strict.denied;
        denied.extend(quotas.denied);
        denied.extend(shadows.denied);
        let spokesman = spokesman.filter(|_| are_short);
        Ok(question.decide_refundable(&Answers {
            passed,
            decided_by,
            denied,
            spokesman: spokesman.map(|(_, nth)| nth),
            ..answers
        }))
    }
}

/// Returns the component that decided, if two components each decided a part: the one farther from the store.
fn later(one: DecidedBy, other: DecidedBy) -> DecidedBy {
    match (one, other) {
        (DecidedBy::Local, _) | (_, DecidedBy::Local) => DecidedBy::Local,
        (DecidedBy::Failure, _) | (_, DecidedBy::Failure) => DecidedBy::Failure,
        _ => DecidedBy::Store,
    }
}
