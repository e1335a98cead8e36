//! One atomic step over several buckets: ask all, then charge all or none.
//!
//! A store brings the buckets and the instant and makes the step atomic; what happens in it is the
//! same everywhere.

use crate::outcome::BLANK;
use crate::quota::LOG_COST_MAX;
use crate::{
    Ask, Bucket, BucketState, ChargedOutcome, LimitMode, Op, Outcome, Quota, Receipt, Reply,
    Timestamp, Wait,
};

/// Decides one enforced operation on one bucket.
///
/// The bucket is changed only if the outcome is allowed, or the operation is [`Op::Force`] or
/// [`Op::Debit`].
#[inline]
pub fn decide_one<M: BucketState>(
    quota: &Quota,
    bucket: &mut M,
    op: Op,
    now: Timestamp,
) -> Outcome {
    charge_one(quota, bucket, op, now).outcome
}

/// [`decide_one`], which also returns the units charged or given back.
#[inline]
pub fn charge_one<M: BucketState>(
    quota: &Quota,
    bucket: &mut M,
    op: Op,
    now: Timestamp,
) -> ChargedOutcome {
    if let Op::Take(cost @ 1..) = op {
        let outcome = bucket.take(quota, cost, now);
        let units = if outcome.is_allowed() { cost } else { 0 };
        ChargedOutcome { outcome, units }
    } else {
        decide_plainly(quota, bucket, op, now)
    }
}

/// [`charge_one`], one question at a time.
pub(crate) fn decide_plainly<M: BucketState>(
    quota: &Quota,
    bucket: &mut M,
    op: Op,
    now: Timestamp,
) -> ChargedOutcome {
    if let Some(receipt) = credited(op, now) {
        let mark = bucket.give_back(quota, receipt, now);
        let outcome = Outcome {
            mark,
            ..Outcome::of(Wait::NONE, bucket.reading(quota, now))
        };
        let units = receipt.cost;
        return ChargedOutcome { outcome, units };
    }
    let mut needed = wait(quota, bucket, op, 0, now);
    let mut units = 0;
    if needed.is_none() {
        units = apply(quota, bucket, op, now);
    } else if op.is_forced() {
        units = apply(quota, bucket, op, now);
        // It was charged though it refused, so the wait has grown.
        needed = wait(quota, bucket, op, 0, now);
    }
    let outcome = Outcome::of(needed, bucket.reading(quota, now));
    ChargedOutcome { outcome, units }
}

/// Decides a request: `places[i]` is the index in `buckets` of the i-th ask's bucket.
///
/// What is given back is given back first, and in any case. Where the request does not pass, no bucket
/// has changed but for that, for forced charges that refused themselves, and for blocks of limits that
/// refused. Where it passes, blocks of shadow limits that would have refused are charged.
/// [`Reply::applied`] has the asks that did change one. Asks without a place, or with one that
/// is not there, are skipped; that is a bug of the store.
pub fn decide(asks: &[Ask<'_>], places: &[usize], buckets: &mut [Bucket], now: Timestamp) -> Reply {
    debug_assert_eq!(asks.len(), places.len(), "every ask has a place");
    let mut reply = Reply::new(now, true);
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        let mark = match (ask.op, buckets.get_mut(*place)) {
            (Op::GiveBack(receipt), Some(bucket)) => {
                reply.applied.add(i);
                bucket.give_back(ask.quota, receipt, now)
            }
            _ => 0,
        };
        reply.outcomes.push(Outcome { mark, ..BLANK });
    }
    let mut taken = true;
    for (i, ask) in asks.iter().enumerate() {
        let wait = wait_of(asks, places, buckets, i, now);
        if ask.mode == LimitMode::Enforce && !wait.is_none() {
            reply.passed = false;
            taken &= ask.op.is_forced();
        }
        if let Some(outcome) = reply.outcomes.get_mut(i) {
            outcome.wait = wait;
        }
    }
    for mode in [LimitMode::Enforce, LimitMode::Shadow] {
        for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
            if ask.mode == mode
                && let Some(bucket) = buckets.get_mut(*place)
                && is_charged(asks, &reply.outcomes, i, reply.passed, taken)
            {
                let units = apply(ask.quota, bucket, ask.op, now);
                reply.applied.charge(i, ask.op, units);
            }
        }
    }
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        if let (Op::Return { .. }, Some(receipt)) = (ask.op, credited(ask.op, now))
            && let Some(bucket) = buckets.get_mut(*place).filter(|_| taken)
            && let Some(outcome) = reply.outcomes.get_mut(i)
        {
            outcome.mark = bucket.give_back(ask.quota, receipt, now);
            reply.applied.add(i);
        }
    }
    // Enforced limits begin blocks where the request is refused, those in shadow mode where it passes.
    let mode = if reply.passed {
        LimitMode::Shadow
    } else {
        LimitMode::Enforce
    };
    block((asks, mode), places, buckets, &mut reply);
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        if let (Some(bucket), Some(outcome)) = (buckets.get(*place), reply.outcomes.get_mut(i)) {
            let is_debited = ask.op.is_forced() && ask.mode == LimitMode::Enforce && taken;
            let wait = if is_debited && !outcome.is_allowed() {
                // It, or another of its bucket, was charged though it refused: the wait has grown.
                wait_of(asks, places, buckets, i, now)
            } else {
                outcome.wait
            };
            let credited = outcome.mark;
            *outcome = Outcome::of(wait, bucket.reading(ask.quota, now));
            if let Op::GiveBack(_) | Op::Return { .. } = ask.op {
                outcome.mark = credited;
            }
        }
    }
    reply
}

/// Returns how long the i-th ask of a request must wait as its bucket is now, if the request is decided
/// as a whole: the earlier asks that use the same bucket take their cost first.
pub fn wait_of(
    asks: &[Ask<'_>],
    places: &[usize],
    buckets: &[Bucket],
    i: usize,
    now: Timestamp,
) -> Wait {
    let bucket = places.get(i).and_then(|place| buckets.get(*place));
    match (asks.get(i), bucket) {
        (Some(ask), Some(bucket)) => {
            let beside = cost_beside(asks, places, i);
            wait(ask.quota, bucket, ask.op, beside, now)
        }
        _ => Wait::NONE,
    }
}

/// Charges the blocks of those limits of a mode that refuse, unless they are in force already.
fn block(
    (asks, mode): (&[Ask<'_>], LimitMode),
    places: &[usize],
    buckets: &mut [Bucket],
    reply: &mut Reply,
) {
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        if let (Op::Block, Some(bucket)) = (ask.op, buckets.get_mut(*place))
            && ask.mode == mode
            && is_refused((asks, mode), &reply.outcomes, ask.limit)
            && let Some(outcome) = reply.outcomes.get_mut(i)
        {
            if bucket.wait(ask.quota, 1, reply.at).is_none() {
                bucket.charge(ask.quota, 1, reply.at);
                reply.applied.add(i);
            }
            outcome.wait = bucket.wait(ask.quota, 1, reply.at);
        }
    }
}

/// Whether a limit refuses what is taken of it, and waiting would help. What can never pass is
/// somebody's mistake, and nobody came too often.
fn is_refused((asks, mode): (&[Ask<'_>], LimitMode), outcomes: &[Outcome], limit: u16) -> bool {
    let taken = asks.iter().zip(outcomes).filter(|(ask, _)| {
        ask.limit == limit
            && ask.mode == mode
            && matches!(ask.op, Op::Take(_) | Op::Force(_) | Op::Debit(1..))
    });
    let longest = taken.map(|(_, outcome)| outcome.wait).max();
    longest.is_some_and(|wait| !wait.is_none() && !wait.is_never())
}

/// Whether the i-th ask is charged: `passed` if all enforced asks have room, `taken` if at least
/// all that are not forced have.
fn is_charged(asks: &[Ask<'_>], outcomes: &[Outcome], i: usize, passed: bool, taken: bool) -> bool {
    let Some(ask) = asks.get(i) else { return false };
    match (ask.op, ask.mode) {
        // What is given back has been already, or is in its turn; a block is charged by a refusal.
        _ if ask.op.cost() == 0 => false,
        (Op::Force(_) | Op::Debit(_), LimitMode::Enforce) => taken,
        (_, LimitMode::Enforce) => passed,
        (_, LimitMode::Shadow) => {
            let same = |other: &&Ask<'_>| other.limit == ask.limit;
            let all_allow = asks
                .iter()
                .zip(outcomes)
                .filter(|(other, _)| same(other) && other.mode == LimitMode::Shadow)
                .all(|(_, outcome)| outcome.is_allowed());
            passed && all_allow
        }
    }
}

/// What other asks of the same request take from the i-th ask's bucket before its turn: earlier
/// enforced ones, and for a shadow, whose turn comes after theirs, all enforced ones and earlier
/// shadows.
///
/// At one instant, two costs on one bucket are as good as their sum.
fn cost_beside(asks: &[Ask<'_>], places: &[usize], i: usize) -> u64 {
    let (place, mode) = (places.get(i), asks.get(i).map(|ask| ask.mode));
    let comes_first = |j: usize, other: LimitMode| match (other, mode) {
        (LimitMode::Enforce, Some(LimitMode::Shadow)) => true,
        (LimitMode::Shadow, Some(LimitMode::Enforce)) => false,
        _ => j < i,
    };
    asks.iter()
        .zip(places)
        .enumerate()
        .filter(|(j, (ask, other))| Some(*other) == place && comes_first(*j, ask.mode))
        .fold(0, |sum, (_, (ask, _))| ask.op.cost().saturating_add(sum))
}

#[inline]
fn wait<M: BucketState>(quota: &Quota, bucket: &M, op: Op, beside: u64, now: Timestamp) -> Wait {
    match op {
        Op::Look | Op::GiveBack(_) | Op::Return { .. } | Op::Take(0) | Op::Force(0) => Wait::NONE,
        Op::Take(cost) | Op::Debit(cost) | Op::Test(cost)
            if cost > LOG_COST_MAX && cost > quota.cost_max() =>
        {
            Wait::NEVER
        }
        Op::Take(cost) => bucket.wait(quota, cost.saturating_add(beside), now),
        Op::Debit(cost) | Op::Test(cost) => {
            bucket.wait(quota, cost.max(1).saturating_add(beside), now)
        }
        // Taken in any case, or where others refuse: what it asks is whether anything is left.
        Op::Force(_) | Op::Block => bucket.wait(quota, beside.saturating_add(1), now),
    }
}

/// What `op` gives back if it is carried out now.
fn credited(op: Op, now: Timestamp) -> Option<Receipt> {
    let is_late = matches!(op, Op::Return { by, .. } if now > by);
    op.receipt().filter(|_| !is_late)
}

/// Charges `op`, and returns the whole units charged.
#[inline]
fn apply<M: BucketState>(quota: &Quota, bucket: &mut M, op: Op, now: Timestamp) -> u64 {
    match op {
        // What is given back has been already, or is in its turn; a block is charged by a refusal.
        Op::Look
        | Op::Test(_)
        | Op::GiveBack(_)
        | Op::Return { .. }
        | Op::Block
        | Op::Take(0)
        | Op::Force(0)
        | Op::Debit(0) => 0,
        Op::Take(cost) => {
            bucket.charge(quota, cost, now);
            cost
        }
        Op::Force(cost) | Op::Debit(cost) => bucket.force(quota, cost, now),
    }
}
