//! Every field of every decision equals the model's if a tick is a microsecond.

use crate::world::{
    ALGORITHMS, Spec, Trace, Walk, acts, algorithm, as_model, ask_model, charges, fine_spec_of,
    start_us,
};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Algorithm, Bucket, Op};
use tidegate_testkit::model::ModelBucket;

fn same_as_the_model(spec: &Spec, start_us: u64, trace: Trace) -> Result<(), TestCaseError> {
    let quota = spec.fine().unwrap();
    let mut walk = Walk::new(&quota, start_us);
    let mut model = ModelBucket::new(spec.model());
    for (nth, (pause, act)) in trace.into_iter().enumerate() {
        walk.pause(pause);
        let op = walk.op(act);
        let expected = ask_model(&mut model, op, walk.now_us);
        let outcome = as_model(walk.decide(op));
        prop_assert_eq!(
            outcome,
            expected,
            "step {}: {:?} at {}",
            nth,
            op,
            walk.now_us
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    #[test]
    fn charges_match_the_model(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in charges(30),
    ) {
        same_as_the_model(&spec, start_us, trace)?;
    }

    /// Windows refund exactly. Token buckets may refund less and have their own tests.
    #[test]
    fn window_refunds_match_the_model(
        spec in fine_spec_of(select(&ALGORITHMS[1..])),
        start_us in start_us(),
        trace in acts(30),
    ) {
        same_as_the_model(&spec, start_us, trace)?;
    }

    /// Products of up to 2^53, the largest integer that is exact in a double.
    #[test]
    fn extreme_quotas_match_the_model(
        algorithm in select(&[Algorithm::TokenBucket, Algorithm::SlidingWindow][..]),
        amount in select(&[1, 3, 7, 101, 999_983, 1_000_000][..]),
        period_us in select(&[1, 7, 1_009, 1_000_003, 86_400_000_011][..]),
        short in 0..=2_u64,
        start_us in start_us(),
        trace in charges(20),
    ) {
        use tidegate_core::QuotaError::{TooFine, TooLarge};
        let mut spec = Spec::of(algorithm, amount, period_us);
        let nearest = |spec: Spec| match spec.build() {
            Err(TooLarge { nearest }) => Some(nearest - short.min(nearest - 1)),
            Err(TooFine) => None,
            other => unreachable!("2^53 units are too many: {other:?}"),
        };
        let fits = match algorithm {
            Algorithm::TokenBucket => {
                spec.burst = nearest(Spec { burst: Some(1 << 53), ..spec });
                spec.burst.is_some()
            }
            _ => {
                spec.amount = nearest(Spec { amount: 1 << 53, ..spec }).unwrap_or(1);
                true
            }
        };
        prop_assume!(fits && spec.fine().is_some());
        same_as_the_model(&spec, start_us, trace)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    /// The store's fast path for narrow states equals the separate operations.
    #[test]
    fn the_fast_path_of_take_equals_the_general_one(
        spec in fine_spec_of(algorithm()),
        start_us in start_us(),
        trace in charges(30),
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, start_us);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            let (before, now) = (walk.bucket.clone(), walk.now());
            let outcome = walk.decide(op);
            let Op::Take(cost @ 1..) = op else { continue };
            let short = match before {
                Bucket::Tokens(state) => state
                    .take_usual(&quota, cost, now)
                    .map(|(next, outcome)| (Bucket::Tokens(next), outcome)),
                Bucket::Fixed(state) => state
                    .take_usual(&quota, cost, now)
                    .map(|(next, outcome)| (Bucket::Fixed(next), outcome)),
                Bucket::Calendar(state) => state
                    .take_usual(&quota, cost, now)
                    .map(|(next, outcome)| (Bucket::Calendar(next), outcome)),
                _ => None,
            };
            if let Some((next, short)) = short {
                prop_assert_eq!(short, outcome);
                prop_assert_eq!(&next, &walk.bucket);
            } else {
                prop_assert!(!quota.is_narrow() || cost > quota.capacity());
            }
        }
    }
}
