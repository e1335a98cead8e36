//! From a request to what is asked of the store, and from its reply to a decision.

use crate::decision::{Decision, Pieces};
use crate::error::CheckError;
use crate::giving::{Charge, Charges};
use crate::rules::Rules;
use crate::waiting::Room;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{Ask, Mode, Op, Outcome, Reply};
use tidegate_policy::config::LocalShare;
use tidegate_policy::matching::{Meeting, Met, Scratch};
use tidegate_policy::{Limit, OnFailure, Policy, Request};

/// A request that a store has to decide.
pub(crate) struct Question<'a> {
    rules: &'a Arc<Rules>,
    policy: usize,
    meeting: Meeting<'a>,
    /// Every band of every limit met; most requests need no allocation.
    pub(crate) asks: SmallVec<[Ask<'a>; 4]>,
    /// Whether a limit met may make the request wait.
    pub(crate) may_wait: bool,
    /// Whether charges of any limit of the policy may be given back.
    is_refundable: bool,
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
            may_wait: policy.waits() && request.cost > 0 && meets_waiting(policy, &meeting),
            is_refundable: policy.refundable(),
        }))
    }

    pub(crate) fn answer(&self, reply: &Reply) -> Decision {
        if self.is_refundable && reply.passed {
            return self.conclude(reply, self.charges(reply));
        }
        Decision::new(Arc::clone(self.rules), self.policy, &self.meeting, reply)
    }

    /// The decision that `reply` amounts to, which has charged `charges`.
    pub(crate) fn conclude(&self, reply: &Reply, charges: Arc<Charges>) -> Decision {
        let rules = Arc::clone(self.rules);
        let decision = Decision::new(rules, self.policy, &self.meeting, reply);
        decision.with_charges(charges)
    }

    /// What a reply that passes has charged and may be given back.
    pub(crate) fn charges(&self, reply: &Reply) -> Arc<Charges> {
        let mut numbers = self.numbers();
        let mut charges = SmallVec::new();
        for (i, ask) in self.asks.iter().enumerate() {
            let Some((index, limit, band)) = numbers.next() else {
                break;
            };
            // What is charged always has been used already.
            if let Op::Take(cost) = ask.op
                && limit.refundable
                && self.is_charged(ask, reply)
            {
                charges.push(Charge {
                    ask: i,
                    bucket: ask.bucket.into(),
                    scope: ask.scope,
                    limit: index,
                    band,
                    receipt: reply.receipt(i, cost),
                });
            }
        }
        Arc::new(Charges::new(Arc::clone(self.rules), self.policy, charges))
    }

    /// Whether a bucket was charged by a reply that passes: one that is only watched, if all of its
    /// limit would have allowed.
    fn is_charged(&self, ask: &Ask<'_>, reply: &Reply) -> bool {
        let of_limit = |(other, outcome): (&Ask<'_>, &Outcome)| {
            other.limit != ask.limit || outcome.is_allowed()
        };
        ask.mode == Mode::Enforce || self.asks.iter().zip(reply.outcomes.iter()).all(of_limit)
    }

    /// For each ask, the number of its limit, the limit, and the number of its band.
    fn numbers(&self) -> impl Iterator<Item = (usize, &'a Limit, usize)> {
        let of = |met: &'a Met| Some((met.limit, self.rules.limit(self.policy, met.limit)?));
        let limits = self.meeting.met.iter().filter_map(of);
        limits
            .flat_map(|(index, limit)| (0..limit.bands.len()).map(move |band| (index, limit, band)))
    }

    /// The limits met, each with its number among them.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (usize, &'a Limit)> {
        let met = self.meeting.met.iter().enumerate();
        met.filter_map(|(nth, met)| Some((nth, self.rules.limit(self.policy, met.limit)?)))
    }

    /// The bucket of a limit met.
    pub(crate) fn bucket(&self, nth: usize) -> &'a [u8] {
        let met = self.meeting.met.get(nth);
        met.map_or(&[], |met| self.meeting.bucket(met))
    }

    /// Where those wait whom a limit met holds back, if it does.
    pub(crate) fn room(&self, nth: usize) -> Option<&'a Arc<Room>> {
        let met = self.meeting.met.get(nth)?;
        self.rules.rooms.get(self.policy, met.limit)
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

/// Whether a limit met makes requests wait.
fn meets_waiting(policy: &Policy, meeting: &Meeting<'_>) -> bool {
    let limits = meeting.met.iter().map(|met| policy.limits.get(met.limit));
    limits.flatten().any(|limit| limit.waiting.is_some())
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
