use super::Act::{Force, GiveBack, Take};
use super::{ModelAlgorithm, ModelQuota, check};

fn with_overdraft(quota: ModelQuota, overdraft: u64) -> ModelQuota {
    ModelQuota { overdraft, ..quota }
}

#[test]
fn a_token_bucket_goes_below_empty_down_to_its_overdraft() {
    // A token each 10; 4 at once; at most 3 below empty: a debt of 7 tokens, 70 to drain.
    check(
        with_overdraft(ModelQuota::token_bucket(1, 10, 4), 3),
        &[
            (Force(0, 3), "+1 30"),
            (Force(0, 2), "+0 50"),
            (Force(0, 1), "-0 60 30"),
            (Force(0, 9), "-0 70 40"),
            (Force(5, 9), "-0 70 40"),
            (Take(5, 1), "-0 70 40"),
            (Take(44, 1), "-0 31 1"),
            (Take(45, 1), "+0 40"),
            (Force(55, 2), "+0 50"),
            (Force(115, 0), "+4 0"),
        ],
    );
}

#[test]
fn a_fraction_of_a_token_is_not_a_token() {
    check(
        with_overdraft(ModelQuota::token_bucket(1, 10, 1), 1),
        &[
            (Force(0, 1), "+0 10"),
            (Force(9, 1), "-0 11 11"),
            (Force(20, 1), "+0 10"),
        ],
    );
}

#[test]
fn without_overdraft_it_empties_the_bucket_and_stops() {
    check(
        ModelQuota::token_bucket(1, 10, 4),
        &[
            (Force(0, 100), "+0 40"),
            (Force(15, 100), "+0 40"),
            (Force(16, 1), "-0 40 10"),
        ],
    );
}

#[test]
fn a_fixed_window_counts_up_to_its_overdraft() {
    check(
        with_overdraft(ModelQuota::new(ModelAlgorithm::FixedWindow, 4, 100), 2),
        &[
            (Force(10, 3), "+1 100"),
            (Force(20, 9), "+0 90"),
            (Force(30, 1), "-0 80 80"),
            // Only a refund shows how far above the amount it counted: six, less two, is full.
            (GiveBack(40, 20, 2), "+0 70"),
            (GiveBack(40, 20, 1), "+1 70"),
            (Take(110, 4), "+0 100"),
        ],
    );
}

#[test]
fn a_sliding_log_counts_up_to_its_overdraft() {
    check(
        with_overdraft(ModelQuota::new(ModelAlgorithm::SlidingLog, 4, 100), 2),
        &[
            (Force(10, 3), "+1 100"),
            (Force(20, 9), "+0 100"),
            // Three at 10 and three at 20: three must leave before a fourth may come.
            (Force(30, 1), "-0 90 80"),
            (Take(109, 1), "-0 11 1"),
            (Take(110, 1), "+0 100"),
        ],
    );
}

#[test]
fn a_bucketed_window_counts_up_to_its_overdraft() {
    check(
        with_overdraft(
            ModelQuota::new(ModelAlgorithm::BucketedWindow { parts: 10 }, 4, 100),
            2,
        ),
        &[
            (Force(10, 3), "+1 110"),
            (Force(20, 9), "+0 110"),
            (Force(30, 1), "-0 100 90"),
            (Take(119, 1), "-0 11 1"),
            (Take(120, 1), "+0 110"),
        ],
    );
}

#[test]
fn a_sliding_window_counts_up_to_its_overdraft_in_each_window() {
    check(
        with_overdraft(ModelQuota::new(ModelAlgorithm::SlidingWindow, 4, 100), 2),
        &[
            (Force(10, 3), "+1 190"),
            (Force(20, 9), "+0 180"),
            // Six fade to three halfway through the next window.
            (Force(30, 1), "-0 170 120"),
            (Take(149, 1), "-0 51 1"),
            (Take(150, 1), "+0 150"),
        ],
    );
}
