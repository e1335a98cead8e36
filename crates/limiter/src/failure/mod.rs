//! What happens when the store cannot tell: every limit's `on_failure`, carried out.
//!
//! | module | what it is |
//! |---|---|
//! | `verdict` | what the limits that are not known amount to together |
//! | `local` | deciding in this process, at a share of the policy |
//! | `share` | how large that share is |
//! | `known` | what was last heard of each bucket |
//! | `health` | whether the store answers, and who is told |
//!
//! None of this exists for a store that cannot fail.

mod health;
mod known;
mod local;
mod share;
mod verdict;

pub use health::StoreHealth;
pub use local::COME_BACK;
pub(crate) use local::COME_BACK_US;
pub(crate) use share::Instances;

use crate::decision::{DecidedBy, Decision, Pieces};
use crate::error::CheckError;
use crate::question::Question;
use health::Health;
use local::Local;
use share::Share;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use tidegate_core::{Answered, Ask, Clock, Outcome, Reply, StoreError, Timestamp};
use tidegate_policy::OnFailure;
use verdict::Verdict;

/// One for each ask; `None` where nobody answered.
type Known = SmallVec<[Option<Outcome>; 4]>;

/// Decides without the store, and knows how it is.
#[derive(Debug)]
pub(crate) struct Failover {
    clock: SharedClock,
    local: Local,
    health: Health,
    instances: Instances,
}

/// A clock that others have as well.
#[derive(Clone)]
pub(crate) struct SharedClock(Arc<dyn Clock>);

impl SharedClock {
    pub(crate) fn new(clock: impl Clock + 'static) -> Self {
        Self(Arc::new(clock))
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedClock").field(&self.now()).finish()
    }
}

impl Failover {
    /// Room for `max_keys` buckets in this process; `None` where the system has not as much.
    pub(crate) fn new(clock: SharedClock, max_keys: usize, instances: Instances) -> Option<Self> {
        Some(Self {
            local: Local::new(clock.clone(), max_keys)?,
            clock,
            health: Health::default(),
            instances,
        })
    }

    /// How the store is.
    pub(crate) fn health(&self) -> StoreHealth {
        self.health.snapshot()
    }

    /// The store has answered.
    pub(crate) fn succeeded(&self) {
        self.health.succeed(&self.clock);
    }

    /// The store has not.
    pub(crate) fn failed(&self, error: &StoreError) {
        self.health.fail(error, self.clock.now());
    }

    /// Remembers what the store has answered.
    ///
    /// Of a refused request only the buckets that refuse: a store that remembers a refusal by itself
    /// need not know how the others are.
    pub(crate) fn note(&self, asks: &[Ask<'_>], reply: &Reply) {
        let now = self.clock.now();
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter()) {
            if reply.passed || !outcome.is_allowed() {
                self.local.known().note(ask, outcome, now);
            }
        }
        self.succeeded();
    }

    /// Decides a question that the store answered with `error`.
    ///
    /// What it did charge stays charged if the request passes; else the store gives it back, in the
    /// background, as `error` goes. `answers` are those of `error`, in the terms of the question.
    pub(crate) fn decide(
        &self,
        question: &Question<'_>,
        mut error: StoreError,
        answers: &[Option<Answered>],
    ) -> Result<Decision, CheckError> {
        self.failed(&error);
        let known = self.heard(question, answers);
        let verdict = Verdict::of(question, &known);
        if verdict == Verdict::Error {
            // Given back now, however long the caller keeps the error.
            return Err(CheckError::Store(error.with_answers(Box::default(), None)));
        }
        let decision = self.carry_out(verdict, question, known, answers);
        if decision.is_allowed() {
            error.keep();
        }
        Ok(decision)
    }

    /// What was answered, remembered and made as long as the question.
    fn heard(&self, question: &Question<'_>, answers: &[Option<Answered>]) -> Known {
        let now = self.clock.now();
        let answers = answers.iter().chain(std::iter::repeat(&None));
        let heard = |(ask, answered): (&Ask<'_>, &Option<Answered>)| {
            let outcome = answered.as_ref()?.outcome;
            self.local.known().note(ask, &outcome, now);
            Some(outcome)
        };
        question.asks.iter().zip(answers).map(heard).collect()
    }

    fn carry_out(
        &self,
        verdict: Verdict,
        question: &Question<'_>,
        mut known: Known,
        answers: &[Option<Answered>],
    ) -> Decision {
        let mut at = answers.iter().flatten().map(|it| it.at).max();
        let (allowed, decided_by, denied) = match verdict {
            Verdict::Refused => (false, DecidedBy::Store, None),
            Verdict::Error => (false, DecidedBy::Failure, None),
            Verdict::Deny { nth } => (false, DecidedBy::Failure, Some(nth)),
            Verdict::GoOn { by } => {
                let passed = match self.decide_locally(question, &mut known) {
                    Some(reply) => {
                        at = Some(reply.at);
                        reply.passed
                    }
                    None => true,
                };
                (passed, by, None)
            }
        };
        question.piece(&Pieces {
            at: at.unwrap_or_else(|| self.clock.now()),
            allowed,
            decided_by,
            outcomes: &known,
            denied,
        })
    }

    /// Decides together, all or nothing, what is not known and is to be decided here.
    fn decide_locally(&self, question: &Question<'_>, known: &mut Known) -> Option<Reply> {
        let is_local = |(ask, outcome): (&Ask<'_>, &Option<Outcome>)| {
            outcome.is_none() && question.on_failure(ask) == OnFailure::Local
        };
        let asks: SmallVec<[Ask<'_>; 4]> = question
            .asks
            .iter()
            .zip(known.iter())
            .filter(|it| is_local(*it))
            .map(|(ask, _)| *ask)
            .collect();
        if asks.is_empty() {
            return None;
        }
        let share = Share::of(question.local_share(), &self.instances);
        let reply = self.local.decide(&asks, share);
        let mut outcomes = reply.outcomes.iter();
        for (ask, outcome) in question.asks.iter().zip(known.iter_mut()) {
            if is_local((ask, outcome)) {
                *outcome = outcomes.next().copied();
            }
        }
        Some(reply)
    }
}
