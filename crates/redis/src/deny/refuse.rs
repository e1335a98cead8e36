//! Refusing without asking Redis, where it would refuse as well and all that it would tell is known.
//!
//! A refusal that blocks has to write. So a request with blocks is refused here only if none of them can
//! be charged: each is known to be in force, or the cost can never pass its limit.
//!
//! If a request has several limits that block, one block in force is not enough, although Redis would
//! refuse as well. A limit that still had room when last seen may have been emptied by others since, and
//! then this very refusal would start its block too. That can never be ruled out here, so Redis decides.

use crate::any_op::cost_beside;
use crate::deny::{CachedAnswer, DenyCache};
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use smallvec::SmallVec;
use tidegate_core::{Bucket, BucketState, LimitMode, Op, Outcome, Quota, Reply, Timestamp, Wait};
use tokio::time::Instant;

/// Cached knowledge of a request.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    /// True if Redis would refuse.
    pub(crate) refused: bool,
    /// The store's instant, at the latest.
    pub(crate) at: Timestamp,
    /// One for each ask, in order.
    pub(crate) outcomes: SmallVec<[Outcome; 4]>,
    /// Limits with a block of which it is not known that it is in force.
    open: SmallVec<[u16; 2]>,
    /// Limits whose cost can never pass.
    hopeless: SmallVec<[u16; 2]>,
}

impl Knowledge {
    /// Returns true if Redis would refuse, and charge no block.
    pub(crate) fn is_free_refusal(&self) -> bool {
        self.refused && self.open.iter().all(|limit| self.hopeless.contains(limit))
    }

    /// Adds the knowledge of another part of the same request.
    pub(crate) fn and(&mut self, other: &Self) {
        self.refused |= other.refused;
        self.at = self.at.max(other.at);
        self.open.extend_from_slice(&other.open);
        self.hopeless.extend_from_slice(&other.hopeless);
    }

    /// Returns the cached knowledge, or `None` if Redis has to be called in any case, or a bucket is
    /// unknown.
    pub(crate) fn of(deny: &DenyCache, request: &SlotAsks, now: Instant) -> Option<Self> {
        let mut knowledge = Self::default();
        for (nth, ask) in request.asks.iter().enumerate() {
            let cost = wanted(request, nth)?;
            let key = request.keys.get(usize::from(ask.key))?;
            let (outcome, seen) = match deny.ask(key, &ask.quota, cost, now) {
                CachedAnswer::Refuses(outcome, seen) => {
                    // A forced charge refuses for itself only, and is charged anyway.
                    knowledge.refused |= ask.mode == LimitMode::Enforce && !ask.op.is_forced();
                    (outcome, seen)
                }
                CachedAnswer::Reads(outcome, seen) => (outcome, seen),
                // A block that is not in force is not reported.
                CachedAnswer::Nothing if matches!(ask.op, RequestOp::Engine(Op::Block)) => {
                    (inactive_block(&ask.quota), Timestamp::default())
                }
                // It may refuse as well, and for longer; its answer is unknown.
                CachedAnswer::Nothing => return None,
            };
            knowledge.at = knowledge.at.max(seen);
            knowledge.outcomes.push(outcome);
            knowledge.note_block(ask, &outcome);
        }
        Some(knowledge)
    }

    /// Records an enforced block that is not in force, and a limit whose cost can never pass.
    fn note_block(&mut self, ask: &OwnedAsk, outcome: &Outcome) {
        match (ask.op, ask.mode) {
            (RequestOp::Engine(Op::Block), LimitMode::Enforce) if outcome.is_allowed() => {
                self.open.push(ask.limit);
            }
            (RequestOp::Engine(Op::Take(cost) | Op::Debit(cost)), LimitMode::Enforce)
                if cost > ask.quota.cost_max() =>
            {
                self.hopeless.push(ask.limit);
            }
            _ => {}
        }
    }
}

/// Refuses a request that is all of one slot, if Redis would.
pub(crate) fn refuse(deny: &DenyCache, request: &SlotAsks, now: Instant) -> Option<Reply> {
    if deny.is_empty() {
        return None;
    }
    let known = Knowledge::of(deny, request, now).filter(Knowledge::is_free_refusal)?;
    let outcomes = known.outcomes.into_iter().collect();
    Some(Reply::unchanged(known.at, false, outcomes))
}

/// A block that is not in force.
fn inactive_block(quota: &Quota) -> Outcome {
    let bucket = Bucket::new(quota);
    Outcome::of(Wait::NONE, bucket.reading(quota, Timestamp::default()))
}

/// Invalidates cached states of the buckets that a request changes: when it is sent, so that no later
/// request is answered before it, and when its reply arrives.
pub(crate) fn invalidate(deny: &DenyCache, request: &SlotAsks, now: Instant) {
    if deny.is_empty() {
        return;
    }
    for ask in &request.asks {
        let Some(key) = request.keys.get(usize::from(ask.key)) else {
            continue;
        };
        match ask.op {
            RequestOp::Engine(op) if op.cost() > 0 => deny.invalidate(key, &ask.quota, now),
            // It may have room again.
            RequestOp::Engine(op) if op.receipt().is_some() => deny.forget(key, &ask.quota),
            RequestOp::Engine(_) | RequestOp::Drop | RequestOp::Inspect => {}
        }
    }
}

/// Returns the units that must be left for an ask to be allowed, as the engine counts them: including the
/// costs of other asks of the request on the same bucket that come first. `None` if only Redis can
/// decide.
pub(crate) fn wanted(request: &SlotAsks, nth: usize) -> Option<u64> {
    let ask = request.asks.get(nth)?;
    match ask.op {
        // It is refunded in any case, or only Redis can decide.
        RequestOp::Drop | RequestOp::Inspect => None,
        RequestOp::Engine(op) if op.receipt().is_some() => None,
        RequestOp::Engine(op) => Some(match op.needs() {
            0 => 0,
            needed => needed.saturating_add(cost_beside(request, nth)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::refuse;
    use crate::deny::{DenyCache, RefusedBucket};
    use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
    use tidegate_core::{Bucket, LimitMode, Op, Quota, Receipt, Timestamp, step};
    use tokio::time::Instant;

    /// Two of three units were taken, and then two more were refused.
    #[test]
    fn a_cached_refusal_answers_takes_and_tests_and_never_returns() {
        let quota = Quota::new(3, 3_600_000_000).build().unwrap();
        let (mut bucket, at) = (
            Bucket::new(&quota),
            Timestamp::from_millis(1_700_000_000_000),
        );
        step::decide_one(&quota, &mut bucket, Op::Take(2), at);
        let outcome = step::decide_one(&quota, &mut bucket, Op::Take(2), at);
        let (deny, key, sent) = (
            DenyCache::new(1_000),
            RedisKey::from_slice(b"a"),
            Instant::now(),
        );
        let refused = RefusedBucket {
            key: &key,
            quota: &quota,
            cost: 2,
            outcome,
            bucket: &bucket,
        };
        deny.remember(&refused, at, sent);
        let ask = |op| {
            let mut request = SlotAsks::default();
            request.keys.push(key.clone());
            request.asks.push(OwnedAsk {
                key: 0,
                quota,
                op: RequestOp::Engine(op),
                limit: 0,
                mode: LimitMode::Enforce,
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

    /// A cached refusal of the limit is not used: its first refusal has a block to charge.
    #[test]
    fn a_refusal_that_may_charge_a_block_is_decided_by_redis() {
        let quota = Quota::new(1, 3_600_000_000).build().unwrap();
        let block = Quota::block(3_600_000_000).unwrap();
        let at = Timestamp::from_millis(1_700_000_000_000);
        let (deny, key, sent) = (
            DenyCache::new(1_000),
            RedisKey::from_slice(b"a"),
            Instant::now(),
        );
        let remember = |quota: &Quota| {
            let mut bucket = Bucket::new(quota);
            step::decide_one(quota, &mut bucket, Op::Take(1), at);
            let outcome = step::decide_one(quota, &mut bucket, Op::Take(1), at);
            let refused = RefusedBucket {
                key: &key,
                quota,
                cost: 1,
                outcome,
                bucket: &bucket,
            };
            deny.remember(&refused, at, sent);
        };
        let ask = |quota: &Quota, op, limit| OwnedAsk {
            key: 0,
            quota: *quota,
            op: RequestOp::Engine(op),
            limit,
            mode: LimitMode::Enforce,
        };
        let decide = |asks: &[OwnedAsk]| {
            let mut request = SlotAsks::default();
            request.keys.push(key.clone());
            request.asks.extend_from_slice(asks);
            refuse(&deny, &request, sent)
        };
        remember(&quota);
        let take = ask(&quota, Op::Take(1), 0);
        assert!(decide(&[take]).is_some());
        assert!(decide(&[take, ask(&block, Op::Block, 0)]).is_none());
        assert!(
            decide(&[take, ask(&block, Op::Block, 1)]).is_none(),
            "it may be the first refusal"
        );
        let never = ask(&quota, Op::Take(2), 0);
        assert!(decide(&[never, ask(&block, Op::Block, 0)]).is_some());
        assert!(decide(&[never, ask(&block, Op::Block, 1)]).is_none());
        let watched = OwnedAsk {
            mode: LimitMode::Shadow,
            ..ask(&block, Op::Block, 0)
        };
        assert!(decide(&[take, watched]).is_some());

        remember(&block);
        let reply = decide(&[take, ask(&block, Op::Block, 0)]).expect("it is in force");
        assert_eq!(reply.outcomes[1].wait.as_micros(), Some(3_600_000_000));
        assert!(decide(&[ask(&quota, Op::Force(1), 0), ask(&block, Op::Block, 0)]).is_some());
    }

    /// One block in force is not enough if another may begin: another instance may have used up
    /// that limit since.
    #[test]
    fn an_active_block_next_to_a_possible_one_is_decided_by_redis() {
        let hour = 3_600_000_000;
        let quota = |amount, label| Quota::new(amount, hour).label(label).build().unwrap();
        let (full, roomy) = (quota(1, "full"), quota(9, "roomy"));
        let block = Quota::block(hour).unwrap();
        let at = Timestamp::from_millis(1_700_000_000_000);
        let (deny, sent) = (DenyCache::new(1_000), Instant::now());
        let keys = [RedisKey::from_slice(b"a"), RedisKey::from_slice(b"b")];
        // Takes one unit from each, then asks for one more.
        let remember = |key: &RedisKey, quota: &Quota| {
            let mut bucket = Bucket::new(quota);
            step::decide_one(quota, &mut bucket, Op::Take(1), at);
            let refused = RefusedBucket {
                key,
                quota,
                cost: 1,
                outcome: step::decide_one(quota, &mut bucket.clone(), Op::Take(1), at),
                bucket: &bucket,
            };
            deny.remember(&refused, at, sent);
        };
        let asks = [
            (0, full, false),
            (0, block, true),
            (1, roomy, false),
            (1, block, true),
        ];
        let decide = |count: usize| {
            let mut request = SlotAsks::default();
            request.keys.extend(keys.clone());
            let asks = asks
                .iter()
                .take(count)
                .map(|(key, quota, blocks)| OwnedAsk {
                    key: *key,
                    quota: *quota,
                    op: RequestOp::Engine(if *blocks { Op::Block } else { Op::Take(1) }),
                    limit: (*key).into(),
                    mode: LimitMode::Enforce,
                });
            request.asks.extend(asks);
            refuse(&deny, &request, sent)
        };
        let [first, second] = &keys;
        remember(first, &full);
        remember(first, &block);
        remember(second, &roomy);
        assert!(decide(3).is_some(), "the second limit has no block");
        assert!(decide(4).is_none(), "this refusal may start the block");
        remember(second, &block);
        assert!(decide(4).is_some(), "both are in force");
    }
}
