//! Refunds of token buckets: never above the envelope, never more than the exact credit.
//!
//! The model credits exactly: it replays history without the charge. A bucket knows only an upper
//! bound of its lowest debt since the charge, so it may credit less, and never more.

use crate::world::{Act, Pause, Spec, Walk, acts, cost, fine_spec_of, start_us};
use proptest::prelude::*;
use tidegate_core::{Algorithm, Bucket, BucketState, Op, Quota, Receipt, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

/// Mostly token buckets that refill in milliseconds to seconds.
fn refundable() -> impl Strategy<Value = Spec> {
    let usual =
        (1..=50_u64, 1_000..=2_000_000_u64, 1..=40_u64).prop_map(|(amount, period_us, burst)| {
            Spec {
                burst: Some(burst),
                refundable: true,
                ..Spec::of(Algorithm::TokenBucket, amount, period_us)
            }
        });
    prop_oneof![
        usual,
        fine_spec_of(Just(Algorithm::TokenBucket)).prop_map(|spec| Spec {
            refundable: true,
            ..spec
        }),
    ]
    .prop_filter("must be representable in microseconds", |spec| {
        spec.fine().is_some()
    })
}

/// Overlapping reservations: takes, each refunded some milliseconds later.
fn reservations(steps: usize) -> impl Strategy<Value = Vec<(Pause, Act)>> {
    let pause = prop_oneof![
        2 => Just(Pause::None),
        4 => (0..=30_000_u64).prop_map(Pause::Micros),
        1 => (0..=300_000_u64).prop_map(Pause::Micros),
        1 => (0..=600_u64).prop_map(Pause::Unit),
        1 => (0..=1_u64).prop_map(Pause::Wait),
    ];
    let act = prop_oneof![
        3 => cost().prop_map(Act::Take),
        2 => any::<usize>().prop_map(Act::GiveBack),
    ];
    prop::collection::vec((pause, act), 1..=steps)
}

/// Compares the bucket with the model through `trace`: the model admits all that the bucket admits,
/// and the bucket never has more left than the model.
fn never_more_than_the_model(
    spec: &Spec,
    start_us: u64,
    trace: Vec<(Pause, Act)>,
) -> Result<(), TestCaseError> {
    let quota = spec.build().unwrap();
    let mut walk = Walk::new(&quota, start_us);
    let mut model = ModelBucket::new(spec.model());
    for (pause, act) in trace {
        walk.pause(pause);
        let op = walk.op(act);
        let outcome = walk.decide(op);
        match op {
            Op::Take(cost) if outcome.is_allowed() => {
                prop_assert!(model.take(walk.now_us, cost).allowed, "{op:?}");
            }
            Op::GiveBack(Receipt { at, cost, .. }) => {
                model.give_back(walk.now_us, at.as_micros(), cost);
            }
            _ => {}
        }
        let exact = model.would(walk.now_us, 0);
        prop_assert!(
            outcome.remaining <= exact.remaining,
            "{op:?} at {}",
            walk.now_us
        );
        prop_assert!(
            outcome.reset_us >= exact.reset_us,
            "{op:?} at {}",
            walk.now_us
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    #[test]
    fn a_refund_never_credits_more_than_exactly(
        spec in refundable(),
        start_us in start_us(),
        trace in reservations(40),
    ) {
        never_more_than_the_model(&spec, start_us, trace)?;
    }

    /// A quota that is not refundable stores no credits. It refunds by the elapsed time alone.
    #[test]
    fn a_refund_without_a_receipt_never_credits_more_either(
        spec in refundable(),
        start_us in start_us(),
        trace in reservations(30),
    ) {
        never_more_than_the_model(&Spec { refundable: false, ..spec }, start_us, trace)?;
    }

    /// The units admitted and not refunded in any interval, against burst + amount × length /
    /// period. Counted without a model.
    #[test]
    fn usage_never_exceeds_the_envelope(
        spec in refundable(),
        start_us in start_us(),
        trace in reservations(60),
    ) {
        let quota = spec.build().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            walk.decide(op);
        }
        walk.taken.sort_by_key(|receipt| receipt.at);
        let (amount, period) = (u128::from(spec.amount), u128::from(spec.period_us));
        for (i, from) in walk.taken.iter().enumerate() {
            let mut sum = 0;
            for to in &walk.taken[i..] {
                sum += u128::from(to.cost);
                let length = u128::from(to.at.since(from.at));
                let burst = u128::from(quota.capacity());
                prop_assert!(sum * period <= burst * period + amount * length);
            }
        }
    }

    /// Refunds mixed with forced charges and all other operations.
    #[test]
    fn a_bucket_stays_within_its_bounds_after_any_refund(
        spec in refundable(),
        start_us in start_us(),
        trace in acts(40),
    ) {
        let quota = spec.build().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            let before = walk.bucket.reading(&quota, walk.now());
            let outcome = walk.decide(op);
            prop_assert!(outcome.remaining <= quota.capacity());
            if let Op::GiveBack(receipt) = op {
                let after = outcome.remaining;
                prop_assert!(after >= before.remaining, "a refund never charges");
                prop_assert!(after - before.remaining <= receipt.cost + 1);
            }
        }
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + ms)
}

/// A bucket in debt: 1,000 a second, burst 100,000, half of it taken.
fn busy() -> (Quota, Bucket) {
    let quota = Quota::new(1_000, 1_000_000)
        .burst(100_000)
        .refundable(true)
        .build()
        .unwrap();
    let mut bucket = Bucket::new(&quota);
    step::decide_one(&quota, &mut bucket, Op::Take(50_000), at(0));
    (quota, bucket)
}

fn take(quota: &Quota, bucket: &mut Bucket, cost: u64, now: Timestamp) -> Receipt {
    let outcome = step::decide_one(quota, bucket, Op::Take(cost), now);
    assert!(outcome.is_allowed());
    outcome.receipt(now, cost)
}

fn credit(quota: &Quota, bucket: &mut Bucket, receipt: Receipt, now: Timestamp) -> u64 {
    let before = bucket.reading(quota, now).remaining;
    let outcome = step::decide_one(quota, bucket, Op::GiveBack(receipt), now);
    assert!(outcome.is_allowed() && outcome.wait.is_none());
    outcome.remaining - before
}

/// The reason to count credits: under load a reservation is refunded in full even though the clock
/// has long paid off its units.
#[test]
fn under_load_a_reservation_of_any_age_is_fully_refunded() {
    for back in [211, 399, 10_000, 50_000] {
        let (quota, mut bucket) = busy();
        let receipt = take(&quota, &mut bucket, 10, at(210));
        take(&quota, &mut bucket, 1, at(211));
        assert_eq!(credit(&quota, &mut bucket, receipt, at(back)), 10, "{back}");
    }
}

/// The debt before the reservation is paid off at 50 s; from then on, the reservation's own units
/// are.
#[test]
fn a_reservation_refund_excludes_the_part_paid_off() {
    for (back, expected) in [(50_000, 150), (50_100, 50), (50_150, 0), (70_000, 0)] {
        let (quota, mut bucket) = busy();
        let receipt = take(&quota, &mut bucket, 150, at(210));
        take(&quota, &mut bucket, 40_000, at(30_000));
        let found = credit(&quota, &mut bucket, receipt, at(back));
        assert_eq!(found, expected, "{back}");
    }
}

/// Neither the receipt nor the quota counts credits.
#[test]
fn by_time_alone_only_the_unpaid_part_is_refunded() {
    let (quota, mut bucket) = busy();
    let receipt = take(&quota, &mut bucket, 150, at(210));
    let plain = Receipt::by_the_clock(receipt.at, receipt.cost);
    assert_eq!(credit(&quota, &mut bucket.clone(), plain, at(310)), 50);
    let forgetful = quota.with_refundable(false);
    assert_eq!(
        credit(&forgetful, &mut bucket.clone(), receipt, at(310)),
        50
    );
    assert_eq!(credit(&quota, &mut bucket, receipt, at(310)), 150);
}

/// Refunding an earlier reservation lowered the debt that a later one relied on.
#[test]
fn a_refund_lowers_the_debt_below_later_reservations() {
    let taken = [(0, 100), (1, 30), (2, 200), (3, 500)];
    for first in [0, 2] {
        let spec = Spec {
            burst: Some(1_000),
            refundable: true,
            ..Spec::of(Algorithm::TokenBucket, 1_000, 1_000_000)
        };
        let quota = spec.build().unwrap();
        let (mut bucket, mut model) = (Bucket::new(&quota), ModelBucket::new(spec.model()));
        let receipts = taken.map(|(ms, cost)| {
            model.take(at(ms).as_micros(), cost);
            take(&quota, &mut bucket, cost, at(ms))
        });
        let now = at(120);
        for receipt in [receipts[first], receipts[1]] {
            credit(&quota, &mut bucket, receipt, now);
            model.give_back(now.as_micros(), receipt.at.as_micros(), receipt.cost);
            let exact = model.would(now.as_micros(), 0).remaining;
            let remaining = bucket.reading(&quota, now).remaining;
            assert!(remaining <= exact, "{remaining} of {exact}");
        }
    }
}

/// Credits for later charges do not reduce the refund of an earlier charge. A receipt that knows of
/// them is refunded in full.
#[test]
fn later_credits_do_not_reduce_the_refund_of_a_reservation() {
    let (quota, mut bucket) = busy();
    let mut first = take(&quota, &mut bucket, 10_000, at(1));
    let second = take(&quota, &mut bucket, 40_000, at(2));
    let back = step::decide_one(&quota, &mut bucket, Op::GiveBack(second), at(20_000));
    assert_eq!(back.mark, 40_000_000, "its own credit, in microseconds");
    let mut unaware = bucket.clone();
    assert_eq!(credit(&quota, &mut unaware, first, at(20_000)), 0);
    first.behind = back.mark;
    assert_eq!(credit(&quota, &mut bucket, first, at(20_000)), 10_000);
}

/// An expired bucket forgets its credit count, and so does a bucket that was not begun.
#[test]
fn a_receipt_older_than_a_full_bucket_is_refunded_by_time_alone() {
    let quota = Quota::new(1_000, 1_000_000)
        .burst(100_000)
        .refundable(true)
        .build()
        .unwrap();
    let mut bucket = Bucket::new(&quota);
    let under = take(&quota, &mut bucket, 100_000, at(0));
    step::decide_one(&quota, &mut bucket, Op::GiveBack(under), at(0));
    let under = take(&quota, &mut bucket, 99_000, at(0));
    let stale = take(&quota, &mut bucket, 1_000, at(0));
    step::decide_one(&quota, &mut bucket, Op::GiveBack(under), at(1_000));
    assert_eq!(bucket.reading(&quota, at(2_000)).reset_us, 0);
    for mut bucket in [bucket, Bucket::new(&quota)] {
        let fresh = take(&quota, &mut bucket, 50_000, at(3_000));
        assert_eq!(fresh.mark, 0);
        assert_eq!(credit(&quota, &mut bucket, stale, at(3_000)), 0);
    }
}

/// The credit count stays exact after any number of refunds. Before it would become inexact it
/// restarts, and older receipts count for nothing.
#[test]
fn a_credit_count_restarts_before_it_overflows() {
    let month_us = 2_592_000_000_000;
    let quota = Quota::new(1, month_us)
        .burst(1_000)
        .refundable(true)
        .build()
        .unwrap();
    let mut bucket = Bucket::new(&quota);
    take(&quota, &mut bucket, 1, at(0));
    let old = take(&quota, &mut bucket, 1, at(0));
    let mut renewed = 0;
    for n in 0..20 {
        let receipt = take(&quota, &mut bucket, 990, at(1));
        renewed += u64::from(n > 0 && receipt.mark == 0);
        assert_eq!(credit(&quota, &mut bucket, receipt, at(2)), 990, "{n}");
    }
    assert!(renewed > 1);
    let mut forgetful = bucket.clone();
    let later = at(0).plus(month_us / 2);
    take(&quota, &mut forgetful, 500, later);
    let before = forgetful.reading(&quota, later).reset_us;
    step::decide_one(&quota, &mut forgetful, Op::GiveBack(old), later);
    let credited = before - forgetful.reading(&quota, later).reset_us;
    assert_eq!(credited, 0, "the receipt is older than the count");
}

/// Regression: after the state was lost, each earlier charge could be refunded out of the charges
/// of others since, by what the clock had not paid off.
#[test]
fn charges_from_before_the_state_was_lost_were_refunded() {
    let (quota, mut bucket) = busy();
    let receipt = take(&quota, &mut bucket, 100, at(10));
    for by_the_clock in [false, true] {
        let receipt = if by_the_clock {
            Receipt::by_the_clock(receipt.at, receipt.cost)
        } else {
            receipt
        };
        let mut lost = Bucket::new(&quota);
        take(&quota, &mut lost, 1_000, at(20));
        assert_eq!(credit(&quota, &mut lost, receipt, at(21)), 0);
        // A charge that found no debt is not older than the count that it began.
        let mut first = Bucket::new(&quota);
        let receipt = take(&quota, &mut first, 1_000, at(20));
        assert_eq!(credit(&quota, &mut first, receipt, at(20)), 1_000);
    }
}

/// Giving the same charge back twice is the caller's mistake; it is still bounded by a full bucket.
#[test]
fn a_bucket_refunded_too_much_is_just_full() {
    let (quota, mut bucket) = busy();
    let receipt = take(&quota, &mut bucket, 1, at(150)).with_cost(u64::MAX);
    credit(&quota, &mut bucket, receipt, at(150));
    let outcome = step::decide_one(&quota, &mut bucket, Op::Take(100_001), at(150));
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.remaining, 100_000);
}
