//! From a request to what is asked of the store, and from its reply to a decision.

use crate::decision::{Decision, Pieces};
use crate::error::CheckError;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{Ask, Op, Reply};
use tidegate_policy::config::LocalShare;
use tidegate_policy::matching::{Meeting, Scratch};
use tidegate_policy::{OnFailure, Policy, Request};

/// A request that a store has to decide.
pub(crate) struct Question<'a> {
    rules: &'a Arc<Rules>,
    policy: usize,
    meeting: Meeting<'a>,
    /// Every band of every limit met; most requests need no allocation.
    pub(crate) asks: SmallVec<[Ask<'a>; 4]>,
}

/// What is to be done about a request.
pub(crate) enum Prepared<'a> {
    /// Ask the store.
    Ask(Question<'a>),
    /// Nothing: no limit applies, or one refuses for want of an identity.
    Decided(Decision),
}

impl<'a> Question<'a> {
    /// Finds out what has to be asked.
    pub(crate) fn prepare(
        rules: &'a Arc<Rules>,
        request: &Request<'_>,
        scratch: &'a mut Scratch,
    ) -> Result<Prepared<'a>, CheckError> {
        let (index, policy) = rules.find(request)?;
        let meeting = policy.meet(request, &rules.keys, scratch);
        if let Some(limit) = meeting.refused {
            let refused = Decision::identity_missing(Arc::clone(rules), index, limit);
            return Ok(Prepared::Decided(refused));
        }
        if meeting.met.is_empty() {
            let passed = Decision::unlimited(Arc::clone(rules), index);
            return Ok(Prepared::Decided(passed));
        }
        Ok(Prepared::Ask(Self {
            rules,
            policy: index,
            meeting,
            asks: asks(policy, &meeting, request.cost),
        }))
    }

    pub(crate) fn answer(&self, reply: &Reply) -> Decision {
        Decision::new(Arc::clone(self.rules), self.policy, &self.meeting, reply)
    }

    /// The decision where the store did not answer, or only in part.
    pub(crate) fn piece(&self, pieces: &Pieces<'_>) -> Decision {
        Decision::pieced(Arc::clone(self.rules), self.policy, &self.meeting, pieces)
    }

    /// What the limit that `ask` belongs to does without the store.
    pub(crate) fn on_failure(&self, ask: &Ask<'_>) -> OnFailure {
        let met = self.meeting.met.get(usize::from(ask.limit));
        let limit = met.and_then(|met| self.rules.limit(self.policy, met.limit));
        self.rules.on_failure(limit)
    }

    /// How much of the policy is granted without the store.
    pub(crate) fn local_share(&self) -> LocalShare {
        self.rules.local_share
    }
}

fn asks<'a>(policy: &'a Policy, meeting: &Meeting<'a>, cost: u64) -> SmallVec<[Ask<'a>; 4]> {
    let mut asks = SmallVec::new();
    for (nth, met) in meeting.met.iter().enumerate() {
        let Some(limit) = policy.limits.get(met.limit) else {
            continue;
        };
        let op = match (cost, limit.charge_always) {
            (0, _) => Op::Look,
            (cost, false) => Op::Take(cost),
            (cost, true) => Op::Force(cost),
        };
        asks.extend(limit.bands.iter().map(|band| Ask {
            bucket: meeting.bucket(met),
            scope: met.subject.start.saturating_sub(met.bucket.start),
            quota: &band.quota,
            op,
            limit: u16::try_from(nth).unwrap_or(u16::MAX),
            mode: limit.mode,
        }));
    }
    asks
}
