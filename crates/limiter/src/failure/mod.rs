//! What happens when the store cannot tell: every limit's `on_failure`, carried out.
//!
//! | module | what it is |
//! |---|---|
//! | `verdict` | what the limits that are not known amount to together |
//! | `local` | deciding in this process, at a share of the policy |
//! | `share` | how large that share is |
//! | `known` | what was last heard of each bucket |
//! | `health` | whether the store answers, and who is told |
//! | `alone` | one bucket that belongs to no limit |
//! | `reserving` | reserving, and settling what was charged here |
//! | `standing` | the same, for those who ask the limiter |
//!
//! None of this exists for a store that cannot fail.

mod alone;
mod health;
mod known;
mod local;
mod reserving;
mod share;
mod standing;
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
pub(crate) type Known = SmallVec<[Option<Outcome>; 4]>;

/// Limits that refuse because they are not known, by their numbers among those met.
type Denied = SmallVec<[usize; 1]>;

/// What is made of asks that the store did not answer, or only in part.
pub(crate) struct Settled {
    pub(crate) at: Timestamp,
    pub(crate) allowed: bool,
    pub(crate) decided_by: DecidedBy,
    /// One for each ask; `None` where nobody was asked.
    pub(crate) outcomes: Known,
    /// The limits that refuse because they are not known; after them those in shadow mode that would.
    pub(crate) denied: Denied,
}

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

    fn is_machine(&self) -> bool {
        self.0.is_machine()
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

    /// Returns true if decisions without the store have the time of the machine's clock.
    pub(crate) fn has_machine_clock(&self) -> bool {
        self.clock.is_machine()
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
        error: StoreError,
        answers: &[Option<Answered>],
    ) -> Result<Decision, CheckError> {
        let settled = self.settle(question, &question.asks, error, answers)?;
        Ok(question.piece(&Pieces {
            at: settled.at,
            allowed: settled.allowed,
            decided_by: settled.decided_by,
            outcomes: &settled.outcomes,
            denied: &settled.denied,
            spokesman: None,
        }))
    }

    /// What is to be made of `asks`, which are those of `question` or some of them, where the store
    /// answered them with `error`.
    pub(crate) fn settle(
        &self,
        question: &Question<'_>,
        asks: &[Ask<'_>],
        mut error: StoreError,
        answers: &[Option<Answered>],
    ) -> Result<Settled, CheckError> {
        self.failed(&error);
        let mut known = self.heard(asks, answers);
        let mut at = answers.iter().flatten().map(|it| it.at).max();
        let mut denied = Denied::new();
        let (allowed, decided_by) = match Verdict::of(question, asks, &known) {
            Verdict::Error => {
                // Given back now, however long the caller keeps the error.
                return Err(CheckError::Store(error.with_answers(Box::default(), None)));
            }
            Verdict::Refused => (false, DecidedBy::Store),
            Verdict::Deny => {
                denied = verdict::denied(question, asks, &known);
                (false, DecidedBy::Failure)
            }
            Verdict::GoOn { by } => {
                let reply = self.decide_locally(question, asks, &mut known);
                at = reply.as_ref().map(|reply| reply.at).or(at);
                (reply.is_none_or(|reply| reply.passed), by)
            }
        };
        if allowed {
            error.keep();
        }
        denied.extend(verdict::would_deny(question, asks, &known));
        Ok(Settled {
            at: at.unwrap_or_else(|| self.clock.now()),
            allowed,
            decided_by,
            outcomes: known,
            denied,
        })
    }

    /// What was answered, remembered and made as long as what was asked.
    fn heard(&self, asks: &[Ask<'_>], answers: &[Option<Answered>]) -> Known {
        let now = self.clock.now();
        let answers = answers.iter().chain(std::iter::repeat(&None));
        let heard = |(ask, answered): (&Ask<'_>, &Option<Answered>)| {
            let outcome = answered.as_ref()?.outcome;
            self.local.known().note(ask, &outcome, now);
            Some(outcome)
        };
        asks.iter().zip(answers).map(heard).collect()
    }

    /// Decides together, all or nothing, what is not known and is to be decided here.
    fn decide_locally(
        &self,
        question: &Question<'_>,
        asks: &[Ask<'_>],
        known: &mut Known,
    ) -> Option<Reply> {
        let is_local = |(ask, outcome): (&Ask<'_>, &Option<Outcome>)| {
            outcome.is_none() && question.on_failure(ask) == OnFailure::Local
        };
        let unknown: SmallVec<[Ask<'_>; 4]> = asks
            .iter()
            .zip(known.iter())
            .filter(|it| is_local(*it))
            .map(|(ask, _)| *ask)
            .collect();
        if unknown.is_empty() {
            return None;
        }
        let share = Share::of(question.local_share(), &self.instances);
        let reply = self.local.decide(&unknown, share);
        let mut outcomes = reply.outcomes.iter();
        for (ask, outcome) in asks.iter().zip(known.iter_mut()) {
            if is_local((ask, outcome)) {
                *outcome = outcomes.next().copied();
            }
        }
        Some(reply)
    }
}
