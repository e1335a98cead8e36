//! Sends asks to the store, in one place. Returns the store's answers, or fallback answers if the store does
//! not answer.

use crate::decision::{DecidedBy, MatchedLimits};
use crate::error::CheckError;
use crate::failure::Share;
use crate::limiter::Limiter;
use crate::reserving::ChargeHome;
use crate::rules::Rules;
use smallvec::SmallVec;
use tidegate_core::{
    Ask, Op, Outcome, PartialAnswer, Receipt, Reply, Store, StoreError, Timestamp,
};
use tidegate_policy::OnFailure;

/// The answer to each ask of a request, and the combined result.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The time of the decision, by the clock that decided.
    pub(crate) at: Timestamp,
    pub(crate) passed: bool,
    pub(crate) decided_by: DecidedBy,
    /// One entry per ask, in order; `None` if neither the store nor local buckets decided it.
    pub(crate) list: SmallVec<[Option<Answer>; 4]>,
    /// Limits that refuse because the state of their buckets is unknown, by their indexes among the matched
    /// limits. Limits in shadow mode that would refuse come last. If these limits decide, the first is
    /// reported.
    pub(crate) denied: SmallVec<[usize; 1]>,
    /// Among matched limits of which one that allows is enough: the limit that is reported for those that
    /// refuse. `None` if one allows.
    pub(crate) spokesman: Option<usize>,
    /// The share of the quotas at which local buckets decided, if they did.
    pub(crate) share: Option<Share>,
}

/// The answer to one ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    /// The receipt of the charge, if one was made.
    pub(crate) receipt: Option<Receipt>,
    /// The location of the bucket.
    pub(crate) home: ChargeHome,
}

impl Answer {
    /// Returns an answer that charged nothing.
    pub(crate) fn free(outcome: Outcome) -> Self {
        Self {
            outcome,
            receipt: None,
            home: ChargeHome::Store,
        }
    }
}

impl Answers {
    /// Returns the store's own answers.
    pub(crate) fn of(asks: &[Ask<'_>], reply: &Reply) -> Self {
        Self {
            list: each_of(asks, reply, ChargeHome::Store).map(Some).collect(),
            ..Self::new(reply.at, reply.passed, DecidedBy::Store)
        }
    }

    /// Returns a refusal with answers of the store that charged nothing.
    pub(crate) fn refused(
        at: Timestamp,
        outcomes: impl IntoIterator<Item = Option<Outcome>>,
    ) -> Self {
        let outcomes = outcomes.into_iter();
        Self {
            list: outcomes.map(|it| it.map(Answer::free)).collect(),
            ..Self::new(at, false, DecidedBy::Store)
        }
    }

    pub(crate) fn new(at: Timestamp, passed: bool, decided_by: DecidedBy) -> Self {
        Self {
            at,
            passed,
            decided_by,
            list: SmallVec::new(),
            denied: SmallVec::new(),
            spokesman: None,
            share: None,
        }
    }

    /// Returns true if the store did not decide every ask.
    pub(crate) fn is_fallback(&self) -> bool {
        self.share.is_some()
            || self.decided_by != DecidedBy::Store
            || self.list.iter().any(Option::is_none)
    }

    /// Returns the outcome of each ask.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = Option<Outcome>> {
        let outcome = |answer: &Option<Answer>| Some(answer.as_ref()?.outcome);
        self.list.iter().map(outcome)
    }
}

/// Returns the answers in a reply.
pub(crate) fn each_of<'a>(
    asks: &'a [Ask<'_>],
    reply: &'a Reply,
    home: ChargeHome,
) -> impl Iterator<Item = Answer> + 'a {
    let outcomes = reply.outcomes.iter();
    let numbered = asks.iter().zip(outcomes).enumerate();
    numbered.map(move |(nth, (ask, outcome))| Answer {
        outcome: *outcome,
        receipt: reply.receipt(nth, ask.op),
        home,
    })
}

/// The terms for asks that the store does not answer: the rules, and the limits that the asks belong to.
#[derive(Clone, Copy)]
pub(crate) struct FallbackTerms<'a> {
    pub(crate) rules: &'a Rules,
    /// Absent for asks of no limit.
    pub(crate) scene: Option<&'a MatchedLimits<'a>>,
}

impl FallbackTerms<'_> {
    /// Returns the `on_failure` of the limit that `ask` belongs to.
    pub(crate) fn on_failure(&self, ask: &Ask<'_>) -> OnFailure {
        let limit = self
            .scene
            .and_then(|scene| scene.nth(usize::from(ask.limit)));
        self.rules.on_failure(limit)
    }

    /// Returns true if the matched limit `nth` was matched by a descriptor, which has its own answer.
    pub(crate) fn is_described(&self, nth: usize) -> bool {
        let met = self.scene.and_then(|scene| scene.meeting.met.get(nth));
        met.is_some_and(|met| met.descriptor.is_some())
    }
}

impl<S: Store> Limiter<S> {
    /// Sends the asks to the store. If it does not answer, or only in part, the `on_failure` of each limit
    /// decides.
    pub(crate) async fn ask_store(
        &self,
        terms: FallbackTerms<'_>,
        asks: &[Ask<'_>],
    ) -> Result<Answers, CheckError> {
        let reply = self.store().decide(asks).await;
        self.answers(terms, asks, reply)
    }

    /// Returns the answers for `reply`, and records the store's health.
    ///
    /// If the store answered only in part, its charges stay if the request passes, and are refunded
    /// otherwise.
    pub(crate) fn answers(
        &self,
        terms: FallbackTerms<'_>,
        asks: &[Ask<'_>],
        reply: Result<Reply, StoreError>,
    ) -> Result<Answers, CheckError> {
        let failover = self.failover();
        let error = match reply {
            Ok(reply) => {
                if let Some(failover) = failover {
                    failover.note(asks, &reply);
                }
                return Ok(Answers::of(asks, &reply));
            }
            Err(error) => error,
        };
        let answers = failover.and_then(|failover| failover.decide(terms, asks, &error));
        if !answers.as_ref().is_some_and(|answers| answers.passed) {
            self.refund_partial(asks, &error);
        }
        answers.ok_or_else(|| CheckError::Store(error))
    }

    /// Refunds the charges of a store that answered only in part.
    pub(crate) fn refund_partial(&self, asks: &[Ask<'_>], error: &StoreError) {
        let mut refunds: SmallVec<[Ask<'_>; 4]> = SmallVec::new();
        for (ask, partial) in asks.iter().zip(error.answers()) {
            let receipt = partial.as_ref().and_then(PartialAnswer::receipt);
            refunds.extend(receipt.map(|receipt| Ask {
                op: Op::GiveBack(receipt),
                ..*ask
            }));
        }
        if !refunds.is_empty() {
            self.store().refund(&refunds);
        }
    }
}
