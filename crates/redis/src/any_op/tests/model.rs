//! The script compared with the model, which counts in fractions and is independent of the engine.

use super::kit::{Bench, new_key, request};
use crate::any_op::{answer, encode};
use crate::request::SlotAsks;
use crate::script::ScriptClock;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use tidegate_core::{Algorithm, Op, Quota};
use tidegate_redis_client::protocol;
use tidegate_testkit::history::model_algorithm;
use tidegate_testkit::model::{ModelAnswer, ModelBucket, ModelQuota};

/// Returns a quota in the types of core and of the model.
fn quotas() -> impl Strategy<Value = (Quota, ModelQuota)> {
    let amount = select(&[1, 2, 3, 7, 11, 97, 4_099][..]);
    let period_us = select(&[7, 1_000, 99_991, 1_000_000, 60_000_000][..]);
    let more = (1..10_u64, 0..3_u64, any::<bool>());
    (select(&Algorithm::RATES[..]), amount, period_us, more).prop_map(
        |(algorithm, amount, period_us, (burst, overdraft, refundable))| {
            let spec = Quota::new(amount, period_us)
                .algorithm(algorithm)
                .overdraft(overdraft)
                .refundable(refundable);
            let is_bucket = algorithm == Algorithm::TokenBucket;
            let spec = if is_bucket { spec.burst(burst) } else { spec };
            let model = ModelQuota {
                burst: if is_bucket { burst } else { amount },
                overdraft,
                ..ModelQuota::new(model_algorithm(algorithm), amount, period_us)
            };
            (spec.build().expect("a valid quota"), model)
        },
    )
}

/// Operations, each with the microseconds since the previous one.
fn steps() -> impl Strategy<Value = Vec<(u64, Op)>> {
    let pause = prop_oneof![Just(0), 0..4_u64, 0..2_000_u64, 0..400_000_u64];
    let op = prop_oneof![
        4 => (0..6_u64).prop_map(Op::Take),
        1 => (1..6_u64).prop_map(Op::Force),
        1 => (0..6_u64).prop_map(Op::Debit),
    ];
    prop::collection::vec((pause, op), 1..60)
}

#[test]
fn the_script_matches_the_model() {
    let bench = RefCell::new(Bench::new(ScriptClock::Argument));
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&(quotas(), steps()), |((quota, model), steps)| {
        let mut bench = bench.borrow_mut();
        let mut model = ModelBucket::new(model);
        let key = new_key();
        let mut now_us = 1_750_000_000_000_000;
        let mut pipeline = protocol::pipe();
        let mut asked: Vec<(SlotAsks, ModelAnswer)> = Vec::new();
        for (pause, op) in steps {
            now_us += pause;
            let expected = match op {
                Op::Force(cost) => model.force(now_us, cost),
                Op::Debit(cost) => model.debit(now_us, cost),
                Op::Take(cost) => model.take(now_us, cost),
                _ => model.take(now_us, 0),
            };
            let request = request(&key, &quota, op);
            pipeline.add_command(bench.command(&encode(&[&request]), now_us));
            asked.push((request, expected));
        }
        let replies = bench.run(&pipeline);
        for ((request, expected), reply) in asked.iter().zip(&replies) {
            let call = encode(&[request]);
            let answers = answer(&[request], &call, reply, |_| false).expect("a well-formed reply");
            let decided = answers[0].as_ref().expect("an answer");
            let outcome = decided.reply.outcomes[0];
            let said = ModelAnswer {
                allowed: outcome.is_allowed(),
                remaining: outcome.remaining,
                wait_us: outcome.wait.as_micros(),
                reset_us: outcome.reset_us,
            };
            prop_assert_eq!(&said, expected);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
