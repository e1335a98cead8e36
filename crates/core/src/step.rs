//! One atomic step over several buckets: ask all, then charge all or none.
//!
//! A store brings the buckets and the instant and makes the step atomic; what happens in it is the
//! same everywhere.

use crate::algorithm::questions::{apply, credited, decide_by_questions, wait};
use crate::outcome::BLANK;
use crate::{
    Ask, Bucket, BucketState, ChargedOutcome, LimitMode, Op, Outcome, Quota, Reply, Timestamp, Wait,
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

/// Decides like [`decide_one`], and also returns the units charged or refunded.
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
        decide_by_questions(quota, bucket, op, now)
    }
}

/// Decides a request: `places[i]` is the index in `buckets` of the i-th ask's bucket.
///
/// Refunds ([`Op::GiveBack`]) and releases come first, and happen in any case. If the request does not pass, the
/// only other changes are forced charges that refused themselves, and blocks of limits that
/// refused. If it passes, blocks of shadow limits that would have refused are charged.
/// [`Reply::applied`] has the asks that changed their bucket.
///
/// An ask without a place, or with an index out of range, is skipped; that is a bug of the store.
///
/// ```
/// use tidegate_core::{Ask, Bucket, Quota, Timestamp, step};
///
/// let quota = Quota::new(3, 1_000_000).build()?;
/// // Two asks for the same bucket: both costs have to fit together.
/// let asks = [Ask::take(b"a", &quota, 2), Ask::take(b"a", &quota, 2)];
/// let mut buckets = [Bucket::new(&quota)];
/// let now = Timestamp::from_millis(1_700_000_000_000);
/// let reply = step::decide(&asks, &[0, 0], &mut buckets, now);
/// assert!(!reply.passed && reply.outcomes[1].remaining == 3);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
pub fn decide(asks: &[Ask<'_>], places: &[usize], buckets: &mut [Bucket], now: Timestamp) -> Reply {
    debug_assert_eq!(asks.len(), places.len(), "every ask has a place");
    if is_outside(asks, now) {
        return Reply::undecided(now, asks.len());
    }
    let mut reply = Reply::new(now, true);
    give_back(asks, places, buckets, &mut reply);
    let mut verdict = StepVerdict::PASSED;
    for (i, ask) in asks.iter().enumerate() {
        let wait = wait_of(asks, places, buckets, i, now);
        if !wait.is_none() {
            verdict.refuse(ask.mode, ask.op.is_forced());
        }
        if let Some(outcome) = reply.outcomes.get_mut(i) {
            outcome.wait = wait;
        }
    }
    reply.passed = verdict.passed;
    for mode in [LimitMode::Enforce, LimitMode::Shadow] {
        for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
            if ask.mode == mode
                && let Some(bucket) = buckets.get_mut(*place)
                && ask.op.acts()
                && verdict.charges(ask.mode, ask.op.is_forced())
                && (mode == LimitMode::Enforce || allows(asks, &reply.outcomes, ask.limit))
            {
                let units = apply(ask.quota, bucket, ask.op, now);
                reply.applied.charge(i, ask.op, units);
            }
        }
    }
    if verdict.taken {
        refund_after_charges(asks, places, buckets, &mut reply);
    }
    // Enforced limits begin blocks where the request is refused, those in shadow mode where it passes.
    let mode = if reply.passed {
        LimitMode::Shadow
    } else {
        LimitMode::Enforce
    };
    block((asks, mode), places, buckets, &mut reply);
    read_outcomes(asks, places, buckets, (&mut reply, verdict.taken));
    reply
}

/// Returns true if `now` is in none of the [windows](Quota::with_starts) that a quota of the request knows.
/// Then nothing is decided, and the reply is [`Reply::undecided`].
#[inline]
pub fn is_outside(asks: &[Ask<'_>], now: Timestamp) -> bool {
    asks.iter().any(|ask| ask.quota.is_outside(now))
}

/// Makes the refunds and releases that happen in any case, and adds an outcome for every ask.
#[inline]
fn give_back(asks: &[Ask<'_>], places: &[usize], buckets: &mut [Bucket], reply: &mut Reply) {
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        let mark = match (ask.op, buckets.get_mut(*place)) {
            (Op::GiveBack(receipt), Some(bucket)) => {
                reply.applied.add(i);
                bucket.give_back(ask.quota, receipt, reply.at)
            }
            (Op::Release(id), Some(bucket)) => {
                if bucket.release(id, reply.at) > 0 {
                    reply.applied.add(i);
                }
                0
            }
            _ => 0,
        };
        reply.outcomes.push(Outcome { mark, ..BLANK });
    }
}

/// Makes the refunds that come after the charges.
#[inline]
fn refund_after_charges(
    asks: &[Ask<'_>],
    places: &[usize],
    buckets: &mut [Bucket],
    reply: &mut Reply,
) {
    for (i, (ask, place)) in asks.iter().zip(places).enumerate() {
        if let (Op::Return { .. }, Some(receipt)) = (ask.op, credited(ask.op, reply.at))
            && let Some(bucket) = buckets.get_mut(*place)
            && let Some(outcome) = reply.outcomes.get_mut(i)
        {
            outcome.mark = bucket.give_back(ask.quota, receipt, reply.at);
            reply.applied.add(i);
        }
    }
}

/// Reads the state of every bucket after the step into the outcomes. `taken`: at least all forced
/// charges were made.
#[inline]
fn read_outcomes(
    asks: &[Ask<'_>],
    places: &[usize],
    buckets: &[Bucket],
    (reply, taken): (&mut Reply, bool),
) {
    let now = reply.at;
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

/// Returns true if a limit refuses a charge for which waiting would help.
fn is_refused((asks, mode): (&[Ask<'_>], LimitMode), outcomes: &[Outcome], limit: u16) -> bool {
    let charges = asks
        .iter()
        .zip(outcomes)
        .filter(|(ask, _)| ask.limit == limit && ask.mode == mode && ask.op.cost() > 0);
    is_block_due(charges.map(|(_, outcome)| outcome.wait))
}

/// Returns true if a limit whose charges have to wait this long blocks its subject. A cost that can never
/// pass is a mistake of the configuration or the caller, and no reason to block.
pub fn is_block_due(waits: impl Iterator<Item = Wait>) -> bool {
    let longest = waits.max();
    longest.is_some_and(|wait| !wait.is_none() && !wait.is_never())
}

/// Returns true if all bands of a limit in shadow mode allow the request.
fn allows(asks: &[Ask<'_>], outcomes: &[Outcome], limit: u16) -> bool {
    let mut asks = asks.iter().zip(outcomes);
    asks.all(|(ask, outcome)| {
        ask.limit != limit || ask.mode != LimitMode::Shadow || outcome.is_allowed()
    })
}

/// The verdict of all buckets of a request together. It determines which asks are charged.
///
/// For stores that decide the buckets of a request in several places. Those that have all of them call
/// [`decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepVerdict {
    /// True if every enforced bucket has room.
    pub passed: bool,
    /// True if every enforced bucket has room whose charge is not [forced](crate::Op::is_forced).
    pub taken: bool,
}

impl StepVerdict {
    /// The verdict if no bucket refuses.
    pub const PASSED: Self = Self {
        passed: true,
        taken: true,
    };

    /// Adds a bucket that refuses.
    #[inline]
    pub fn refuse(&mut self, mode: LimitMode, is_forced: bool) {
        if mode == LimitMode::Enforce {
            self.passed = false;
            self.taken &= is_forced;
        }
    }

    /// Returns true if an ask with a cost is charged. One in shadow mode is only if all bands of its limit
    /// allow as well.
    #[inline]
    pub const fn charges(self, mode: LimitMode, is_forced: bool) -> bool {
        match mode {
            LimitMode::Enforce if is_forced => self.taken,
            LimitMode::Enforce | LimitMode::Shadow => self.passed,
        }
    }
}

/// Returns the units that other asks of the same request take from the i-th ask's bucket first.
fn cost_beside(asks: &[Ask<'_>], places: &[usize], i: usize) -> u64 {
    let (place, Some(ask)) = (places.get(i), asks.get(i)) else {
        return 0;
    };
    let numbered = asks.iter().zip(places).enumerate();
    let same = numbered.filter(|(_, (_, other))| Some(*other) == place);
    let same = same.map(|(j, (other, _))| (j, other.mode, other.op.cost()));
    cost_ahead(same, (i, ask.mode))
}

/// Returns the units that are taken from a bucket before the ask of this number and mode: by earlier
/// enforced asks. For a shadow, which comes after those, by all enforced ones and earlier shadows.
///
/// `same` has the number, the mode and the cost of each ask of the request on this bucket. At one instant,
/// two costs on one bucket equal their sum.
#[inline]
pub fn cost_ahead(
    same: impl Iterator<Item = (usize, LimitMode, u64)>,
    (nth, mode): (usize, LimitMode),
) -> u64 {
    let comes_first = |other_nth: usize, other: LimitMode| match (other, mode) {
        (LimitMode::Enforce, LimitMode::Shadow) => true,
        (LimitMode::Shadow, LimitMode::Enforce) => false,
        (LimitMode::Enforce, LimitMode::Enforce) | (LimitMode::Shadow, LimitMode::Shadow) => {
            other_nth < nth
        }
    };
    let ahead = same.filter(|(other_nth, other, _)| comes_first(*other_nth, *other));
    ahead.fold(0, |sum, (_, _, cost)| cost.saturating_add(sum))
}
