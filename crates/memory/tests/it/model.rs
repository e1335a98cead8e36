//! Many keys and quotas, narrow and wide mixed, in one small store: every outcome equals the
//! model's.
//!
//! The store has slots to spare, but not many: keys with full buckets lose their slots to others
//! all the time.

use crate::shop::{START, store};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::quota::WINDOW_PARTS;
use tidegate_core::{Algorithm, Align, Ask, Op, Outcome, Quota, Receipt};
use tidegate_testkit::model::{ModelAlgorithm, ModelAnswer, ModelBucket, ModelQuota, decide_all};

/// Narrow and wide, slow and fast.
pub(crate) fn quotas() -> Vec<(Quota, ModelQuota)> {
    let token = ModelAlgorithm::TokenBucket;
    let fixed = Algorithm::FixedWindow(Align::FirstRequest);
    let clock = Algorithm::FixedWindow(Align::Clock);
    let parts = WINDOW_PARTS;
    [
        (Quota::new(2, 1_000).burst(3), token, 3),
        (Quota::new(7, 1_000).burst(1), token, 1),
        (Quota::new(3, 1_000).refundable(true), token, 3),
        (Quota::new(4_099, 9_999_991).burst(5), token, 5),
        (
            Quota::new(3, 500).algorithm(fixed),
            ModelAlgorithm::FixedWindow,
            3,
        ),
        (
            Quota::new(2, 800).algorithm(clock),
            ModelAlgorithm::FixedWindowAligned,
            2,
        ),
        (
            Quota::new(3, 900).algorithm(Algorithm::SlidingWindow),
            ModelAlgorithm::SlidingWindow,
            3,
        ),
        (
            Quota::new(3, 700).algorithm(Algorithm::SlidingLog),
            ModelAlgorithm::SlidingLog,
            3,
        ),
        (
            Quota::new(3, 640).algorithm(Algorithm::BucketedWindow),
            ModelAlgorithm::BucketedWindow { parts },
            3,
        ),
        (
            Quota::new(3, 610).algorithm(Algorithm::CalendarWindow),
            ModelAlgorithm::CalendarWindow,
            3,
        ),
    ]
    .into_iter()
    .enumerate()
    .map(|(nth, (spec, algorithm, burst))| {
        let quota = spec
            .label(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][nth])
            .build()
            .unwrap();
        let model = ModelQuota {
            algorithm,
            amount: quota.amount(),
            period_us: quota.period_us(),
            burst,
            overdraft: 0,
        };
        (quota, model)
    })
    .collect()
}

pub(crate) fn answer(outcome: &Outcome) -> ModelAnswer {
    ModelAnswer {
        allowed: outcome.is_allowed(),
        remaining: outcome.remaining,
        wait_us: outcome.wait.as_micros(),
        reset_us: outcome.reset_us,
    }
}

/// A key, its quotas, a cost, and a pause before.
fn steps() -> impl Strategy<Value = Vec<(usize, Vec<usize>, u64, u64)>> {
    let bands = prop::collection::btree_set(0..9_usize, 1..4);
    let pause = prop_oneof![3 => Just(0), 2 => 1..=50_u64, 1 => 1..=1_200_u64];
    let cost = select(&[0, 1, 1, 1, 2, 3, 4][..]);
    let step = (0..60_usize, bands, cost, pause)
        .prop_map(|(key, bands, cost, pause)| (key, bands.into_iter().collect(), cost, pause));
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_small_store_matches_the_model(steps in steps()) {
        let (store, clock) = store(500);
        let quotas = quotas();
        let mut models: Vec<Vec<ModelBucket>> = (0..60)
            .map(|_| quotas.iter().map(|(_, it)| ModelBucket::new(*it)).collect())
            .collect();
        for (key, bands, cost, pause) in steps {
            clock.advance_micros(pause);
            let name = format!("key {key}");
            let asks: Vec<Ask<'_>> = bands
                .iter()
                .map(|band| Ask::take(name.as_bytes(), &quotas[*band].0, cost))
                .collect();
            let reply = store.decide_now(&asks);
            let mut meant: Vec<&mut ModelBucket> = models[key]
                .iter_mut()
                .enumerate()
                .filter(|(band, _)| bands.contains(band))
                .map(|(_, model)| model)
                .collect();
            let (passed, expected) = decide_all(&mut meant, reply.at.as_micros(), cost);
            prop_assert_eq!(reply.passed, passed);
            let outcomes: Vec<ModelAnswer> = reply.outcomes.iter().map(answer).collect();
            prop_assert_eq!(outcomes, expected);
        }
        prop_assert_eq!(store.shared().total(), 0);
    }

    /// Refunds of words: by the elapsed time alone, never more than the model, and exact for
    /// windows.
    #[test]
    fn a_word_refunds_no_more_than_the_model(
        steps in prop::collection::vec((0..4_usize, any::<bool>(), 1..=3_u64, 0..=700_u64), 1..60),
    ) {
        let (store, clock) = store(500);
        let quotas: Vec<_> = quotas().into_iter().filter(|(quota, _)| quota.is_narrow()).collect();
        prop_assert_eq!(quotas.len(), 4);
        let mut models: Vec<_> = quotas.iter().map(|(_, it)| ModelBucket::new(*it)).collect();
        let mut taken: Vec<Vec<Receipt>> = vec![Vec::new(); 4];
        for (band, back, cost, pause) in steps {
            clock.advance_micros(pause);
            let (quota, model) = (&quotas[band].0, &mut models[band]);
            let op = match taken[band].pop().filter(|_| back) {
                Some(receipt) => Op::GiveBack(receipt),
                None => Op::Take(cost),
            };
            let reply = store.decide_now(&[Ask { op, ..Ask::look(b"key", quota) }]);
            let now_us = reply.at.as_micros();
            match op {
                Op::GiveBack(receipt) => {
                    model.give_back(now_us, receipt.at.as_micros(), receipt.cost);
                }
                _ if reply.passed => {
                    prop_assert!(model.take(now_us, cost).allowed);
                    taken[band].push(reply.receipt(0, Op::Take(cost)).expect("it was charged"));
                }
                _ => {}
            }
            let exact = model.would(now_us, 0);
            prop_assert!(reply.outcomes[0].remaining <= exact.remaining);
            if !matches!(quota.algorithm(), Algorithm::TokenBucket) {
                prop_assert_eq!(reply.outcomes[0].remaining, exact.remaining);
                prop_assert_eq!(reply.outcomes[0].reset_us, exact.reset_us);
            }
        }
    }
}

/// The first instants of a store, where words are near 0.
#[test]
fn a_new_store_decides_as_any_other() {
    for (quota, model) in quotas() {
        for start in [0, 1, START.as_micros()] {
            let clock =
                tidegate_core::ManualClock::at(tidegate_core::Timestamp::from_micros(start));
            let store = tidegate_memory::MemoryStore::builder()
                .max_keys(10)
                .clock(clock.clone())
                .build();
            let mut model = ModelBucket::new(model);
            for pause in [0, 0, 0, 0, 1, 1, 100, 333, 1, 5_000] {
                clock.advance_micros(pause);
                let reply = store.decide_now(&[Ask::take(b"key", &quota, 1)]);
                let expected = model.take(reply.at.as_micros(), 1);
                assert_eq!(
                    answer(&reply.outcomes[0]),
                    expected,
                    "{quota:?} from {start}"
                );
            }
        }
    }
}
