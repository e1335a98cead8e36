//! Limits that are asked one by one (`evaluate: each`): each counts for itself, whatever the others
//! say.
//!
//! Everywhere else a request is one step, and what one limit refuses no other is charged with. Here
//! every limit met is a step of its own, in the order met. The request passes if every enforced limit
//! allows; but of those with `mode: quota` one that allows is enough.

use crate::decision::{DecidedBy, Decision, Pieces};
use crate::error::CheckError;
use crate::failure::{Known, Settled};
use crate::limiter::Limiter;
use crate::question::Question;
use smallvec::SmallVec;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tidegate_core::{Ask, Mode, Outcome, Receipt, Reply, Store, StoreError, Timestamp, Wait};

/// Decides by a store that does so at once; `None`, from any other, means that nothing was done.
pub(crate) fn decide_at_once<S: Store>(
    limiter: &Limiter<S>,
    question: &Question<'_>,
) -> Option<Decision> {
    let mut heard = Heard::new(question);
    for asks in steps(question) {
        let reply = limiter.store().decide_at_once(asks)?;
        heard.add(asks, Ok(Step::of(&reply)));
    }
    // A store that decides at once does not fail.
    heard.conclude().ok()
}

/// Decides by any store. All steps are under way together, so that they take no longer than one, but for
/// those that mean the same bucket: they wait for each other, in the order of the request.
pub(crate) async fn decide<S: Store>(
    limiter: &Limiter<S>,
    question: &Question<'_>,
) -> Result<Decision, CheckError> {
    let asked = lines(question).into_iter();
    let asked = asked.map(|line| decide_in_turn(limiter.store(), line));
    let replies = join(asked).await;
    let mut replies: Vec<_> = replies.into_iter().flatten().collect();
    replies.sort_by_key(|(nth, _)| *nth);
    let mut heard = Heard::new(question);
    for (asks, (_, reply)) in steps(question).zip(replies) {
        heard.add(asks, settle(limiter, question, asks, reply));
    }
    heard.conclude()
}

/// Steps that mean the same bucket, in order, each with its number in the request.
type Line<'q> = SmallVec<[(usize, &'q [Ask<'q>]); 1]>;

/// The steps of a request, by what they mean. Nearly always each is alone.
fn lines<'q>(question: &'q Question<'_>) -> Vec<Line<'q>> {
    let bucket = |asks: &'q [Ask<'q>]| asks.first().map(|ask| ask.bucket);
    let mut lines: Vec<Line<'q>> = Vec::new();
    for (nth, asks) in steps(question).enumerate() {
        // Few enough to look at each. All bands of a limit share their bucket.
        let is_same = |line: &&mut Line<'q>| {
            let first = line.first();
            first.is_some_and(|(_, first)| bucket(first) == bucket(asks))
        };
        match lines.iter_mut().find(is_same) {
            Some(line) => line.push((nth, asks)),
            None => lines.push(Line::from_iter([(nth, asks)])),
        }
    }
    lines
}

/// Decides one step after the other. Where the store cannot tell of one, those behind it are not asked:
/// they would be decided out of turn, and each might take as long to fail.
async fn decide_in_turn<S: Store>(
    store: &S,
    line: Line<'_>,
) -> SmallVec<[(usize, Result<Reply, StoreError>); 1]> {
    let mut replies = SmallVec::new();
    let mut failed = None;
    for (nth, asks) in line {
        let reply = match failed {
            Some(kind) => Err(StoreError::transient(
                "what was asked of the same bucket before it was not answered",
            )
            .with_kind(kind)),
            None => store.decide(asks).await,
        };
        failed = reply.as_ref().err().map(StoreError::kind);
        replies.push((nth, reply));
    }
    replies
}

/// The asks of each limit met.
fn steps<'q>(question: &'q Question<'_>) -> impl Iterator<Item = &'q [Ask<'q>]> {
    question.asks.chunk_by(|one, next| one.limit == next.limit)
}

/// What comes of one step, with the store or without it.
fn settle<S: Store>(
    limiter: &Limiter<S>,
    question: &Question<'_>,
    asks: &[Ask<'_>],
    reply: Result<Reply, StoreError>,
) -> Result<Step, CheckError> {
    match (reply, limiter.failover()) {
        (Ok(reply), failover) => {
            if let Some(failover) = failover {
                failover.note(asks, &reply);
            }
            Ok(Step::of(&reply))
        }
        (Err(error), Some(failover)) => {
            let answers = error.answers().to_vec();
            let settled = failover.settle(question, asks, error, &answers)?;
            Ok(Step {
                settled,
                is_charged: false,
            })
        }
        (Err(error), None) => Err(CheckError::Store(error)),
    }
}

/// Waits for all of them, and answers in their order.
async fn join<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut under_way: Vec<Pin<Box<F>>> = all.map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = under_way.iter().map(|_| None).collect();
    // Few enough to look at each whenever one of them stirs.
    poll_fn(|context| {
        let mut left = Poll::Ready(());
        for (one, output) in under_way.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match one.as_mut().poll(context) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => left = Poll::Pending,
                }
            }
        }
        left
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// What one step came to.
struct Step {
    settled: Settled,
    /// Whether the store has charged it, so that it could be given back.
    is_charged: bool,
}

impl Step {
    fn of(reply: &Reply) -> Self {
        Self {
            // One that is only watched may refuse, and the step passes.
            is_charged: reply.passed && reply.outcomes.iter().all(Outcome::is_allowed),
            settled: Settled {
                at: reply.at,
                allowed: reply.passed,
                decided_by: DecidedBy::Store,
                outcomes: reply.outcomes.iter().copied().map(Some).collect(),
                denied: SmallVec::new(),
            },
        }
    }

    /// How long until it would pass, by what it says itself.
    fn wait(&self) -> Wait {
        let outcomes = self.settled.outcomes.iter().flatten();
        let waits = outcomes.map(|outcome| outcome.wait);
        waits.max().unwrap_or(Wait::NONE)
    }
}

/// What the steps came to so far.
struct Heard<'q, 'a> {
    question: &'q Question<'a>,
    at: Timestamp,
    outcomes: Known,
    /// Of each ask when it was charged, if it can be given back.
    charged: SmallVec<[Option<Timestamp>; 4]>,
    /// Who decided, where all goes well.
    by: DecidedBy,
    /// Limits each of which must allow.
    strict: Said,
    /// Limits of which one is enough.
    quotas: Said,
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
struct Said {
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

impl<'q, 'a> Heard<'q, 'a> {
    fn new(question: &'q Question<'a>) -> Self {
        Self {
            question,
            at: Timestamp::default(),
            outcomes: Known::new(),
            charged: SmallVec::new(),
            by: DecidedBy::Store,
            strict: Said::default(),
            quotas: Said::default(),
            shadows: Shadows {
                by: DecidedBy::Store,
                denied: SmallVec::new(),
            },
            spokesman: None,
        }
    }

    /// Adds what a step came to.
    fn add(&mut self, asks: &[Ask<'_>], step: Result<Step, CheckError>) {
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
        said.are_any |= first.mode == Mode::Enforce;
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                said.error.get_or_insert(error);
                self.outcomes.extend(asks.iter().map(|_| None));
                self.charged.extend(asks.iter().map(|_| None));
                return;
            }
        };
        let wait = step.wait();
        let Settled {
            at,
            allowed,
            decided_by,
            outcomes,
            denied,
        } = step.settled;
        self.at = self.at.max(at);
        let charged = step.is_charged.then_some(at);
        self.charged.extend(asks.iter().map(|_| charged));
        self.outcomes.extend(outcomes);
        if first.mode != Mode::Enforce {
            self.shadows.by = later(self.shadows.by, decided_by);
            self.shadows.denied.extend(denied);
            return;
        }
        self.by = later(self.by, decided_by);
        if allowed {
            said.has_room = true;
        } else if denied.is_empty() {
            said.refused.get_or_insert(decided_by);
            if is_quota && self.spokesman.is_none_or(|(shortest, _)| wait < shortest) {
                self.spokesman = Some((wait, nth));
            }
        }
        said.denied.extend(denied);
    }

    /// What all of it comes to. A limit that is known to refuse decides; else one that is not known and
    /// wants an error, or a refusal.
    fn conclude(self) -> Result<Decision, CheckError> {
        let Self {
            strict,
            quotas,
            shadows,
            ..
        } = self;
        let are_short = quotas.are_any && !quotas.has_room;
        // Quotas refuse if none of them might still allow.
        let is_settled = quotas.denied.is_empty() && quotas.error.is_none();
        let short = quotas.refused.filter(|_| are_short && is_settled);
        let refused = strict.refused.or(short);
        let error = strict.error.or(quotas.error.filter(|_| are_short));
        let is_denied = !strict.denied.is_empty() || (are_short && !quotas.denied.is_empty());
        let (allowed, decided_by) = match (refused, error) {
            (Some(by), _) => (false, by),
            (None, Some(error)) => return Err(error),
            (None, None) if is_denied => (false, DecidedBy::Failure),
            (None, None) if strict.are_any || quotas.are_any => (true, self.by),
            (None, None) => (true, shadows.by),
        };
        let mut denied = strict.denied;
        denied.extend(quotas.denied);
        denied.extend(shadows.denied);
        let spokesman = self.spokesman.filter(|_| are_short);
        let decision = self.question.piece(&Pieces {
            at: self.at,
            allowed,
            decided_by,
            outcomes: &self.outcomes,
            denied: &denied,
            spokesman: spokesman.map(|(_, nth)| nth),
        });
        if !allowed || !self.question.is_refundable() {
            return Ok(decision);
        }
        let receipt = |nth: usize, _: &Ask<'_>, cost| -> Option<Receipt> {
            let at = (*self.charged.get(nth)?)?;
            Some((*self.outcomes.get(nth)?)?.receipt(at, cost))
        };
        Ok(decision.with_charges(self.question.charges_by(receipt)))
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
