//! Quotas too large for microseconds. They count in milliseconds or seconds, never exceed the exact
//! envelope, and stay within two ticks of it (one where a debt begins, one where it is read).

use crate::world::{Act, Cost, Spec, Trace, Walk, acts, as_model, ask_model, charges, passes};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{
    Algorithm, Bucket, BucketState, Op, Quota, QuotaError, Receipt, Timestamp, step,
};
use tidegate_testkit::model::ModelBucket;

const START_US: u64 = 1_700_000_000_000_000;

/// Quotas whose tick is a millisecond or a second.
fn coarse_spec() -> impl Strategy<Value = Spec> {
    coarse_spec_of(select(
        &[Algorithm::TokenBucket, Algorithm::SlidingWindow][..],
    ))
}

fn coarse_spec_of(algorithm: impl Strategy<Value = Algorithm>) -> impl Strategy<Value = Spec> {
    let amounts = select(&[1, 7, 997, 99_991, 999_983, 1_000_000_007][..]);
    let periods = select(
        &[
            1_000_000,
            60_000_000,
            3_600_000_000,
            86_400_000_000,
            2_592_000_000_000,
            1_001_000, // milliseconds only
        ][..],
    );
    let parts = prop_oneof![1..=10_u64, 1..=1_000_u64, 1..=1_000_000_u64];
    (algorithm, amounts, periods, parts, any::<bool>())
        .prop_filter_map(
            "must fit",
            |(algorithm, amount, period_us, part, refundable)| {
                let spec = Spec {
                    refundable,
                    ..Spec::of(algorithm, amount, period_us)
                };
                Some(match algorithm {
                    Algorithm::TokenBucket => {
                        let most = nearest(&Spec {
                            burst: Some(1 << 53),
                            ..spec
                        })?;
                        Spec {
                            burst: Some((most / part).max(1)),
                            ..spec
                        }
                    }
                    _ => {
                        let most = nearest(&Spec {
                            amount: 1 << 53,
                            ..spec
                        })?;
                        Spec {
                            amount: (most / part).max(1),
                            ..spec
                        }
                    }
                })
            },
        )
        .prop_filter("must be coarse, and within the model's time", |spec| {
            spec.build()
                .is_ok_and(|quota| quota.tick_us() > 1 && quota.lifetime_us_max() < 1 << 56)
        })
}

fn nearest(spec: &Spec) -> Option<u64> {
    match spec.build() {
        Err(QuotaError::TooLarge { nearest }) => Some(nearest),
        _ => None,
    }
}

/// Walks `trace` on a bucket and on a model that is charged for every admission.
fn never_over_and_not_far_below(spec: &Spec, trace: Trace) -> Result<(), TestCaseError> {
    let quota = spec.build().unwrap();
    let mut walk = Walk::new(&quota, START_US + 123_457);
    let mut model = ModelBucket::new(spec.model());
    for (pause, act) in trace {
        walk.pause(pause);
        let op = walk.op(act);
        let outcome = walk.decide(op);
        prop_assert!(!walk.bucket.is_beyond_reach(&quota, walk.now()));
        if let Op::Take(cost) = op {
            let exact = model.would(walk.now_us, cost);
            if outcome.is_allowed() {
                prop_assert!(exact.allowed, "{op:?} at {}", walk.now_us);
            } else if let Some(wait_us) = outcome.wait.as_micros() {
                prop_assert!(wait_us <= exact.wait_us.unwrap() + 2 * quota.tick_us());
                let then_us = walk.now_us + wait_us;
                prop_assert!(passes(&quota, &walk.bucket, cost, then_us));
                prop_assert!(!passes(&quota, &walk.bucket, cost, then_us - 1));
                continue;
            }
        }
        if outcome.is_allowed() || matches!(op, Op::Force(_) | Op::Debit(_)) {
            ask_model(&mut model, op, walk.now_us);
        }
        let exact = model.would(walk.now_us, 0);
        prop_assert!(
            outcome.remaining <= exact.remaining,
            "{op:?} at {}",
            walk.now_us
        );
        prop_assert!(outcome.reset_us >= exact.reset_us);
        let fresh = walk.bucket.fresh_at(&quota).max(walk.now());
        prop_assert_eq!(
            walk.bucket.reading(&quota, fresh),
            Bucket::new(&quota).reading(&quota, fresh)
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    #[test]
    fn a_coarse_quota_never_exceeds_and_lags_at_most_two_ticks(
        spec in coarse_spec(),
        trace in charges(25),
    ) {
        never_over_and_not_far_below(&spec, trace)?;
    }

    #[test]
    fn a_coarse_token_bucket_never_refunds_too_much(
        spec in coarse_spec_of(Just(Algorithm::TokenBucket)),
        trace in acts(25),
    ) {
        let quota = spec.build().unwrap();
        let mut walk = Walk::new(&quota, START_US + 123_457);
        let mut model = ModelBucket::new(spec.model());
        for (pause, act) in trace {
            walk.pause(pause);
            let op = match walk.op(act) {
                // The cost of a forced charge is unknown, so its refund is too.
                Op::Force(_) | Op::Debit(_) => continue,
                // A refund without a date is skipped too: it may be applied twice.
                Op::GiveBack(receipt) if receipt.at == Receipt::latest(0).at => continue,
                op => op,
            };
            let outcome = walk.decide(op);
            if outcome.is_allowed() {
                prop_assert!(ask_model(&mut model, op, walk.now_us).allowed, "{op:?}");
            }
            let exact = model.would(walk.now_us, 0);
            prop_assert!(outcome.remaining <= exact.remaining, "{op:?} at {}", walk.now_us);
        }
    }

    /// On the ticks themselves nothing is rounded.
    #[test]
    fn on_whole_ticks_a_coarse_quota_is_exact(
        spec in coarse_spec(),
        steps in prop::collection::vec((0..=100_000_u64, 0..=3_u64), 1..20),
    ) {
        let quota = spec.build().unwrap();
        let mut walk = Walk::new(&quota, START_US);
        let mut model = ModelBucket::new(spec.model());
        for (ticks, more) in steps {
            walk.now_us += ticks * quota.tick_us();
            let op = walk.op(Act::Take(Cost::Remaining(more)));
            let (outcome, exact) = (walk.decide(op), ask_model(&mut model, op, walk.now_us));
            prop_assert_eq!(outcome.is_allowed(), exact.allowed);
            prop_assert_eq!(outcome.remaining, exact.remaining);
            let up = |us: u64| us.next_multiple_of(quota.tick_us());
            let outcome = as_model(outcome);
            prop_assert_eq!(outcome.wait_us.map(up), exact.wait_us.map(up));
            prop_assert_eq!(up(outcome.reset_us), up(exact.reset_us));
        }
    }
}

/// Half a million units refill per tick of a millisecond, and two instants may be one tick apart.
/// Counted by whole ticks alone, all units would be back a microsecond later.
#[test]
fn a_tick_that_ends_at_once_refills_nothing() {
    let quota = Quota::new(499_999_993, 1_000_000)
        .burst(4_000_000_000_000)
        .build()
        .unwrap();
    assert_eq!(quota.tick_us(), 1_000);
    let mut bucket = Bucket::new(&quota);
    let mut take = |cost, us| {
        let at = Timestamp::from_micros(START_US + us);
        step::decide_one(&quota, &mut bucket, Op::Take(cost), at)
    };
    assert_eq!(take(4_000_000_000_000, 999).remaining, 0);
    assert!(!take(1, 1_000).is_allowed());
    assert_eq!(take(0, 2_000).remaining, 499_999);
}

#[test]
fn a_coarse_charge_refunded_at_once_leaves_the_bucket_full() {
    let quota = Quota::new(1, 2_592_000_000_000)
        .burst(10_000)
        .refundable(true)
        .build()
        .unwrap();
    assert_eq!(quota.tick_us(), 1_000);
    let mut bucket = Bucket::new(&quota);
    let at = Timestamp::from_micros(START_US);
    step::decide_one(&quota, &mut bucket, Op::Take(5), at);
    let back = Op::GiveBack(Receipt::by_the_clock(at, 5));
    assert_eq!(
        step::decide_one(&quota, &mut bucket, back, at).remaining,
        10_000
    );
}

/// Within a tick an exact bucket has refilled a little, and a forced charge takes that as well.
/// Read at the previous tick, the bucket would have no room for it.
#[test]
fn a_forced_charge_between_two_ticks_is_not_lost() {
    let spec = Spec {
        burst: Some(1_000_000_000_000),
        ..Spec::of(Algorithm::TokenBucket, 99_991, 1_000_000)
    };
    let quota = spec.build().unwrap();
    assert_eq!(quota.tick_us(), 1_000);
    let mut bucket = Bucket::new(&quota);
    let mut model = ModelBucket::new(spec.model());
    for (us, op) in [
        (0, Op::Take(1_000_000_000_000)),
        (500, Op::Force(1_000)),
        (1_000, Op::Look),
    ] {
        let at = Timestamp::from_micros(START_US + us);
        let outcome = step::decide_one(&quota, &mut bucket, op, at);
        let exact = ask_model(&mut model, op, at.as_micros());
        assert!(outcome.remaining <= exact.remaining, "{op:?}: {outcome:?}");
    }
}

/// A refund between two ticks is read at the next tick. The refill since the charge counts up to
/// that tick.
#[test]
fn a_refund_between_two_ticks_credits_no_tick_too_much() {
    let spec = Spec {
        burst: Some(4_000_000_000_000),
        refundable: true,
        ..Spec::of(Algorithm::TokenBucket, 499_999_993, 1_000_000)
    };
    let quota = spec.build().unwrap();
    assert_eq!(quota.tick_us(), 1_000);
    let mut walk = Walk::new(&quota, START_US);
    let mut model = ModelBucket::new(spec.model());
    for (us, op) in [
        (0, Op::Take(1_000_000_000)),
        (500, Op::Take(1_000_000_000)),
        (900, Op::Look),
        (1_000, Op::Look),
    ] {
        walk.now_us = START_US + us;
        let op = match us {
            900 => Op::GiveBack(walk.taken.remove(0)),
            _ => op,
        };
        let outcome = walk.decide(op);
        let exact = ask_model(&mut model, op, walk.now_us);
        assert!(outcome.remaining <= exact.remaining, "{op:?}: {outcome:?}");
    }
}
