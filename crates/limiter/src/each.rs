//! Limits that are asked one by one (`evaluate: each`): each counts for itself, whatever the others
//! say.
//!
//! Everywhere else a request is one step, and what one limit refuses no other is charged with. Here
//! every limit met is a step of its own, in the order met. The request passes if every enforced limit
//! allows; but of those with `mode: quota` one that allows is enough.

use crate::answers::Answers;
use crate::decision::{DecidedBy, Decision};
use crate::error::CheckError;
use crate::limiter::Limiter;
use crate::question::PreparedRequest;
use futures_util::future::join_all;
use smallvec::SmallVec;
use tidegate_core::{Ask, LimitMode, Store, StoreError, Timestamp, Wait};

/// Decides by a store that does so at once; `None`, from any other, means that nothing was done.
pub(crate) fn decide_at_once<S: Store>(
    limiter: &Limiter<S>,
    question: &PreparedRequest<'_>,
) -> Option<Decision> {
    let mut tally = StepTally::new(question);
    for asks in steps(question) {
        let reply = limiter.store().decide_at_once(asks)?;
        tally.add(asks, Ok(Answers::of(asks, &reply)));
    }
    // A store that decides at once does not fail.
    tally.conclude().ok()
}

/// Decides by any store. All steps are under way together, so that they take no longer than one, but for
/// those that mean the same bucket: they wait for each other, in the order of the request.
pub(crate) async fn decide<S: Store>(
    limiter: &Limiter<S>,
    question: &PreparedRequest<'_>,
) -> Result<Decision, CheckError> {
    let asked = lines(question).into_iter();
    let asked = asked.map(|line| decide_in_turn(limiter, question, line));
    let answers = join_all(asked).await;
    let mut answers: Vec<_> = answers.into_iter().flatten().collect();
    answers.sort_by_key(|(nth, _)| *nth);
    let mut tally = StepTally::new(question);
    for (asks, (_, answers)) in steps(question).zip(answers) {
        tally.add(asks, answers);
    }
    tally.conclude()
}

/// Steps that mean the same bucket, in order, each with its number in the request.
type BucketSteps<'q> = SmallVec<[(usize, &'q [Ask<'q>]); 1]>;

/// The steps of a request, by what they mean. Nearly always each is alone.
fn lines<'q>(question: &'q PreparedRequest<'_>) -> Vec<BucketSteps<'q>> {
    let bucket = |asks: &'q [Ask<'q>]| asks.first().map(|ask| ask.bucket);
    let mut lines: Vec<BucketSteps<'q>> = Vec::new();
    for (nth, asks) in steps(question).enumerate() {
        // Few enough to look at each. All bands of a limit share their bucket.
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

/// Decides one step after the other. Where the store cannot tell of one, those behind it are not asked:
/// they would be decided out of turn, and each might take as long to fail.
async fn decide_in_turn<S: Store>(
    limiter: &Limiter<S>,
    question: &PreparedRequest<'_>,
    line: BucketSteps<'_>,
) -> SmallVec<[(usize, Result<Answers, CheckError>); 1]> {
    let mut answers = SmallVec::new();
    let mut failed = None;
    for (nth, asks) in line {
        let reply = match failed {
            Some(kind) => Err(StoreError::transient(
                "what was asked of the same bucket before it was not answered",
            )
            .with_kind(kind)),
            None => limiter.store().decide(asks).await,
        };
        failed = reply.as_ref().err().map(StoreError::kind);
        // Here, and not once all have answered: a caller that goes meanwhile would leave partial charges.
        answers.push((nth, limiter.answers(question.terms(), asks, reply)));
    }
    answers
}

/// The asks of each limit met.
fn steps<'q>(question: &'q PreparedRequest<'_>) -> impl Iterator<Item = &'q [Ask<'q>]> {
    question.asks.chunk_by(|one, next| one.limit == next.limit)
}

/// What the steps came to so far.
struct StepTally<'q, 'a> {
    question: &'q PreparedRequest<'a>,
    /// Of all steps; who decided is known where all goes well.
    answers: Answers,
    /// Limits each of which must allow.
    strict: LimitTally,
    /// Limits of which one is enough.
    quotas: LimitTally,
    /// Limits in shadow mode.
    shadows: Shadows,
    /// Of those that refuse, the one that would allow first.
    spokesman: Option<(Wait, usize)>,
}

/// What limits in shadow mode said.
struct Shadows {
    by: DecidedBy,
    /// Which would refuse because they are not known.
    denied: SmallVec<[usize; 1]>,
}

/// What limits said.
#[derive(Default)]
struct LimitTally {
    /// Whether there is an enforced one.
    are_any: bool,
    /// Whether one of them allows.
    has_room: bool,
    /// By whom a limit that is known was refused.
    refused: Option<DecidedBy>,
    /// Which refuse because they are not known.
    denied: SmallVec<[usize; 1]>,
    /// Of those that are not known and want an error, the first.
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

    /// Adds what a step came to.
    fn add(&mut self, asks: &[Ask<'_>], step: Result<Answers, CheckError>) {
        let Some(first) = asks.first() else {
            return;
        };
        let nth = usize::from(first.limit);
        let limit = self.question.scene.nth(nth);
        let is_quota = limit.is_some_and(|limit| limit.quota_mode);
        let said = if is_quota {
            &mut self.quotas
        } else {
            &mut self.strict
        };
        said.are_any |= first.mode == LimitMode::Enforce;
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                said.error.get_or_insert(error);
                self.answers.list.extend(asks.iter().map(|_| None));
                return;
            }
        };
        let by = step.decided_by;
        // Only what the store has let pass as a whole can be given back.
        let is_returnable = step.passed && !step.is_fallback();
        // How long until it would pass, by what it says itself.
        let wait = step.outcomes().flatten().map(|outcome| outcome.wait).max();
        let wait = wait.unwrap_or(Wait::NONE);
        self.answers.at = self.answers.at.max(step.at);
        self.answers
            .list
            .extend(step.list.into_iter().map(|answer| {
                let mut answer = answer?;
                answer.receipt = answer.receipt.filter(|_| is_returnable);
                Some(answer)
            }));
        if first.mode != LimitMode::Enforce {
            self.shadows.by = later(self.shadows.by, by);
            self.shadows.denied.extend(step.denied);
            return;
        }
        self.answers.decided_by = later(self.answers.decided_by, by);
        if step.passed {
            said.has_room = true;
        } else if step.denied.is_empty() {
            said.refused.get_or_insert(by);
            if is_quota && self.spokesman.is_none_or(|(shortest, _)| wait < shortest) {
                self.spokesman = Some((wait, nth));
            }
        }
        said.denied.extend(step.denied);
    }

    /// What all of it comes to. A limit that is known to refuse decides; else one that is not known and
    /// wants an error, or a refusal.
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
        // Quotas refuse if none of them might still allow.
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

/// Who decided, of two who each decided a part: the one farther from the store.
fn later(one: DecidedBy, other: DecidedBy) -> DecidedBy {
    match (one, other) {
        (DecidedBy::Local, _) | (_, DecidedBy::Local) => DecidedBy::Local,
        (DecidedBy::Failure, _) | (_, DecidedBy::Failure) => DecidedBy::Failure,
        _ => DecidedBy::Store,
    }
}
