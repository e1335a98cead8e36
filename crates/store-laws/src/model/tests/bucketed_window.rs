use super::Act::{GiveBack, Take};
use super::{ModelAlgorithm, ModelQuota, check};

const QUARTERS: ModelAlgorithm = ModelAlgorithm::BucketedWindow { parts: 4 };

#[test]
fn a_part_expires_as_a_whole_a_period_after_its_end() {
    // Parts of 10: 0-9 leaves at 50, 10-19 at 60, 30-39 at 80.
    check(
        ModelQuota::new(QUARTERS, 5, 40),
        &[
            (Take(0, 0), "+5 0"),
            (Take(9, 2), "+3 41"),
            (Take(10, 1), "+2 50"),
            (Take(35, 2), "+0 45"),
            (Take(35, 1), "-0 45 15"),
            (Take(49, 1), "-0 31 1"),
            (Take(49, 3), "-0 31 11"),
            (Take(49, 4), "-0 31 31"),
            (Take(50, 3), "-2 30 10"),
            (Take(50, 2), "+0 50"),
            (Take(60, 1), "+0 50"),
            (Take(79, 2), "-0 31 1"),
            (Take(80, 2), "+0 50"),
            (Take(99, 5), "-0 31 31"),
            (Take(130, 5), "+0 50"),
        ],
    );
}

#[test]
fn the_length_of_a_part_is_rounded_up() {
    // 10 in 4 parts are parts of 3: 0-2 leaves at 13, 9-11 at 22.
    check(
        ModelQuota::new(QUARTERS, 2, 10),
        &[
            (Take(2, 1), "+1 11"),
            (Take(11, 1), "+0 11"),
            (Take(12, 1), "-0 10 1"),
            (Take(13, 1), "+0 12"),
            (Take(13, 2), "-0 12 12"),
        ],
    );
}

#[test]
fn more_parts_than_microseconds_are_parts_of_one() {
    check(
        ModelQuota::new(ModelAlgorithm::BucketedWindow { parts: 8 }, 1, 3),
        &[
            (Take(5, 1), "+0 4"),
            (Take(8, 1), "-0 1 1"),
            (Take(9, 1), "+0 4"),
        ],
    );
}

#[test]
fn one_part_equals_a_window_and_its_predecessor() {
    check(
        ModelQuota::new(ModelAlgorithm::BucketedWindow { parts: 1 }, 3, 10),
        &[
            (Take(7, 2), "+1 13"),
            (Take(12, 1), "+0 18"),
            (Take(19, 1), "-0 11 1"),
            (Take(20, 2), "+0 20"),
        ],
    );
}

#[test]
fn a_cost_above_the_amount_never_passes() {
    check(
        ModelQuota::new(QUARTERS, 5, 40),
        &[
            (Take(3, 6), "-5 0 never"),
            (Take(3, 5), "+0 47"),
            (Take(3, 6), "-0 47 never"),
        ],
    );
}

#[test]
fn a_refund_changes_only_its_own_part() {
    check(
        ModelQuota::new(QUARTERS, 5, 40),
        &[
            (Take(5, 2), "+3 45"),
            (Take(12, 3), "+0 48"),
            (GiveBack(15, 12, 3), "+3 35"),
            (GiveBack(49, 5, 1), "+4 1"),
            (GiveBack(50, 5, 1), "+5 0"),
        ],
    );
}
