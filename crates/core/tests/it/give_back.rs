//! Refunds of token buckets: never above the envelope, never more than the exact credit.
//!
//! The model credits exactly: it plays history again without the charge. A bucket remembers only
//! how low its debt has been in two slots of 100 ms, so it may credit less, and never more.

use crate::world::{Act, Pause, Spec, Walk, acts, cost, fine_spec_of, start_us};
use proptest::prelude::*;
use tidegate_core::{Algorithm, Bucket, Meter, Op, Quota, Receipt, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

/// Token buckets whose units come back within a few of the slots that remember lows.
fn refundable() -> impl Strategy<Value = Spec> {
    let near_the_slots =
        (1..=50_u64, 1_000..=2_000_000_u64, 1..=40_u64).prop_map(|(amount, period_us, burst)| {
            Spec {
                burst: Some(burst),
                refundable: true,
                ..Spec::of(Algorithm::TokenBucket, amount, period_us)
            }
        });
    prop_oneof![
        near_the_slots,
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
            Op::GiveBack(Receipt { at, cost }) => {
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
    #![proptest_config(ProptestConfig::with_cases(3_000))]

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

/// A bucket that has been in debt for a slot: 1 a second, burst 100, 50 taken long ago.
fn busy() -> (Quota, Bucket) {
    let quota = Quota::new(1_000, 1_000_000)
        .burst(100_000)
        .refundable(true)
        .build()
        .unwrap();
    let mut bucket = Bucket::new(&quota);
    step::decide_one(&quota, &mut bucket, Op::Take(50_000), at(0));
    step::decide_one(&quota, &mut bucket, Op::Take(1), at(150));
    (quota, bucket)
}

fn credit(quota: &Quota, bucket: &mut Bucket, receipt: Receipt, now: Timestamp) -> u64 {
    let before = bucket.reading(quota, now).remaining;
    let outcome = step::decide_one(quota, bucket, Op::GiveBack(receipt), now);
    assert!(outcome.is_allowed() && outcome.wait.is_none());
    outcome.remaining - before
}

/// The point of remembering lows: under steady load a reservation is given back whole although its
/// units have long been paid off by the clock.
#[test]
fn under_load_a_reservation_of_this_slot_or_the_last_comes_back_whole() {
    for (taken, back, expected) in [
        (210, 211, 10),
        (210, 299, 10), // the last instant of the slot
        (210, 399, 10), // the slot after it, where nothing was charged
    ] {
        let (quota, mut bucket) = busy();
        let receipt = Receipt {
            at: at(taken),
            cost: 10,
        };
        step::decide_one(&quota, &mut bucket, Op::Take(10), receipt.at);
        assert_eq!(
            credit(&quota, &mut bucket, receipt, at(back)),
            expected,
            "{back}"
        );
    }
}

#[test]
fn a_reservation_two_slots_ago_comes_back_by_the_clock_alone() {
    let (quota, mut bucket) = busy();
    let receipt = Receipt {
        at: at(210),
        cost: 150,
    };
    step::decide_one(&quota, &mut bucket, Op::Take(150), receipt.at);
    step::decide_one(&quota, &mut bucket, Op::Take(1), at(305));
    let mut later = bucket.clone();
    assert_eq!(credit(&quota, &mut bucket, receipt, at(310)), 150);
    // Charged again two slots on: 195 ms have paid off 195 units, so that nothing is left.
    step::decide_one(&quota, &mut later, Op::Take(1), at(405));
    assert_eq!(credit(&quota, &mut later, receipt, at(405)), 0);
}

/// Two pending reservations: the lows that the second relies on were seen with the first in them,
/// in this slot and in the one before.
#[test]
fn a_refund_lowers_the_lows_that_other_reservations_rely_on() {
    // A unit each millisecond; what is taken, and when: first what is owed from before, then two
    // reservations, then others who come when little is owed.
    let same_slot = [(50, 31), (101, 60), (102, 30), (170, 100), (171, 1)];
    let next_slot = [(50, 101), (101, 60), (102, 30), (199, 100), (201, 1)];
    for taken in [same_slot, next_slot] {
        let spec = Spec {
            burst: Some(1_000),
            refundable: true,
            ..Spec::of(Algorithm::TokenBucket, 1_000, 1_000_000)
        };
        let quota = spec.build().unwrap();
        let (mut bucket, mut model) = (Bucket::new(&quota), ModelBucket::new(spec.model()));
        for (ms, cost) in taken {
            assert!(step::decide_one(&quota, &mut bucket, Op::Take(cost), at(ms)).is_allowed());
            model.take(at(ms).as_micros(), cost);
        }
        let now = at(202);
        for (ms, cost) in [taken[1], taken[2]] {
            credit(&quota, &mut bucket, Receipt { at: at(ms), cost }, now);
            model.give_back(now.as_micros(), at(ms).as_micros(), cost);
            let exact = model.would(now.as_micros(), 0).remaining;
            let remaining = bucket.reading(&quota, now).remaining;
            assert!(remaining <= exact, "{remaining} of {exact}: {taken:?}");
        }
    }
}

/// Giving the same charge back twice is the caller's mistake; it is still bounded by a full bucket.
#[test]
fn a_bucket_given_back_too_much_is_full_and_no_more() {
    let (quota, mut bucket) = busy();
    let receipt = Receipt {
        at: at(150),
        cost: u64::MAX,
    };
    credit(&quota, &mut bucket, receipt, at(150));
    let outcome = step::decide_one(&quota, &mut bucket, Op::Take(100_001), at(150));
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.remaining, 100_000);
}
