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

#[cfg(test)]
mod tests {
    use super::refuse;
    use crate::deny::{DenyCache, Refused};
    use crate::request::{Key, OwnedAsk, Request, RequestOp};
    use tidegate_core::{Bucket, Mode, Op, Quota, Receipt, Timestamp, step};
    use tokio::time::Instant;

    /// A bucket of three from which two were taken, and which then refused two more.
    #[test]
    fn what_was_refused_is_refused_to_whoever_tests_for_it_and_never_to_a_return() {
        let quota = Quota::new(3, 3_600_000_000).build().unwrap();
        let (mut bucket, at) = (
            Bucket::new(&quota),
            Timestamp::from_millis(1_700_000_000_000),
        );
        step::decide_one(&quota, &mut bucket, Op::Take(2), at);
        let outcome = step::decide_one(&quota, &mut bucket, Op::Take(2), at);
        let (deny, key, sent) = (DenyCache::new(10), Key::from_slice(b"a"), Instant::now());
        let refused = Refused {
            key: &key,
            quota: &quota,
            cost: 2,
            outcome,
            bucket: &bucket,
        };
        deny.remember(&refused, at, sent);
        let ask = |op| {
            let mut request = Request::default();
            request.keys.push(key.clone());
            request.asks.push(OwnedAsk {
                key: 0,
                quota,
                op: RequestOp::Engine(op),
                limit: 0,
                mode: Mode::Enforce,
            });
            refuse(&deny, &request, sent)
        };
        let expected = ask(Op::Take(2)).expect("Redis would refuse");
        let tested = ask(Op::Test(2)).expect("Redis would refuse");
        assert_eq!(tested.outcomes[..], expected.outcomes[..]);
        for op in [Op::Test(0), Op::Test(1), Op::Take(1)] {
            assert!(ask(op).is_none(), "{op:?} has room");
        }
        let receipt = Receipt::by_the_clock(at, 1);
        assert!(ask(Op::Return { receipt, by: at }).is_none());
    }
}
