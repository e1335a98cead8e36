//! Reserving without the store, or with a part of it; and settling what was charged here.

use super::verdict::{Verdict, would_deny};
use super::{Denied, Failover, Share};
use crate::decision::{Decision, Pieces};
use crate::error::CheckError;
use crate::question::Question;
use crate::reserving::{Home, Part, cost_of, is_charged};
use smallvec::SmallVec;
use tidegate_core::{Answered, Ask, Clock, Op, Outcome, Reply, StoreError};
use tidegate_policy::OnFailure;

impl Failover {
    /// Decides a question that the store answered with `error`, as [`decide`](Self::decide) does, and
    /// tells what was charged for it: in the store, by what that has answered all the same, and here.
    pub(crate) fn reserve(
        &self,
        question: &Question<'_>,
        mut error: StoreError,
        answers: &[Option<Answered>],
    ) -> Result<(Decision, SmallVec<[Part; 4]>), CheckError> {
        let mut known = self.heard(&question.asks, answers);
        let Verdict::GoOn { by } = Verdict::of(question, &question.asks, &known) else {
            // Nothing passes, so nothing stays charged.
            let decision = self.decide(question, error, answers)?;
            return Ok((decision, SmallVec::new()));
        };
        self.failed(&error);
        let is_local = |nth: &usize| {
            let is_unknown = known.get(*nth).is_some_and(Option::is_none);
            let ask = question.asks.get(*nth);
            is_unknown && ask.is_some_and(|ask| question.on_failure(ask) == OnFailure::Local)
        };
        let local: SmallVec<[usize; 4]> = (0..question.asks.len()).filter(is_local).collect();
        let asks = local.iter().filter_map(|nth| question.asks.get(*nth));
        let asks: SmallVec<[Ask<'_>; 4]> = asks.copied().collect();
        let share = Share::of(question.local_share(), &self.instances);
        let reply = (!asks.is_empty()).then(|| self.local.decide(&asks, share));
        let passed = reply.as_ref().is_none_or(|reply| reply.passed);
        let mut parts = SmallVec::new();
        if passed {
            error.keep();
            parts.extend(in_store(question, answers));
        }
        if let Some(reply) = &reply {
            for (nth, outcome) in local.iter().zip(reply.outcomes.iter()) {
                if let Some(known) = known.get_mut(*nth) {
                    *known = Some(*outcome);
                }
            }
            let numbered = here(&asks, reply, share);
            parts.extend(numbered.filter_map(|part| {
                let ask = *local.get(part.ask)?;
                Some(Part { ask, ..part })
            }));
        }
        let heard = answers.iter().flatten().map(|it| it.at).max();
        let denied: Denied = would_deny(question, &question.asks, &known).collect();
        let decision = question.piece(&Pieces {
            at: reply
                .map(|reply| reply.at)
                .or(heard)
                .unwrap_or_else(|| self.clock.now()),
            allowed: passed,
            decided_by: by,
            outcomes: &known,
            denied: &denied,
            spokesman: None,
        });
        Ok((decision, parts))
    }

    /// Remembers how the store's buckets are after they were settled.
    pub(crate) fn note_settled(&self, asks: &[Ask<'_>], reply: &Reply) {
        let now = self.clock.now();
        let is_free = reply.outcomes.first().is_some_and(Outcome::is_allowed);
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter()) {
            // Marks are asked for once. And a store that knows by itself that one is taken need not
            // know how the bucket beside it is.
            if is_free && matches!(ask.op, Op::Return { .. } | Op::Force(_)) {
                self.local.known().note(ask, outcome, now);
            }
        }
        self.succeeded();
    }

    /// Settles buckets of this process: `asks` are by the quotas by which they were charged.
    pub(crate) fn settle_here(&self, asks: &[Ask<'_>]) -> Reply {
        self.local.settle(asks)
    }
}

/// What the store has charged, as far as it has said so.
fn in_store<'a>(
    question: &'a Question<'_>,
    answers: &'a [Option<Answered>],
) -> impl Iterator<Item = Part> + 'a {
    let numbered = question.asks.iter().zip(answers).enumerate();
    numbered.filter_map(|(ask, (it, answered))| {
        let answered = answered.as_ref().filter(|answered| answered.charged)?;
        Some(Part {
            ask,
            home: Home::Store,
            quota: *it.quota,
            receipt: answered.outcome.receipt(answered.at, cost_of(it.op)?),
        })
    })
}

/// What was charged here, at a share of the quotas.
fn here<'a>(
    asks: &'a [Ask<'_>],
    reply: &'a Reply,
    share: Share,
) -> impl Iterator<Item = Part> + 'a {
    let numbered = asks.iter().enumerate().filter(|_| reply.passed);
    numbered.filter_map(move |(ask, it)| {
        let cost = cost_of(it.op)?;
        is_charged(it, asks, &reply.outcomes).then(|| Part {
            ask,
            home: Home::Here,
            quota: it.quota.at_share(share.numerator, share.denominator),
            receipt: reply.receipt(ask, cost),
        })
    })
}
