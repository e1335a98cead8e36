//! A clock that runs backwards: a bucket then refuses for longer, never permanently, and never
//! admits more.

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

/// Returns the units that passed, by real time.
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

    /// Real time continues while the clock jumps back. An exact bucket with a true clock admits
    /// everything that this one admits.
    #[test]
    fn requests_pass_only_if_an_exact_clock_would_allow_them(
        spec in fine_spec_of(select(&[Algorithm::TokenBucket, Algorithm::SlidingLog][..])),
        trace in jumps(),
    ) {
        let mut model = ModelBucket::new(spec.model());
        for (real_us, cost) in admitted(&spec, trace) {
            prop_assert!(model.take(real_us, cost).allowed);
        }
    }

    /// A window that the clock prolongs holds no more than before. (An aligned window starts with
    /// the clock, so each jump may start one more.)
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

    /// The reported wait is correct, however far the clock has gone back.
    #[test]
    fn the_wait_is_exact_on_the_clock_after_the_jump(
        spec in fine_spec_of(algorithm()),
        trace in takes(15),
        back_us in prop_oneof![0..=100_000_u64, 0..=(1_u64 << 50)],
        cost in cost(),
    ) {
        let quota = spec.fine().unwrap();
        // Years ahead, at a million per tick, the debt overflows.
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

    /// A bucket that is clamped to the current time is empty, and full again within its quota's
    /// lifetime.
    #[test]
    fn a_clamped_bucket_refuses_no_longer_than_any_other(
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
            prop_assert!(!walk.bucket.is_beyond_reach(&quota, walk.now()), "by its own clock and quota");
        }
        walk.now_us -= back_us.min(START_US);
        let (before, now) = (walk.bucket.clone(), walk.now());
        walk.bucket.clamp_to_now(&quota, now);
        let left_us = walk.bucket.fresh_at(&quota).since(now);
        prop_assert!(left_us <= 2 * quota.lifetime_us_max());
        if before.is_beyond_reach(&quota, now) {
            prop_assert!(left_us <= quota.lifetime_us_max());
            prop_assert!(!walk.bucket.is_beyond_reach(&quota, now));
            let exact = matches!(quota.algorithm(), Algorithm::SlidingLog | Algorithm::BucketedWindow);
            let remaining = walk.bucket.reading(&quota, now).remaining;
            prop_assert!(exact || remaining == 0);
            prop_assert!(remaining <= quota.capacity());
        } else {
            prop_assert_eq!(&walk.bucket, &before);
        }
    }
}

/// A bucket was emptied ten years in the future. Clamped to the current time, it waits no longer
/// than any other.
#[test]
fn a_bucket_from_the_future_need_not_wait_for_the_clock() {
    for algorithm in crate::world::ALGORITHMS {
        let quota = Spec::of(algorithm, 2, 1_000_000).build().unwrap();
        let mut bucket = Bucket::new(&quota);
        let ten_years = Timestamp::from_micros(START_US + 315_360_000_000_000);
        step::decide_one(&quota, &mut bucket, Op::Take(2), ten_years);
        let now = Timestamp::from_micros(START_US);
        assert!(bucket.is_beyond_reach(&quota, now), "{algorithm:?}");
        let long = step::decide_one(&quota, &mut bucket, Op::Take(1), now);
        assert!(
            long.wait.as_micros() >= Some(315_360_000_000_000),
            "{algorithm:?}"
        );
        bucket.clamp_to_now(&quota, now);
        let refused = step::decide_one(&quota, &mut bucket, Op::Take(1), now);
        assert!(!refused.is_allowed(), "{algorithm:?}");
        let then = now.plus(refused.wait.as_micros().unwrap());
        assert!(then <= now.plus(2_000_000), "{algorithm:?}");
        let later = step::decide_one(&quota, &mut bucket, Op::Take(1), then);
        assert!(later.is_allowed(), "{algorithm:?}");
    }
}

/// A burst of 1000 was used up, then the quota was cut to a burst of 10. The clamped bucket refills
/// ten units, not a thousand.
#[test]
fn a_cut_burst_takes_at_most_a_full_drain() {
    let large = Quota::new(1, 1_000_000).burst(1_000).build().unwrap();
    let small = Quota::new(1, 1_000_000).burst(10).build().unwrap();
    assert_eq!(large.id(), small.id());
    let mut bucket = Bucket::new(&large);
    let now = Timestamp::from_micros(START_US);
    step::decide_one(&large, &mut bucket, Op::Take(1_000), now);

    bucket.clamp_to_now(&small, now);
    let refused = step::decide_one(&small, &mut bucket, Op::Take(1), now);
    assert_eq!(refused.wait.as_micros(), Some(1_000_000));
    assert_eq!(refused.reset_us, 10_000_000);
    let second = now.plus(1_000_000);
    assert!(step::decide_one(&small, &mut bucket, Op::Take(1), second).is_allowed());
    assert_eq!(bucket.fresh_at(&small), now.plus(11_000_000));
}

/// A thread read the clock, then slept. Its old instant does not set the state back.
#[test]
fn a_stale_instant_does_not_undo_later_changes() {
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

/// A fraction of a tick was left by a quota that drains a million, or thousands, per tick. The next
/// quota drains 1.
#[test]
fn a_fraction_left_by_a_larger_drain_is_below_a_tick() {
    for drain in [999_983, 4_093] {
        let [large, small] = [drain, 1].map(|amount| {
            let spec = Quota::new(amount, 1_000_000).burst(2).label("same");
            spec.build().unwrap()
        });
        let mut bucket = Bucket::new(&large);
        let now = Timestamp::from_micros(START_US);
        step::decide_one(&large, &mut bucket, Op::Take(1), now);
        let Bucket::Tokens(tokens) = &bucket else {
            panic!("the quota is a token bucket");
        };
        assert!(tokens.fraction > 0);
        let tokens = tokens.at - START_US;
        let look = step::decide_one(&small, &mut bucket, Op::Look, now);
        assert!(look.reset_us <= tokens + 1, "{look:?}");
        let taken = step::decide_one(&small, &mut bucket, Op::Take(1), now);
        assert!(taken.reset_us <= 1_000_000 + tokens + 1, "{taken:?}");
    }
}

/// A log whose stamps were cut back to now holds them under one stamp. A later refund finds them.
#[test]
fn a_log_from_the_future_keeps_strictly_rising_stamps() {
    let quota = Spec::of(Algorithm::SlidingLog, 5, 1_000).build().unwrap();
    let mut bucket = Bucket::new(&quota);
    for at in [10_000, 10_100, 10_200] {
        let at = Timestamp::from_micros(START_US + at);
        step::decide_one(&quota, &mut bucket, Op::Take(1), at);
    }
    let now = Timestamp::from_micros(START_US);
    bucket.clamp_to_now(&quota, now);
    assert!(step::decide_one(&quota, &mut bucket, Op::Take(1), now).is_allowed());
    let Bucket::Log(log) = &bucket else {
        panic!("the quota is a sliding log");
    };
    let runs: Vec<_> = log.runs().map(|run| (run.stamp, run.units)).collect();
    assert_eq!(runs, [(START_US, 4)]);
}
