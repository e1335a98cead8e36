//! A clock that runs backwards: a bucket then refuses for longer, never for ever, and never lets
//! more through.

use crate::world::{
    Act, Cost, Pause, Spec, Walk, algorithm, cost, fine_spec_of, passes, pause, takes,
};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Algorithm, Align, Bucket, BucketState, Op, Quota, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

const START_US: u64 = 1_700_000_000_000_000;

/// Pauses in real time, costs, and how far the clock jumps back before each.
fn jumps() -> impl Strategy<Value = Vec<(Pause, Cost, u64)>> {
    let back_us = prop_oneof![
        4 => Just(0),
        1 => 1..=1_000_u64,
        1 => 1..=(1_u64 << 45),
    ];
    prop::collection::vec((pause(), cost(), back_us), 1..30)
}

/// What passed, by real time.
fn admitted(spec: &Spec, trace: Vec<(Pause, Cost, u64)>) -> Vec<(u64, u64)> {
    let quota = spec.fine().unwrap();
    let mut walk = Walk::new(&quota, START_US);
    let (mut behind_us, mut admitted) = (0, Vec::new());
    for (pause, cost, back_us) in trace {
        walk.pause(pause);
        walk.now_us -= back_us;
        behind_us += back_us;
        let op = walk.op(Act::Take(cost));
        let outcome = walk.decide(op);
        assert!(outcome.remaining <= quota.capacity());
        if let Op::Take(cost) = op
            && outcome.is_allowed()
        {
            admitted.push((walk.now_us + behind_us, cost));
        }
    }
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    /// Real time runs on while the clock jumps back: what the bucket lets through, an exact one with
    /// a true clock would have let through as well.
    #[test]
    fn what_passes_would_have_passed_by_a_true_clock(
        spec in fine_spec_of(select(&[Algorithm::TokenBucket, Algorithm::SlidingLog][..])),
        trace in jumps(),
    ) {
        let mut model = ModelBucket::new(spec.model());
        for (real_us, cost) in admitted(&spec, trace) {
            prop_assert!(model.take(real_us, cost).allowed);
        }
    }

    /// A window that the clock makes longer holds no more than before. (One that is aligned to the
    /// clock starts with it, and so may start once more for each jump.)
    #[test]
    fn windows_keep_their_bounds_in_real_time(
        spec in fine_spec_of(select(&[
            Algorithm::FixedWindow(Align::FirstRequest),
            Algorithm::BucketedWindow,
        ][..])),
        trace in jumps(),
    ) {
        let most = match spec.algorithm {
            Algorithm::BucketedWindow => spec.amount,
            _ => 2 * spec.amount,
        };
        let admitted = admitted(&spec, trace);
        for (i, (from_us, _)) in admitted.iter().enumerate() {
            let within = admitted[i..]
                .iter()
                .take_while(|(at_us, _)| at_us - from_us < spec.period_us);
            let sum: u64 = within.map(|(_, cost)| cost).sum();
            prop_assert!(sum <= most, "{sum} from {from_us}");
        }
    }

    /// However far the clock has gone back, the wait is honest.
    #[test]
    fn the_wait_is_honest_by_the_clock_as_it_runs_then(
        spec in fine_spec_of(algorithm()),
        trace in takes(15),
        back_us in prop_oneof![0..=100_000_u64, 0..=(1_u64 << 50)],
        cost in cost(),
    ) {
        let quota = spec.fine().unwrap();
        // Years ahead at a million a tick, the debt is more than can be counted.
        prop_assume!(back_us.checked_mul(quota.drain_and_price().0).is_some_and(|it| it < 1 << 62));
        let mut walk = Walk::new(&quota, START_US);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            walk.decide(op);
        }
        walk.now_us -= back_us.min(START_US);
        let op = walk.op(Act::Take(cost));
        let before = walk.bucket.clone();
        let outcome = walk.decide(op);
        if let Some(wait_us) = outcome.wait.as_micros()
            && !outcome.is_allowed()
        {
            prop_assert_eq!(&walk.bucket, &before);
            walk.now_us += wait_us - 1;
            prop_assert!(!walk.decide(op).is_allowed());
            walk.now_us += 1;
            prop_assert!(walk.decide(op).is_allowed());
        }
    }

    /// Settled, a bucket is used up, and as good as new within its quota's lifetime.
    #[test]
    fn a_settled_bucket_refuses_no_longer_than_any_other(
        spec in fine_spec_of(algorithm()),
        trace in takes(15),
        back_us in prop_oneof![0..=100_000_u64, 0..=(1_u64 << 50)],
    ) {
        let quota = spec.fine().unwrap();
        let mut walk = Walk::new(&quota, START_US);
        for (pause, act) in trace {
            walk.pause(pause);
            let op = walk.op(act);
            walk.decide(op);
            prop_assert!(!walk.bucket.is_ahead(&quota, walk.now()), "by its own clock and quota");
        }
        walk.now_us -= back_us.min(START_US);
        let (before, now) = (walk.bucket.clone(), walk.now());
        walk.bucket.settle(&quota, now);
        let left_us = walk.bucket.fresh_at(&quota).since(now);
        prop_assert!(left_us <= 2 * quota.lifetime_us_max());
        if before.is_ahead(&quota, now) {
            prop_assert!(left_us <= quota.lifetime_us_max());
            prop_assert!(!walk.bucket.is_ahead(&quota, now));
            let exact = matches!(quota.algorithm(), Algorithm::SlidingLog | Algorithm::BucketedWindow);
            let remaining = walk.bucket.reading(&quota, now).remaining;
            prop_assert!(exact || remaining == 0);
            prop_assert!(remaining <= quota.capacity());
        } else {
            prop_assert_eq!(&walk.bucket, &before);
        }
    }
}

/// Ten years from now a bucket was used up; settled, it waits no longer than anybody.
#[test]
fn a_bucket_from_far_ahead_need_not_wait_until_the_clock_catches_up() {
    for algorithm in crate::world::ALGORITHMS {
        let quota = Spec::of(algorithm, 2, 1_000_000).build().unwrap();
        let mut bucket = Bucket::new(&quota);
        let ten_years = Timestamp::from_micros(START_US + 315_360_000_000_000);
        step::decide_one(&quota, &mut bucket, Op::Take(2), ten_years);
        let now = Timestamp::from_micros(START_US);
        assert!(bucket.is_ahead(&quota, now), "{algorithm:?}");
        let long = step::decide_one(&quota, &mut bucket, Op::Take(1), now);
        assert!(
            long.wait.as_micros() >= Some(315_360_000_000_000),
            "{algorithm:?}"
        );
        bucket.settle(&quota, now);
        let refused = step::decide_one(&quota, &mut bucket, Op::Take(1), now);
        assert!(!refused.is_allowed(), "{algorithm:?}");
        let then = now.plus(refused.wait.as_micros().unwrap());
        assert!(then <= now.plus(2_000_000), "{algorithm:?}");
        let later = step::decide_one(&quota, &mut bucket, Op::Take(1), then);
        assert!(later.is_allowed(), "{algorithm:?}");
    }
}

/// A burst of 1000 was used up, then the quota was cut to a burst of 10: settled, that takes ten
/// units to refill and not a thousand.
#[test]
fn a_cut_burst_takes_at_most_a_full_drain() {
    let large = Quota::new(1, 1_000_000).burst(1_000).build().unwrap();
    let small = Quota::new(1, 1_000_000).burst(10).build().unwrap();
    assert_eq!(large.id(), small.id());
    let mut bucket = Bucket::new(&large);
    let now = Timestamp::from_micros(START_US);
    step::decide_one(&large, &mut bucket, Op::Take(1_000), now);

    bucket.settle(&small, now);
    let refused = step::decide_one(&small, &mut bucket, Op::Take(1), now);
    assert_eq!(refused.wait.as_micros(), Some(1_000_000));
    assert_eq!(refused.reset_us, 10_000_000);
    let second = now.plus(1_000_000);
    assert!(step::decide_one(&small, &mut bucket, Op::Take(1), second).is_allowed());
    assert_eq!(bucket.fresh_at(&small), now.plus(11_000_000));
}

/// An instant read long ago, by a thread that slept since: the state is not put back to then.
#[test]
fn an_instant_of_long_ago_changes_nothing_that_others_did_since() {
    for algorithm in crate::world::ALGORITHMS {
        let spec = Spec {
            overdraft: 5,
            ..Spec::of(algorithm, 2, 1_000)
        };
        let quota = spec.build().unwrap();
        let mut bucket = Bucket::new(&quota);
        let now = Timestamp::from_micros(START_US + 1_000_000);
        step::decide_one(&quota, &mut bucket, Op::Take(2), now);
        let fresh_at = bucket.fresh_at(&quota);
        let long_ago = Timestamp::from_micros(START_US);
        for op in [Op::Look, Op::Take(1), Op::Force(1)] {
            step::decide_one(&quota, &mut bucket, op, long_ago);
            assert!(bucket.fresh_at(&quota) >= fresh_at, "{algorithm:?}: {op:?}");
            assert!(
                !passes(&quota, &bucket, 1, now.as_micros()),
                "{algorithm:?}: {op:?}"
            );
        }
    }
}

/// A fraction of a tick was left under a quota that drains a million, or thousands, a tick; the next
/// one drains 1.
#[test]
fn a_fraction_left_by_a_larger_drain_is_less_than_a_tick() {
    for drain in [999_983, 4_093] {
        let [large, small] = [drain, 1].map(|amount| {
            let spec = Quota::new(amount, 1_000_000).burst(2).label("same");
            spec.build().unwrap()
        });
        let mut bucket = Bucket::new(&large);
        let now = Timestamp::from_micros(START_US);
        step::decide_one(&large, &mut bucket, Op::Take(1), now);
        let Bucket::Tokens(tokens) = &bucket else {
            panic!("a token bucket has tokens");
        };
        assert!(tokens.fraction > 0);
        let tokens = tokens.at - START_US;
        let look = step::decide_one(&small, &mut bucket, Op::Look, now);
        assert!(look.reset_us <= tokens + 1, "{look:?}");
        let taken = step::decide_one(&small, &mut bucket, Op::Take(1), now);
        assert!(taken.reset_us <= 1_000_000 + tokens + 1, "{taken:?}");
    }
}

/// A log whose stamps were cut back to now holds them under one stamp: what is then given back is
/// found.
#[test]
fn a_log_from_far_ahead_keeps_its_stamps_strictly_rising() {
    let quota = Spec::of(Algorithm::SlidingLog, 5, 1_000).build().unwrap();
    let mut bucket = Bucket::new(&quota);
    for at in [10_000, 10_100, 10_200] {
        let at = Timestamp::from_micros(START_US + at);
        step::decide_one(&quota, &mut bucket, Op::Take(1), at);
    }
    let now = Timestamp::from_micros(START_US);
    bucket.settle(&quota, now);
    assert!(step::decide_one(&quota, &mut bucket, Op::Take(1), now).is_allowed());
    let Bucket::Log(log) = &bucket else {
        panic!("a sliding log has a log");
    };
    let runs: Vec<_> = log.runs().map(|run| (run.stamp, run.units)).collect();
    assert_eq!(runs, [(START_US, 4)]);
}
