//! Decisions if the store does not answer, by the `on_failure` of every limit.
//!
//! | module | what it is |
//! |---|---|
//! | `verdict` | the combined verdict of limits with known and unknown state |
//! | `terms` | the `on_failure` of each ask |
//! | `local_buckets` | deciding in memory, at a share of the policy |
//! | `levels` | the last known level of each bucket |
//! | `health` | the health of the store, for log and metrics |
//! | `settling` | settling reservations that were charged locally |
//!
//! None of this exists for a store that cannot fail.

mod health;
mod levels;
mod local_buckets;
mod settling;
mod terms;
mod verdict;

pub use health::StoreHealth;
pub(crate) use terms::FallbackTerms;

use crate::decision::{Answer, Answers, ChargeHome, DecidedBy, each_of};
use crate::share::{Instances, Share};
use health::FailoverHealth;
use local_buckets::LocalBuckets;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use tidegate_core::{Ask, Clock, PartialAnswer, Reply, StoreError, Timestamp};
use tidegate_policy::OnFailure;
use verdict::FailureVerdict;

/// Limits that refuse because the state of their buckets is unknown, by their indexes among the matched
/// limits.
type DeniedLimits = SmallVec<[usize; 1]>;

/// Decides without the store, and tracks its health.
#[derive(Debug)]
pub(crate) struct Failover {
    clock: SharedClock,
    local: LocalBuckets,
    health: FailoverHealth,
    instances: Instances,
}

/// A clock shared by several components.
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
    /// Creates local buckets for up to `max_keys` keys; `None` if the system does not have enough memory.
    pub(crate) fn new(clock: SharedClock, max_keys: usize, instances: Instances) -> Option<Self> {
        Some(Self {
            local: LocalBuckets::new(clock.clone(), max_keys)?,
            clock,
            health: FailoverHealth::default(),
            instances,
        })
    }

    /// Returns true if decisions without the store have the time of the machine's clock.
    pub(crate) fn has_machine_clock(&self) -> bool {
        self.clock.is_machine()
    }

    /// Returns the health of the store.
    pub(crate) fn health(&self) -> StoreHealth {
        self.health.snapshot()
    }

    /// Records a success of the store.
    pub(crate) fn succeeded(&self) {
        self.health.succeed(|| self.clock.now());
    }

    /// Records a failure of the store.
    pub(crate) fn failed(&self, error: &StoreError) {
        self.health.fail(error, self.clock.now());
    }

    /// Remembers the store's answers.
    ///
    /// Of a refused request, only the buckets that refuse: a store that caches refusals need not know the
    /// state of the others.
    pub(crate) fn note(&self, asks: &[Ask<'_>], reply: &Reply) {
        let now = self.clock.now();
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter()) {
            if reply.passed || !outcome.is_allowed() {
                self.local.known().note(ask, outcome, now);
            }
        }
        self.health.succeed(|| now);
    }

    /// Decides `asks`, for which the store returned `error`: by the partial answers in it, and by the
    /// `on_failure` of the limits whose buckets are unknown. Returns `None` if one of them has `on_failure:
    /// error`.
    pub(crate) fn decide(
        &self,
        terms: FallbackTerms<'_>,
        asks: &[Ask<'_>],
        error: &StoreError,
    ) -> Option<Answers> {
        let now = self.clock.now();
        self.health.fail(error, now);
        let partial = error.answers();
        let at = partial.iter().flatten().map(|it| it.at).max();
        let mut answers = Answers {
            list: self.remember_partial(asks, partial, now),
            ..Answers::new(at.unwrap_or(now), false, DecidedBy::Store)
        };
        match FailureVerdict::of(terms, asks, &answers.list) {
            FailureVerdict::Error => return None,
            FailureVerdict::Refused => {}
            FailureVerdict::Deny => {
                answers.denied = verdict::denied(terms, asks, &answers.list);
                answers.decided_by = DecidedBy::Failure;
            }
            FailureVerdict::GoOn { by } => {
                answers.passed = true;
                answers.decided_by = by;
                self.decide_locally(terms, asks, &mut answers, now);
            }
        }
        let shadows = verdict::would_deny(terms, asks, &answers.list);
        let shadows: DeniedLimits = shadows.collect();
        answers.denied.extend(shadows);
        Some(answers)
    }

    /// Remembers the store's partial answers, and returns them padded to the length of `asks`.
    fn remember_partial(
        &self,
        asks: &[Ask<'_>],
        partial: &[Option<PartialAnswer>],
        now: Timestamp,
    ) -> SmallVec<[Option<Answer>; 4]> {
        let partial = partial.iter().chain(std::iter::repeat(&None));
        let heard = |(ask, partial): (&Ask<'_>, &Option<PartialAnswer>)| {
            let partial = partial.as_ref()?;
            let outcome = partial.answer.outcome;
            self.local.known().note(ask, &outcome, now);
            Some(Answer {
                receipt: partial.receipt(),
                ..Answer::free(outcome)
            })
        };
        asks.iter().zip(partial).map(heard).collect()
    }

    /// Decides together, all or nothing, the asks without an answer whose limits have `on_failure: local`.
    fn decide_locally(
        &self,
        terms: FallbackTerms<'_>,
        asks: &[Ask<'_>],
        answers: &mut Answers,
        now: Timestamp,
    ) {
        let is_local = |(ask, answer): (&Ask<'_>, &Option<Answer>)| {
            answer.is_none() && terms.on_failure(ask) == OnFailure::Local
        };
        let unknown = asks.iter().zip(&answers.list).filter(|it| is_local(*it));
        let unknown: SmallVec<[Ask<'_>; 4]> = unknown.map(|(ask, _)| *ask).collect();
        if unknown.is_empty() {
            return;
        }
        let share = Share::of(terms.rules.local_share, &self.instances);
        let reply = self.local.decide(&unknown, share, now);
        let mut local = each_of(&unknown, &reply, ChargeHome::Here);
        for (ask, answer) in asks.iter().zip(&mut answers.list) {
            if is_local((ask, answer)) {
                *answer = local.next();
            }
        }
        answers.at = reply.at;
        answers.passed = reply.passed;
        answers.share = Some(share);
    }
}
