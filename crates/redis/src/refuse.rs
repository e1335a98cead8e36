//! Refusing without asking Redis, where it would refuse as well.

use crate::deny::{DenyCache, Known};
use crate::request::{Request, RequestOp};
use smallvec::SmallVec;
use tidegate_core::{Bucket, Meter, Mode, Op, Outcome, Quota, Reply, Timestamp, Wait};
use tokio::time::Instant;

/// What the deny cache knows of a request.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    /// Whether Redis would refuse.
    pub(crate) refused: bool,
    /// The store's instant, at the latest.
    pub(crate) at: Timestamp,
    /// One for each ask, in order.
    pub(crate) outcomes: SmallVec<[Outcome; 4]>,
}

impl Knowledge {
    /// What is known, or `None` where Redis has to be told in any case.
    pub(crate) fn of(deny: &DenyCache, request: &Request, now: Instant) -> Option<Self> {
        let mut knowledge = Self::default();
        for ask in &request.asks {
            let cost = match ask.op {
                RequestOp::Engine(Op::Take(cost)) => cost,
                RequestOp::Engine(Op::Test(cost)) => cost.max(1),
                RequestOp::Engine(Op::Look | Op::Force(_)) => 0,
                // It is given back in any case, or only Redis can tell.
                _ => return None,
            };
            let key = request.keys.get(usize::from(ask.key))?;
            let (outcome, seen) = match deny.ask(key, &ask.quota, cost, now) {
                Known::Refuses(outcome, seen) => {
                    knowledge.refused |= ask.mode == Mode::Enforce;
                    (outcome, seen)
                }
                Known::Reads(outcome, seen) => (outcome, seen),
                Known::Nothing => (as_new(&ask.quota), Timestamp::default()),
            };
            knowledge.at = knowledge.at.max(seen);
            knowledge.outcomes.push(outcome);
        }
        Some(knowledge)
    }
}

/// Refuses a request that is all of one slot, if Redis would.
pub(crate) fn refuse(deny: &DenyCache, request: &Request, now: Instant) -> Option<Reply> {
    if deny.is_empty() {
        return None;
    }
    let known = Knowledge::of(deny, request, now).filter(|known| known.refused)?;
    let outcomes = known.outcomes.into_iter().collect();
    Some(Reply::new(known.at, false, outcomes))
}

/// What is shown of a bucket of which nothing is known, beside one that refuses.
fn as_new(quota: &Quota) -> Outcome {
    let bucket = Bucket::new(quota);
    Outcome::of(Wait::NONE, bucket.reading(quota, Timestamp::default()))
}
