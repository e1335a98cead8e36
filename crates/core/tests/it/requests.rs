//! Several buckets decided atomically: all or nothing, shadow mode, forced charges, the same bucket
//! twice.

use crate::world::{Spec, Walk, algorithm, as_model, cost, fine_spec_of, pause, start_us};
use proptest::prelude::*;
use tidegate_core::{
    Algorithm, Ask, Bucket, BucketState, LimitMode, Op, Outcome, Quota, Receipt, Reply, Timestamp,
    Wait, step,
};
use tidegate_testkit::model::{ModelBucket, decide_all};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn ask(quota: &Quota, op: Op) -> Ask<'_> {
    Ask {
        op,
        ..Ask::look(b"", quota)
    }
}

fn shadow(quota: &Quota, cost: u64, limit: u16) -> Ask<'_> {
    Ask {
        mode: LimitMode::Shadow,
        limit,
        ..Ask::take(b"", quota, cost)
    }
}

/// Returns a fixed window of this amount. Its count is easy to check.
fn window(amount: u64) -> Quota {
    let align = tidegate_core::Align::FirstRequest;
    Quota::new(amount, 1_000)
        .algorithm(Algorithm::FixedWindow(align))
        .overdraft(10)
        .build()
        .unwrap()
}

/// Decides once; returns `(passed, outcomes, used)` with the count of each bucket afterwards.
fn decide(asks: &[Ask<'_>], places: &[usize], used: &[u64]) -> (bool, Vec<Outcome>, Vec<u64>) {
    let mut buckets: Vec<Bucket> = used
        .iter()
        .map(|used| {
            Bucket::Fixed(tidegate_core::algorithm::FixedWindow {
                start: START.as_micros(),
                used: *used,
            })
        })
        .collect();
    let Reply {
        passed, outcomes, ..
    } = step::decide(asks, places, &mut buckets, START);
    let used = buckets.iter().map(|bucket| match bucket {
        Bucket::Fixed(window) => window.used,
        other => panic!("only fixed windows were added: {other:?}"),
    });
    (passed, outcomes.to_vec(), used.collect())
}

fn allowed(outcomes: &[Outcome]) -> String {
    outcomes
        .iter()
        .map(|outcome| if outcome.is_allowed() { '+' } else { '-' })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    /// Several takes of one cost: each outcome and each state equals the model's.
    #[test]
    fn a_request_matches_the_model(
        specs in prop::collection::vec(fine_spec_of(algorithm()), 1..6),
        start_us in start_us(),
        trace in prop::collection::vec((pause(), cost(), any::<prop::sample::Index>()), 1..15),
    ) {
        let quotas: Vec<Quota> = specs.iter().map(|spec| spec.fine().unwrap()).collect();
        let mut walks: Vec<Walk> = quotas.iter().map(|quota| Walk::new(quota, start_us)).collect();
        let mut buckets: Vec<Bucket> = quotas.iter().map(Bucket::new).collect();
        let mut models: Vec<_> = specs.iter().map(|spec| ModelBucket::new(spec.model())).collect();
        let places: Vec<usize> = (0..quotas.len()).collect();
        let mut now_us = start_us;
        for (pause, cost, pick) in trace {
            let pick = pick.index(walks.len());
            walks[pick].pause(pause);
            now_us = now_us.max(walks[pick].now_us);
            for (walk, bucket) in walks.iter_mut().zip(&buckets) {
                (walk.now_us, walk.bucket) = (now_us, bucket.clone());
            }
            let Op::Take(cost) = walks[pick].op(crate::world::Act::Take(cost)) else { continue };
            // A sliding log refuses costs above its maximum.
            let cost = cost.min(quotas.iter().map(Quota::cost_max).min().unwrap() + 1);
            prop_assume!(!quotas.iter().any(|quota| {
                quota.algorithm() == Algorithm::SlidingLog && cost > 64
            }));
            let asks: Vec<_> = quotas.iter().map(|quota| Ask::take(b"", quota, cost)).collect();
            let now = Timestamp::from_micros(now_us);
            let Reply { passed, outcomes, .. } = step::decide(&asks, &places, &mut buckets, now);
            let mut all: Vec<_> = models.iter_mut().collect();
            let (expected, answers) = decide_all(&mut all, now_us, cost);
            prop_assert_eq!(passed, expected);
            for (walk, outcome) in walks.iter_mut().zip(outcomes.iter()) {
                walk.last = Some(*outcome);
            }
            let outcomes: Vec<_> = outcomes.iter().map(|outcome| as_model(*outcome)).collect();
            prop_assert_eq!(outcomes, answers);
        }
    }

    /// A request of any shape: if refused, it charges nothing; if passed, it charges its costs; and
    /// no bucket exceeds its quota.
    #[test]
    fn a_request_of_any_shape_is_all_or_nothing(
        used in prop::collection::vec(0..=6_u64, 3),
        shape in prop::collection::vec((0..3_usize, 0..=3_u64, 0..4_u8, 0..2_u16), 1..6),
    ) {
        let quotas = [window(5), window(4), window(6)];
        let used: Vec<u64> = used.iter().zip(&quotas).map(|(u, q)| (*u).min(q.amount())).collect();
        let places: Vec<usize> = shape.iter().map(|(place, ..)| *place).collect();
        let asks: Vec<Ask<'_>> = shape
            .iter()
            .map(|(place, cost, kind, limit)| match kind {
                0 => shadow(&quotas[*place], *cost, *limit),
                1 => ask(&quotas[*place], Op::Look),
                _ => ask(&quotas[*place], Op::Take(*cost)),
            })
            .collect();
        let (passed, outcomes, after) = decide(&asks, &places, &used);

        let enforced = |ask: &Ask<'_>| ask.mode == LimitMode::Enforce;
        let refused = asks.iter().zip(&outcomes).any(|(a, o)| enforced(a) && !o.is_allowed());
        prop_assert_eq!(passed, !refused);
        for (i, quota) in quotas.iter().enumerate() {
            let charged = asks.iter().enumerate().filter(|(j, _)| places[*j] == i).map(|(_, ask)| {
                let whole_limit = asks.iter().zip(&outcomes)
                    .filter(|(other, _)| !enforced(other) && other.limit == ask.limit)
                    .all(|(_, outcome)| outcome.is_allowed());
                match ask.op {
                    Op::Take(cost) if passed && (enforced(ask) || whole_limit) => cost,
                    _ => 0,
                }
            });
            prop_assert_eq!(after[i], used[i] + charged.sum::<u64>());
            prop_assert!(after[i] <= quota.amount());
        }
        // Without the shadow asks, the enforced asks have the same outcome.
        let bare: Vec<(Ask<'_>, usize)> = asks.iter().copied().zip(places.iter().copied())
            .filter(|(ask, _)| enforced(ask)).collect();
        let (bare_asks, bare_places): (Vec<_>, Vec<_>) = bare.into_iter().unzip();
        let (bare_passed, bare_outcomes, _) = decide(&bare_asks, &bare_places, &used);
        prop_assert_eq!(bare_passed, passed);
        let waits = |outcomes: &[Outcome]| outcomes.iter().map(|o| o.wait).collect::<Vec<_>>();
        let kept: Vec<_> = outcomes.iter().zip(&asks).filter(|(_, a)| enforced(a)).map(|(o, _)| *o).collect();
        prop_assert_eq!(waits(&kept), waits(&bare_outcomes));
    }
}

#[test]
fn a_refusal_charges_nothing_and_reads_the_other_buckets() {
    let (roomy, tight) = (window(5), window(1));
    let asks = [
        Ask::take(b"", &roomy, 1),
        Ask::take(b"", &tight, 1),
        Ask::take(b"", &roomy, 1),
    ];
    let (passed, outcomes, used) = decide(&asks, &[0, 1, 2], &[2, 1, 0]);
    assert!(!passed);
    assert_eq!(used, [2, 1, 0]);
    assert_eq!(allowed(&outcomes), "+-+");
    let remaining: Vec<u64> = outcomes.iter().map(|outcome| outcome.remaining).collect();
    assert_eq!(remaining, [3, 0, 5]);
}

#[test]
fn a_bucket_named_twice_is_charged_twice_or_not_at_all() {
    let quota = window(5);
    for (costs, expected, after) in [
        ([2, 3], "++", 5),
        ([3, 3], "+-", 0),
        ([6, 1], "--", 0),
        ([0, 5], "++", 5),
    ] {
        let asks = costs.map(|cost| Ask::take(b"", &quota, cost));
        let (passed, outcomes, used) = decide(&asks, &[0, 0], &[0]);
        assert_eq!(allowed(&outcomes), expected, "{costs:?}");
        assert_eq!((passed, used[0]), (after > 0, after), "{costs:?}");
    }
    // The sum exceeds the capacity, so no wait helps.
    let asks = [3, 3].map(|cost| Ask::take(b"", &quota, cost));
    let (_, outcomes, _) = decide(&asks, &[0, 0], &[0]);
    assert_eq!(outcomes[1].wait, Wait::NEVER);
}

/// A cost of a sliding log may be as large as its amount.
#[test]
fn two_costs_on_one_log_are_checked_one_after_the_other() {
    let quota = Spec::of(Algorithm::SlidingLog, 100, 1_000).build().unwrap();
    let asks = [40, 40].map(|cost| Ask::take(b"", &quota, cost));
    let mut buckets = [Bucket::new(&quota)];
    let Reply {
        passed, outcomes, ..
    } = step::decide(&asks, &[0, 0], &mut buckets, START);
    assert!(passed);
    assert_eq!(outcomes[1].remaining, 20);
    let asks = [101, 1].map(|cost| Ask::take(b"", &quota, cost));
    let Reply {
        passed, outcomes, ..
    } = step::decide(&asks, &[0, 0], &mut buckets, START);
    assert!(!passed);
    assert_eq!(outcomes[0].wait, Wait::NEVER);
    let alone = step::decide_one(&quota, &mut buckets[0], Op::Take(65), START);
    assert_eq!(alone.wait, Wait::from_micros(1_000));
}

#[test]
fn a_shadow_never_refuses_and_is_charged_only_with_its_whole_limit() {
    let quota = window(2);
    // Two bands of shadow limit 1, and limit 2. The second band of limit 1 is used up.
    let asks = [
        Ask::take(b"", &quota, 1),
        shadow(&quota, 1, 1),
        shadow(&quota, 1, 1),
        shadow(&quota, 1, 2),
    ];
    let (passed, outcomes, used) = decide(&asks, &[0, 1, 2, 3], &[0, 0, 2, 0]);
    assert!(passed);
    assert_eq!(allowed(&outcomes), "++-+");
    assert_eq!(used, [1, 0, 2, 1]);
    // Refused by an enforced bucket: nothing is charged.
    let (passed, outcomes, used) = decide(&asks, &[0, 1, 2, 3], &[2, 0, 1, 0]);
    assert!(!passed);
    assert_eq!(allowed(&outcomes), "-+++");
    assert_eq!(used, [2, 0, 1, 0]);
}

/// A shadow ask on the same bucket as an enforced ask, and listed before it, is still decided last.
#[test]
fn a_shadow_on_an_enforced_bucket_takes_only_leftover_units() {
    let quota = window(2);
    let asks = [shadow(&quota, 1, 1), Ask::take(b"", &quota, 2)];
    let (passed, outcomes, used) = decide(&asks, &[0, 0], &[0]);
    assert!(passed);
    assert_eq!(allowed(&outcomes), "-+");
    assert_eq!(used, [2]);
    let asks = [shadow(&quota, 1, 1), Ask::take(b"", &quota, 1)];
    let (_, outcomes, used) = decide(&asks, &[0, 0], &[0]);
    assert_eq!(allowed(&outcomes), "++");
    assert_eq!(used, [2]);
}

#[test]
fn a_forced_shadow_comes_after_enforced_takes_and_stays_within_the_overdraft() {
    let quota = window(10);
    let forced = Ask {
        op: Op::Force(30),
        ..shadow(&quota, 0, 1)
    };
    // In either order.
    for asks in [
        [forced, ask(&quota, Op::Take(3))],
        [ask(&quota, Op::Take(3)), forced],
    ] {
        let (passed, _, used) = decide(&asks, &[0, 0], &[0]);
        assert!(passed);
        assert_eq!(used, [20]);
    }
}

#[test]
fn a_refused_forced_charge_is_made_unless_a_take_refuses() {
    let quota = window(2); // overdraft 10
    let take = |cost| Ask::take(b"", &quota, cost);
    let force = |cost| ask(&quota, Op::Force(cost));
    for (asks, used, expected, passed, after) in [
        ([force(5), take(1)], [0, 0], "++", true, [5, 1]),
        // Nothing was left: the forced charge is refused, and charged; the take next to it is not.
        ([force(5), take(1)], [2, 0], "-+", false, [7, 0]),
        ([force(99), take(1)], [2, 0], "-+", false, [12, 0]),
        // A take refuses: nothing is charged.
        ([force(5), take(1)], [0, 2], "+-", false, [0, 2]),
        ([force(5), take(1)], [2, 2], "--", false, [2, 2]),
        ([force(5), force(1)], [2, 2], "--", false, [7, 3]),
        ([force(0), take(1)], [2, 0], "++", true, [2, 1]),
    ] {
        let (did_pass, outcomes, now_used) = decide(&asks, &[0, 1], &used);
        assert_eq!(allowed(&outcomes), expected, "{used:?}");
        assert_eq!((did_pass, &now_used[..]), (passed, &after[..]), "{used:?}");
    }
    let forced_shadow = Ask {
        mode: LimitMode::Shadow,
        ..force(5)
    };
    let (passed, outcomes, used) = decide(&[forced_shadow, take(1)], &[0, 1], &[2, 0]);
    assert_eq!((passed, allowed(&outcomes).as_str()), (true, "-+"));
    assert_eq!(used, [2, 1]);
}

/// The wait of a refused forced charge includes its own charge.
#[test]
fn a_refused_force_waits_for_its_own_charge_too() {
    let quota = Quota::new(1, 1_000).burst(1).overdraft(10).build().unwrap();
    let mut bucket = Bucket::new(&quota);
    step::decide_one(&quota, &mut bucket, Op::Take(1), START);
    let mut alone = bucket.clone();
    let outcome = step::decide_one(&quota, &mut alone, Op::Force(3), START);
    assert_eq!(outcome.wait.as_micros(), Some(4_000));
    let mut one = [bucket.clone()];
    let Reply {
        passed, outcomes, ..
    } = step::decide(&[ask(&quota, Op::Force(3))], &[0], &mut one, START);
    assert!(!passed);
    assert_eq!(outcomes[0], outcome);
    assert_eq!(one[0], alone);
    // The take next to it refuses, so the force is not charged: its wait is unchanged.
    let full = Quota::new(1, 1_000).build().unwrap();
    let asks = [ask(&quota, Op::Force(3)), Ask::take(b"", &full, 2)];
    let mut two = [bucket.clone(), Bucket::new(&full)];
    let Reply { outcomes, .. } = step::decide(&asks, &[0, 1], &mut two, START);
    assert_eq!(outcomes[0].wait.as_micros(), Some(1_000));
    assert_eq!(two[0], bucket);
}

/// Settlement: one request refunds the reserved units and charges the used ones. Regression: the
/// wait after the charge was computed as if the first debit were not part of the request.
#[test]
fn the_second_of_two_debits_does_not_forget_the_first_in_its_wait() {
    let tokens = |burst| {
        let spec = Quota::new(1, 1_000_000).burst(burst).overdraft(10);
        spec.build().unwrap()
    };
    let twice = |quota: &Quota, bucket: &mut Bucket, now: Timestamp| {
        let asks = [Op::Debit(6); 2].map(|op| ask(quota, op));
        step::decide(&asks, &[0, 0], std::slice::from_mut(bucket), now)
    };
    let ten = tokens(10);
    let Reply { outcomes, .. } = twice(&ten, &mut Bucket::new(&ten), START);
    assert_eq!(allowed(&outcomes), "+-");
    assert!(outcomes[1].wait.is_never(), "twelve never fit into ten");

    let twelve = tokens(12);
    let mut bucket = Bucket::new(&twelve);
    step::decide_one(&twelve, &mut bucket, Op::Take(1), START);
    let Reply { outcomes, .. } = twice(&twelve, &mut bucket, START);
    assert_eq!(outcomes[1].wait, Wait::from_micros(13_000_000));
    let passes_at = |us| twice(&twelve, &mut bucket.clone(), START.plus(us)).passed;
    assert!(passes_at(13_000_000) && !passes_at(12_999_999));
}

#[test]
fn refunds_are_applied_before_everything_else() {
    let quota = window(5);
    let back = ask(&quota, Op::GiveBack(Receipt::by_the_clock(START, 4)));
    for asks in [
        [back, Ask::take(b"", &quota, 3)],
        [Ask::take(b"", &quota, 3), back],
    ] {
        let (passed, _, used) = decide(&asks, &[0, 0], &[5]);
        assert!(passed);
        assert_eq!(used, [4]);
    }
    // The refund applies even if the request is refused.
    let (passed, outcomes, used) = decide(&[back, Ask::take(b"", &quota, 5)], &[0, 0], &[5]);
    assert_eq!((passed, allowed(&outcomes).as_str()), (false, "+-"));
    assert_eq!(used, [1]);
}

#[test]
fn an_empty_request_passes() {
    let Reply {
        passed, outcomes, ..
    } = step::decide(&[], &[], &mut [], START);
    assert!(passed && outcomes.is_empty());
}

/// The reported state of a bucket is the state after the request.
#[test]
fn every_outcome_reports_the_bucket_after_the_request() {
    let quotas = [window(9), window(9)];
    let asks: Vec<_> = (0..9_u64)
        .map(|i| Ask::take(b"", &quotas[usize::from(i % 2 == 1)], i % 3))
        .collect();
    let places: Vec<usize> = (0..9).map(|i| i % 2).collect();
    let mut buckets: Vec<Bucket> = quotas.iter().map(Bucket::new).collect();
    let Reply {
        passed, outcomes, ..
    } = step::decide(&asks, &places, &mut buckets, START);
    assert!(passed);
    assert_eq!(outcomes.len(), 9);
    for (outcome, place) in outcomes.iter().zip(places) {
        let reading = buckets[place].reading(&quotas[place], START);
        assert_eq!(outcome.remaining, reading.remaining);
        assert_eq!(outcome.reset_us, reading.reset_us);
    }
}
