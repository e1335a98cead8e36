//! Refunds of token buckets: never above the envelope, never more than the exact credit.
//!
//! The model credits exactly: it plays history again without the charge. A bucket knows only how
//! low its debt can have been since at most, so it may credit less, and never more.

use crate::world::{Act, Pause, Spec, Walk, acts, cost, fine_spec_of, start_us};
use proptest::prelude::*;
use tidegate_core::{Algorithm, Bucket, BucketState, Op, Quota, Receipt, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

/// Token buckets whose units come back in milliseconds to seconds, and any others.
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

/// Reserve and refund: takes, with gives-back some milliseconds later, overlapping.
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

/// Holds a bucket to the model through `trace`: whatever it lets through the model lets through,
/// and it never has more to give than the model.
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

    /// A quota that is not refundable remembers nothing, and credits by the time passed alone.
    #[test]
    fn a_refund_without_memory_never_credits_more_either(
        spec in refundable(),
        start_us in start_us(),
        trace in reservations(30),
    ) {
        never_more_than_the_model(&Spec { refundable: false, ..spec }, start_us, trace)?;
    }

    /// What was admitted and not given back, in any interval, against burst + amount × length /
    /// period: counted from outside, with no model.
    #[test]
    fn what_is_kept_never_exceeds_the_envelope(
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

    /// With forced charges and all else that can happen.
    #[test]
    fn a_bucket_stays_within_its_bounds_whatever_is_given_back(
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
                prop_assert!(after >= before.remaining, "giving back never takes");
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

/// The point of counting credits: under load a reservation is given back whole although its units
/// have long been paid off by the clock.
#[test]
fn under_load_a_reservation_comes_back_whole_however_old_it_is() {
    for back in [211, 399, 10_000, 50_000] {
        let (quota, mut bucket) = busy();
        let receipt = take(&quota, &mut bucket, 10, at(210));
        take(&quota, &mut bucket, 1, at(211));
        assert_eq!(credit(&quota, &mut bucket, receipt, at(back)), 10, "{back}");
    }
}

/// What it lay upon has been paid off at 50 s, and it itself from then on.
#[test]
fn a_reservation_comes_back_less_what_has_been_paid_off_of_it() {
    for (back, expected) in [(50_000, 150), (50_100, 50), (50_150, 0), (70_000, 0)] {
        let (quota, mut bucket) = busy();
        let receipt = take(&quota, &mut bucket, 150, at(210));
        take(&quota, &mut bucket, 40_000, at(30_000));
        let found = credit(&quota, &mut bucket, receipt, at(back));
        assert_eq!(found, expected, "{back}");
    }
}

/// Without a receipt that knows more than the time, or a quota that counts credits.
#[test]
fn by_the_clock_alone_only_what_time_has_not_paid_off_comes_back() {
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

/// A place that was given back from under another's lowered what that one lay upon.
#[test]
fn a_refund_lowers_what_later_reservations_rely_on() {
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

/// Credits of what was charged later take nothing from under an earlier charge; whoever knows of
/// them gets all of it back.
#[test]
fn what_is_known_to_have_been_credited_behind_is_not_held_against_a_reservation() {
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

/// A bucket that was forgotten forgot its count, and one that was not begins it again all the same.
#[test]
fn a_receipt_from_before_the_bucket_was_as_good_as_new_counts_by_the_clock_alone() {
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

/// However much is given back, the count stays exact: before it could not any more it begins again,
/// and older receipts count for nothing.
#[test]
fn a_count_of_credits_begins_again_before_it_gets_too_large() {
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
    assert_eq!(credited, 0, "older than the count");
}

/// It was: after the state was lost, each charge of before could be given back out of what others
/// have charged since, by what the clock had not paid off.
#[test]
fn what_was_charged_before_the_state_was_lost_does_not_come_back() {
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
        // Nor is a charge that found no debt older than the count that it began.
        let mut first = Bucket::new(&quota);
        let receipt = take(&quota, &mut first, 1_000, at(20));
        assert_eq!(credit(&quota, &mut first, receipt, at(20)), 1_000);
    }
}

/// Giving the same charge back twice is the caller's mistake; it is still bounded by a full bucket.
#[test]
fn a_bucket_given_back_too_much_is_full_and_no_more() {
    let (quota, mut bucket) = busy();
    let receipt = take(&quota, &mut bucket, 1, at(150)).with_cost(u64::MAX);
    credit(&quota, &mut bucket, receipt, at(150));
    let outcome = step::decide_one(&quota, &mut bucket, Op::Take(100_001), at(150));
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.remaining, 100_000);
}
