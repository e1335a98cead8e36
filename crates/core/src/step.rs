//! One atomic step over several buckets: ask all, then charge all or none.
//!
//! A store brings the buckets and the instant and makes the step atomic; what happens in it is the
//! same everywhere.

use crate::outcome::BLANK;
use crate::quota::LOG_COST_MAX;
use crate::{Ask, Bucket, Meter, Mode, Op, Outcome, Outcomes, Quota, Receipt, Timestamp, Wait};

/// Decides one enforced operation on one bucket.
///
/// The bucket is changed only if the outcome is allowed, or the operation is [`Op::Force`] or
/// [`Op::Debit`].
#[inline]
pub fn decide_one<M: Meter>(quota: &Quota, bucket: &mut M, op: Op, now: Timestamp) -> Outcome {
    match op {
        Op::Take(cost) if cost > 0 => bucket.take(quota, cost, now),
        _ => decide_plainly(quota, bucket, op, now),
    }
}

/// [`decide_one`], one question at a time.
pub(crate) fn decide_plainly<M: Meter>(
    quota: &Quota,
    bucket: &mut M,
    op: Op,
    now: Timestamp,
) -> Outcome {
    if let Some(receipt) = credited(op, now) {
        let mark = bucket.give_back(quota, receipt, now);
        return Outcome {
            mark,
            ..Outcome::of(Wait::NONE, bucket.reading(quota, now))
        };
    }
    let mut needed = wait(quota, bucket, op, 0, now);
    if needed.is_none() {
        apply(quota, bucket, op, now);
    } else if is_forced(op) {
        apply(quota, bucket, op, now);
        // It was charged though it refused, so the wait has grown.
        needed = wait(quota, bucket, op, 0, now);
    }
    Outcome::of(needed, bucket.reading(quota, now))
}

/// What a step came to.
#[derive(Clone, Debug)]
pub struct Stepped {
    /// Whether the request passes: every enforced ask had room.
    pub passed: bool,
    /// Whether at least all that are not forced had, so that forced charges were made.
    pub taken: bool,
    /// What each ask's bucket answered.
    pub outcomes: Outcomes,
}

/// Decides a request: `places[i]` says which of `buckets` the i-th ask means.
///
/// Tells whether the request passes, and what each ask's bucket answered. What is given back is
/// given back first, and in any case. Where the request does not pass, no bucket has changed but
/// for that, for forced charges that refused themselves, and for blocks of limits that refused. Where
/// it passes, blocks of shadow limits that would have refused are charged. Asks without a place, or
/// with one that is not there, are passed over; that is a bug of the store.
pub fn decide(
    asks: &[Ask<'_>],
    places: &[usize],
    buckets: &mut [Bucket],
    now: Timestamp,
) -> (bool, Outcomes) {
    let stepped = decide_telling(asks, places, buckets, now);
    (stepped.passed, stepped.outcomes)
}

/// [`decide`], which also tells what was charged of a request that does not pass.
pub fn decide_telling(
    asks: &[Ask<'_>],
    places: &[usize],
    buckets: &mut [Bucket],
    now: Timestamp,
) -> Stepped {
    debug_assert_eq!(asks.len(), places.len(), "every ask has a place");
    let mut outcomes = Outcomes::new();
    for (ask, place) in asks.iter().zip(places) {
        let mark = match (ask.op, buckets.get_mut(*place)) {
            (Op::GiveBack(receipt), Some(bucket)) => bucket.give_back(ask.quota, receipt, now),
            _ => 0,
        };
        outcomes.push(Outcome { mark, ..BLANK });
    }
    let mut passed = true;
    let mut taken = true;
    for (i, ask) in asks.iter().enumerate() {
        let wait = wait_of(asks, places, buckets, i, now);
        if ask.mode == Mode::Enforce && !wait.is_none() {
            passed = false;
            taken &= is_forced(ask.op);
        }
        if let Some(outcome) = outcomes.get_mut(i) {
            outcome.wait = wait;
        }
    }
    for mode in [Mode::Enforce, Mode::Shadow] {
        for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
            if ask.mode == mode
                && let Some(bucket) = buckets.get_mut(*place)
                && is_charged(asks, &outcomes, i, passed, taken)
            {
                apply(ask.quota, bucket, ask.op, now);
            }
        }
    }
    for ((ask, place), outcome) in asks.iter().zip(places).zip(outcomes.iter_mut()) {
        if let (Op::Return { .. }, Some(receipt)) = (ask.op, credited(ask.op, now))
            && let Some(bucket) = buckets.get_mut(*place).filter(|_| taken)
        {
            outcome.mark = bucket.give_back(ask.quota, receipt, now);
        }
    }
    // Enforced limits begin blocks where the request is refused, those in shadow mode where it passes.
    let mode = if passed { Mode::Shadow } else { Mode::Enforce };
    block((asks, mode), places, (buckets, &mut outcomes), now);
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        if let (Some(bucket), Some(outcome)) = (buckets.get(*place), outcomes.get_mut(i)) {
            let is_charged = is_forced(ask.op) && taken && ask.mode == Mode::Enforce;
            let wait = if is_charged && !outcome.is_allowed() {
                // It was charged though it refused, so the wait has grown.
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
    Stepped {
        passed,
        taken,
        outcomes,
    }
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
    (asks, mode): (&[Ask<'_>], Mode),
    places: &[usize],
    (buckets, outcomes): (&mut [Bucket], &mut Outcomes),
    now: Timestamp,
) {
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        if let (Op::Block, Some(bucket)) = (ask.op, buckets.get_mut(*place))
            && ask.mode == mode
            && is_refused((asks, mode), outcomes, ask.limit)
            && let Some(outcome) = outcomes.get_mut(i)
        {
            if bucket.wait(ask.quota, 1, now).is_none() {
                bucket.charge(ask.quota, 1, now);
            }
            outcome.wait = bucket.wait(ask.quota, 1, now);
        }
    }
}

/// Whether a limit refuses what is taken of it, and waiting would help. What can never pass is
/// somebody's mistake, and nobody came too often.
fn is_refused((asks, mode): (&[Ask<'_>], Mode), outcomes: &[Outcome], limit: u16) -> bool {
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
        // What is given back has been already, or is in its turn.
        (Op::GiveBack(_) | Op::Return { .. } | Op::Look | Op::Test(_) | Op::Block, _) => false,
        (Op::Force(_) | Op::Debit(_), Mode::Enforce) => taken,
        (Op::Take(_), Mode::Enforce) => passed,
        (_, Mode::Shadow) => {
            let same = |other: &&Ask<'_>| other.limit == ask.limit;
            let all_allow = asks
                .iter()
                .zip(outcomes)
                .filter(|(other, _)| same(other) && other.mode == Mode::Shadow)
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
    let comes_first = |j: usize, other: Mode| match (other, mode) {
        (Mode::Enforce, Some(Mode::Shadow)) => true,
        (Mode::Shadow, Some(Mode::Enforce)) => false,
        _ => j < i,
    };
    asks.iter()
        .zip(places)
        .enumerate()
        .filter(|(j, (ask, other))| Some(*other) == place && comes_first(*j, ask.mode))
        .fold(0, |sum, (_, (ask, _))| match ask.op {
            Op::Take(cost) | Op::Force(cost) | Op::Debit(cost) => cost.saturating_add(sum),
            Op::Look | Op::Test(_) | Op::GiveBack(_) | Op::Return { .. } | Op::Block => sum,
        })
}

#[inline]
fn wait<M: Meter>(quota: &Quota, bucket: &M, op: Op, beside: u64, now: Timestamp) -> Wait {
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

/// Whether `op` is charged even where it refuses itself, and so keeps no other such charge back.
fn is_forced(op: Op) -> bool {
    matches!(op, Op::Force(_) | Op::Debit(_))
}

/// What `op` gives back if it is carried out now.
fn credited(op: Op, now: Timestamp) -> Option<Receipt> {
    match op {
        Op::GiveBack(receipt) => Some(receipt),
        Op::Return { receipt, by } if now <= by => Some(receipt),
        _ => None,
    }
}

#[inline]
fn apply<M: Meter>(quota: &Quota, bucket: &mut M, op: Op, now: Timestamp) {
    match op {
        // What is given back has been already, or is in its turn; a block is charged by a refusal.
        Op::Look
        | Op::Test(_)
        | Op::GiveBack(_)
        | Op::Return { .. }
        | Op::Block
        | Op::Take(0)
        | Op::Force(0)
        | Op::Debit(0) => {}
        Op::Take(cost) => bucket.charge(quota, cost, now),
        Op::Force(cost) | Op::Debit(cost) => bucket.force(quota, cost, now),
    }
}
