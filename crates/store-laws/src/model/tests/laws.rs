//! Guarantees of every algorithm, on random histories.

use super::{ALGORITHMS, Dice, ModelAlgorithm, ModelBucket, ModelQuota};

/// Puts every algorithm under random quotas through random histories, and shows each moment.
fn histories(seed: u64, mut each: impl FnMut(&ModelBucket, ModelQuota, u64)) {
    let mut dice = Dice(seed);
    for algorithm in ALGORITHMS.into_iter().cycle().take(210) {
        let amount = 1 + dice.roll(12);
        let quota = ModelQuota {
            burst: match algorithm {
                ModelAlgorithm::TokenBucket => 1 + dice.roll(12),
                _ => amount,
            },
            overdraft: dice.roll(6),
            ..ModelQuota::new(algorithm, amount, 1 + dice.roll(40))
        };
        let mut bucket = ModelBucket::new(quota);
        let mut now_us = dice.roll(200);
        for _ in 0..30 {
            now_us += dice.roll(9);
            let cost = dice.roll(5);
            match dice.roll(6) {
                0 => drop(bucket.force(now_us, cost)),
                1 => bucket.give_back(now_us, now_us.saturating_sub(dice.roll(20)), cost),
                _ => drop(bucket.take(now_us, cost)),
            }
            each(&bucket, quota, now_us);
        }
    }
}

#[test]
fn a_wait_is_sufficient_and_minimal() {
    histories(3, |bucket, quota, now_us| {
        for cost in 1..=quota.burst {
            let answer = bucket.would(now_us, cost);
            let wait_us = answer
                .wait_us
                .expect("a cost that fits a new bucket passes eventually");
            assert_eq!(answer.allowed, wait_us == 0, "{quota:?}");
            assert!(bucket.would(now_us + wait_us, cost).allowed, "{quota:?}");
            if let Some(just_before) = wait_us.checked_sub(1) {
                assert!(
                    !bucket.would(now_us + just_before, cost).allowed,
                    "{quota:?}"
                );
            }
        }
        assert_eq!(bucket.would(now_us, quota.burst + 1).wait_us, None);
    });
}

#[test]
fn the_remaining_units_are_the_largest_passing_cost() {
    histories(4, |bucket, quota, now_us| {
        let remaining = bucket.would(now_us, 0).remaining;
        assert!(bucket.would(now_us, remaining).allowed, "{quota:?}");
        assert!(!bucket.would(now_us, remaining + 1).allowed, "{quota:?}");
    });
}

#[test]
fn at_its_reset_a_bucket_is_full() {
    histories(5, |bucket, quota, now_us| {
        let then_us = now_us + bucket.would(now_us, 0).reset_us;
        let new = ModelBucket::new(quota);
        for cost in 0..=quota.burst + 1 {
            let (one, other) = (bucket.would(then_us, cost), new.would(then_us, cost));
            assert_eq!(one, other, "{quota:?}");
        }
        if then_us > now_us {
            let (one, other) = (bucket.would(then_us - 1, 0), new.would(then_us - 1, 0));
            assert_ne!(one, other, "{quota:?}");
        }
    });
}

#[test]
fn a_refusal_changes_nothing() {
    histories(6, |bucket, quota, now_us| {
        let cost = bucket.would(now_us, 0).remaining + 1;
        let mut refused = bucket.clone();
        assert!(!refused.take(now_us, cost).allowed);
        for then_us in now_us..now_us + 100 {
            assert_eq!(
                refused.would(then_us, 1),
                bucket.would(then_us, 1),
                "{quota:?}"
            );
        }
    });
}

#[test]
fn a_backward_step_of_time_is_ignored() {
    histories(7, |bucket, quota, now_us| {
        let earlier_us = now_us.saturating_sub(30);
        for cost in 0..=quota.burst {
            assert_eq!(bucket.would(earlier_us, cost), bucket.would(now_us, cost));
        }
    });
}

/// Takes as often as it can, at random instants, and counts in every window of one period.
#[test]
fn the_exact_windows_never_hold_more_than_the_amount() {
    let mut dice = Dice(8);
    let exact = [
        ModelAlgorithm::SlidingLog,
        ModelAlgorithm::BucketedWindow { parts: 4 },
        ModelAlgorithm::BucketedWindow { parts: 7 },
    ];
    for algorithm in exact.into_iter().cycle().take(60) {
        let quota = ModelQuota::new(algorithm, 1 + dice.roll(9), 1 + dice.roll(40));
        let mut bucket = ModelBucket::new(quota);
        let (mut now_us, mut admitted) = (0, Vec::new());
        for _ in 0..200 {
            now_us += dice.roll(4);
            if bucket.take(now_us, 1).allowed {
                admitted.push(now_us);
            }
        }
        for (place, first_us) in admitted.iter().enumerate() {
            let within = admitted[place..]
                .iter()
                .filter(|at_us| **at_us - first_us < quota.period_us);
            assert!(within.map(|_| 1).sum::<u64>() <= quota.amount, "{quota:?}");
        }
    }
}
