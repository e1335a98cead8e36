//! One operation on one bucket, decided through the methods of its state.

use super::BucketState;
use crate::{ChargedOutcome, Op, Outcome, Quota, Receipt, Timestamp, Wait};

/// Decides one enforced operation on one bucket through the separate methods of [`BucketState`].
pub(crate) fn decide_by_questions<M: BucketState>(
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
    if let Op::Release(id) = op {
        let units = bucket.release(id, now);
        let outcome = Outcome::of(Wait::NONE, bucket.reading(quota, now));
        return ChargedOutcome { outcome, units };
    }
    let mut needed = wait(quota, bucket, op, 0, now);
    let mut units = 0;
    if needed.is_none() || op.is_forced() {
        units = apply(quota, bucket, op, now);
        if !needed.is_none() {
            // It was charged though it refused, so the wait has grown.
            needed = wait(quota, bucket, op, 0, now);
        }
    }
    let outcome = Outcome::of(needed, bucket.reading(quota, now));
    ChargedOutcome { outcome, units }
}

/// Returns how long `op` must wait if other asks take `beside` units first.
#[inline]
pub(crate) fn wait<M: BucketState>(
    quota: &Quota,
    bucket: &M,
    op: Op,
    beside: u64,
    now: Timestamp,
) -> Wait {
    match (op, op.needs()) {
        (Op::Acquire(terms), _) => bucket.acquire_wait(quota, terms, beside, now),
        // They have ended, or were released, and others may have them by now.
        (Op::Renew { id, .. }, _) if !bucket.has_permits(id, now) => Wait::NEVER,
        (_, 0) => Wait::NONE,
        (_, needed) => bucket.wait(quota, needed.saturating_add(beside), now),
    }
}

/// Returns the receipt that `op` refunds if it is carried out at `now`.
#[inline]
pub(crate) fn credited(op: Op, now: Timestamp) -> Option<Receipt> {
    let is_late = matches!(op, Op::Return { by, .. } if now > by);
    op.receipt().filter(|_| !is_late)
}

/// Charges `op`, and returns the whole units charged.
#[inline]
pub(crate) fn apply<M: BucketState>(quota: &Quota, bucket: &mut M, op: Op, now: Timestamp) -> u64 {
    match op {
        // Refunds happen before or after the charges, releases before; a refusal charges a block.
        Op::Look
        | Op::Release(_)
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
        Op::Acquire(terms) => bucket.acquire(quota, terms, now),
        Op::Renew { id, ttl_us } => {
            bucket.renew(id, ttl_us, now);
            0
        }
    }
}
