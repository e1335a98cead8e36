use super::Act::{Force, GiveBack, Take};
use super::{ALGORITHMS, Dice, ModelAlgorithm, ModelBucket, ModelQuota, check};

#[test]
fn a_token_bucket_credits_the_charged_units() {
    check(
        ModelQuota::token_bucket(1, 10, 5),
        &[
            (Take(0, 2), "+3 20"),
            (Take(0, 3), "+0 50"),
            (GiveBack(0, 0, 3), "+3 20"),
            (GiveBack(5, 0, 1), "+4 5"),
        ],
    );
}

#[test]
fn a_token_bucket_credits_no_more_than_its_lowest_debt_since() {
    check(
        ModelQuota::token_bucket(1, 10, 10),
        &[
            (Take(0, 5), "+5 50"),
            // The debt has fallen to half a token just before the next charge.
            (Take(45, 5), "+4 55"),
            (GiveBack(50, 0, 5), "+5 45"),
        ],
    );
}

#[test]
fn a_token_bucket_that_was_full_since_credits_nothing() {
    check(
        ModelQuota::token_bucket(1, 10, 10),
        &[
            (Take(0, 5), "+5 50"),
            (Take(50, 5), "+5 50"),
            (GiveBack(60, 0, 5), "+6 40"),
        ],
    );
}

#[test]
fn a_second_refund_sees_the_debt_without_the_first() {
    // Two charges of 5 at 0; the debt never falls below 4, yet of those 4 only one refund can come:
    // with either charge gone, the bucket was full at 50.
    check(
        ModelQuota::token_bucket(1, 10, 20),
        &[
            (Take(0, 5), "+15 50"),
            (Take(0, 5), "+10 100"),
            (Take(60, 10), "+6 140"),
            (GiveBack(70, 0, 5), "+11 90"),
            (GiveBack(70, 0, 5), "+11 90"),
        ],
    );
}

#[test]
fn a_future_charge_counts_as_a_present_one() {
    check(
        ModelQuota::token_bucket(1, 10, 5),
        &[
            (Take(0, 3), "+2 30"),
            (GiveBack(10, 50, 1), "+4 10"),
            (Take(15, 4), "+0 45"),
        ],
    );
}

#[test]
fn a_refund_reaches_below_empty() {
    let overdrawn = ModelQuota {
        overdraft: 5,
        ..ModelQuota::token_bucket(1, 10, 2)
    };
    check(
        overdrawn,
        &[
            (Force(0, 6), "+0 60"),
            (GiveBack(10, 0, 3), "+0 20"),
            (Take(20, 1), "+0 20"),
        ],
    );
}

#[test]
fn a_fixed_window_credits_only_its_own_charges() {
    check(
        ModelQuota::new(ModelAlgorithm::FixedWindow, 5, 100),
        &[
            (Take(10, 2), "+3 100"),
            (Take(50, 2), "+1 60"),
            (GiveBack(109, 50, 2), "+3 1"),
            (Take(110, 1), "+4 100"),
            (GiveBack(120, 10, 2), "+4 90"),
            // Nothing counts, so nothing is open; the next charge opens a new window.
            (GiveBack(120, 110, 1), "+5 0"),
            (Take(130, 1), "+4 100"),
        ],
    );
}

#[test]
fn an_aligned_window_credits_only_its_own_charges() {
    check(
        ModelQuota::new(ModelAlgorithm::FixedWindowAligned, 5, 100),
        &[
            (Take(90, 2), "+3 10"),
            (Take(110, 2), "+3 90"),
            (GiveBack(120, 90, 2), "+3 80"),
            (GiveBack(120, 110, 2), "+5 0"),
            (Take(130, 1), "+4 70"),
        ],
    );
}

#[test]
fn a_sliding_window_credits_the_counter_that_was_charged() {
    check(
        ModelQuota::new(ModelAlgorithm::SlidingWindow, 10, 100),
        &[
            (Take(50, 4), "+6 150"),
            (Take(150, 4), "+4 150"),
            (GiveBack(150, 50, 2), "+5 150"),
            (GiveBack(150, 150, 4), "+9 50"),
            (GiveBack(250, 50, 2), "+10 0"),
        ],
    );
}

#[test]
fn a_sliding_log_credits_what_is_still_in_the_window() {
    check(
        ModelQuota::new(ModelAlgorithm::SlidingLog, 5, 100),
        &[
            (Take(0, 2), "+3 100"),
            (Take(10, 3), "+0 100"),
            (GiveBack(20, 10, 2), "+2 90"),
            (GiveBack(20, 15, 2), "+2 90"),
            (GiveBack(20, 10, 9), "+3 80"),
            (GiveBack(100, 0, 2), "+5 0"),
        ],
    );
}

/// Charges at random, refunds one of the charges, and compares the credit with the lowest debt seen
/// since, read just before each charge and at the end. At a token each 10 microseconds the time to
/// reset is the debt in tenths of a token.
#[test]
fn the_credit_is_the_least_of_the_cost_and_the_lowest_debt_since() {
    let mut dice = Dice(1);
    for _ in 0..300 {
        let mut bucket = ModelBucket::new(ModelQuota::token_bucket(1, 10, 1_000));
        let (mut now_us, cost) = (100, 1 + dice.roll(9));
        bucket.take(now_us, dice.roll(4));
        let mut lowest = bucket.take(now_us, cost).reset_us;
        for _ in 0..dice.roll(8) {
            now_us += dice.roll(60);
            lowest = lowest.min(bucket.would(now_us, 0).reset_us);
            bucket.take(now_us, dice.roll(6));
        }
        let before = bucket.would(now_us, 0).reset_us;
        bucket.give_back(now_us, 100, cost);
        let credit = before - bucket.would(now_us, 0).reset_us;
        assert_eq!(credit, lowest.min(10 * cost));
    }
}

/// Refunds some charges of a random history, in random order and late, and expects the bucket to
/// answer as a twin that was never charged them.
#[test]
fn a_refund_leaves_no_trace() {
    let mut dice = Dice(2);
    // A fixed window that opens with its first charge starts there, refunded or not.
    let algorithms = ALGORITHMS
        .iter()
        .filter(|it| **it != ModelAlgorithm::FixedWindow);
    for algorithm in algorithms.copied().cycle().take(600) {
        let quota = ModelQuota {
            overdraft: 1_000,
            ..ModelQuota::new(algorithm, 3 + dice.roll(20), 50 + dice.roll(100))
        };
        let (mut bucket, mut twin) = (ModelBucket::new(quota), ModelBucket::new(quota));
        let (mut now_us, mut pending) = (dice.roll(1_000), Vec::new());
        for _ in 0..25 {
            now_us += dice.roll(12);
            let cost = 1 + dice.roll(4);
            if !bucket.take(now_us, cost).allowed {
                continue;
            }
            if dice.roll(3) == 0 {
                pending.push((now_us, cost));
            } else {
                // A charge that the bucket admitted fits the twin too, because the twin never owes
                // more.
                assert!(twin.take(now_us, cost).allowed);
            }
        }
        while !pending.is_empty() {
            now_us += dice.roll(5);
            let pick = usize::try_from(dice.roll(100)).unwrap() % pending.len();
            let (taken_at_us, cost) = pending.swap_remove(pick);
            bucket.give_back(now_us, taken_at_us, cost);
        }
        for later_us in 0..300 {
            let then_us = now_us + later_us;
            for cost in [0, 1, 3] {
                let (one, other) = (bucket.would(then_us, cost), twin.would(then_us, cost));
                assert_eq!(one, other, "{quota:?}");
            }
        }
    }
}
