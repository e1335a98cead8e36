//! The model against itself, and against tables worked out by hand. (`tidegate-testkit` has it against the
//! vectors.)

mod bucketed_window;
mod force;
mod give_back;
mod laws;
mod requests;

use super::{ModelAlgorithm, ModelAnswer, ModelBucket, ModelQuota};

const ALGORITHMS: [ModelAlgorithm; 8] = [
    ModelAlgorithm::TokenBucket,
    ModelAlgorithm::FixedWindow,
    ModelAlgorithm::FixedWindowAligned,
    ModelAlgorithm::SlidingWindow,
    ModelAlgorithm::SlidingLog,
    ModelAlgorithm::BucketedWindow { parts: 4 },
    ModelAlgorithm::BucketedWindow { parts: 7 },
    ModelAlgorithm::CalendarWindow,
];

/// Writes an answer as `+remaining reset` or `-remaining reset wait`.
fn show(answer: ModelAnswer) -> String {
    let ModelAnswer {
        allowed,
        remaining,
        wait_us,
        reset_us,
    } = answer;
    match (allowed, wait_us) {
        (true, Some(0)) => format!("+{remaining} {reset_us}"),
        (false, Some(wait_us)) => format!("-{remaining} {reset_us} {wait_us}"),
        (false, None) => format!("-{remaining} {reset_us} never"),
        (true, _) => panic!("what is allowed does not wait: {answer:?}"),
    }
}

/// An operation on a bucket in a table: at an instant, a cost.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(u64, u64),
    Force(u64, u64),
    /// At an instant, a refund of a charge at another, of a cost; then a look.
    GiveBack(u64, u64, u64),
}

#[track_caller]
fn check(quota: ModelQuota, table: &[(Act, &str)]) {
    let mut bucket = ModelBucket::new(quota);
    for (row, (act, expected)) in table.iter().enumerate() {
        let answer = match *act {
            Act::Take(now_us, cost) => bucket.take(now_us, cost),
            Act::Force(now_us, cost) => bucket.force(now_us, cost),
            Act::GiveBack(now_us, taken_at_us, cost) => {
                bucket.give_back(now_us, taken_at_us, cost);
                bucket.take(now_us, 0)
            }
        };
        assert_eq!(show(answer), *expected, "row {row}, {act:?}");
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    /// Rolls a number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
