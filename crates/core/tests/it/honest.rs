//! The reported waits, free refusals and expiries are true.

use crate::world::{Walk, acts, algorithm, charges, cost, fine_spec_of, passes, start_us, takes};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Algorithm, Align, Bucket, BucketState, Op, Timestamp, step};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(4_000)))]

    /// A cost passes after the reported wait, and is refused a microsecond earlier.
    #[test]
    fn the_reported_wait_is_exact(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in acts(25),
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            let outcome = walk.decide(op);
            let cost = match op {
                Op::Take(cost) => cost,
                Op::Debit(cost) => cost.max(1),
                Op::Force(_) => 1,
                _ => continue,
            };
            if outcome.is_allowed() {
                prop_assert!(outcome.wait.is_none());
            } else if let Some(wait_us) = outcome.wait.as_micros() {
                let then_us = walk.now_us + wait_us;
                prop_assert!(passes(&quota, &walk.bucket, cost, then_us));
                prop_assert!(!passes(&quota, &walk.bucket, cost, then_us - 1));
            } else {
                prop_assert!(cost > quota.cost_max());
            }
        }
    }

    #[test]
    fn refusals_and_reads_leave_the_state_unchanged(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in charges(25),
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            let before = walk.bucket.clone();
            let outcome = walk.decide(op);
            if matches!(op, Op::Take(0) | Op::Look) || (matches!(op, Op::Take(_)) && !outcome.is_allowed()) {
                prop_assert_eq!(&walk.bucket, &before);
            }
        }
    }

    /// `remaining` is the largest cost that passes.
    #[test]
    fn a_cost_of_the_remaining_units_passes_and_one_more_does_not(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in acts(25),
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            let remaining = walk.decide(op).remaining;
            prop_assert!(remaining <= quota.capacity());
            prop_assert!(remaining == 0 || passes(&quota, &walk.bucket, remaining, walk.now_us));
            prop_assert!(!passes(&quota, &walk.bucket, remaining + 1, walk.now_us));
        }
    }

    /// At one instant, n single units are decided like one cost of n.
    #[test]
    fn single_units_equal_one_cost_of_as_many(
        spec in fine_spec_of(select(&[
            Algorithm::TokenBucket,
            Algorithm::FixedWindow(Align::FirstRequest),
            Algorithm::FixedWindow(Align::Clock),
            Algorithm::SlidingLog,
        ][..])),
        start_us in start_us(),
        trace in takes(10),
        units in 1..=64_u64,
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            walk.decide(op);
        }
        let mut apart = walk.clone();
        let together = walk.decide(Op::Take(units));
        let mut last = None;
        let admitted = (0..units)
            .take_while(|_| {
                let outcome = apart.decide(Op::Take(1));
                last = Some(outcome);
                outcome.is_allowed()
            })
            .count();
        prop_assert_eq!(together.is_allowed(), admitted as u64 == units);
        if together.is_allowed() {
            prop_assert_eq!(Some(together), last);
            prop_assert_eq!(walk.bucket, apart.bucket);
        }
    }

    /// From its expiry on, a bucket answers exactly like a new one. A microsecond earlier it does
    /// not.
    #[test]
    fn a_bucket_expires_exactly_when_it_is_full_again(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in acts(15),
        later_us in prop_oneof![Just(0), Just(1), 0..=10_000_000_u64],
        next in cost(),
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            let outcome = walk.decide(op);
            let fresh_at = walk.bucket.fresh_at(&quota);
            prop_assert_eq!(outcome.reset_us, fresh_at.since(walk.now()));

            let then = fresh_at.max(walk.now()).plus(later_us);
            let mut old = Walk { now_us: then.as_micros(), ..walk.clone() };
            let mut new = Walk { bucket: Bucket::new(&quota), ..old.clone() };
            let op = old.op(crate::world::Act::Take(next));
            prop_assert_eq!(old.decide(op), new.decide(op));
            prop_assert_eq!(
                old.bucket.reading(&quota, then.plus(1)),
                new.bucket.reading(&quota, then.plus(1))
            );

            if outcome.reset_us > 0 {
                let before = Timestamp::from_micros(fresh_at.as_micros() - 1);
                let reading = walk.bucket.reading(&quota, before);
                prop_assert_eq!(reading.reset_us, 1);
                // Part of a unit is missing. The wait for a full bucket shows it, unless a
                // microsecond is worth more than a unit.
                let full = walk.bucket.wait(&quota, quota.capacity(), before);
                prop_assert!(!full.is_none());
            }
        }
    }

    /// No state outlives the longest lifetime of its quota.
    #[test]
    fn no_bucket_outlives_its_quotas_lifetime(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in acts(25),
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            walk.decide(op);
            let left_us = walk.bucket.fresh_at(&quota).since(walk.now());
            prop_assert!(left_us <= quota.lifetime_us_max());
        }
    }
}

#[test]
fn an_amount_of_zero_refuses_everything_and_stores_nothing() {
    for algorithm in crate::world::ALGORITHMS {
        let spec = crate::world::Spec {
            overdraft: 5,
            ..crate::world::Spec::of(algorithm, 0, 1_000)
        };
        let quota = spec.build().unwrap();
        let mut bucket = Bucket::new(&quota);
        for (at, op) in [
            (0, Op::Take(1)),
            (5_000, Op::Take(7)),
            (5_000, Op::Force(3)),
        ] {
            let at = Timestamp::from_micros(at);
            let outcome = step::decide_one(&quota, &mut bucket, op, at);
            assert!(
                !outcome.is_allowed() && outcome.wait.is_never(),
                "{algorithm:?}"
            );
            assert_eq!((outcome.remaining, outcome.reset_us), (0, 0));
            assert!(bucket.fresh_at(&quota) <= at, "{algorithm:?}");
        }
        let look = step::decide_one(&quota, &mut bucket, Op::Look, Timestamp::from_micros(9));
        assert!(look.is_allowed());
    }
}
