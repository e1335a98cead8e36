//! Tables of cases, worked out by hand. In a picture, `+` passes and `-` is refused.

use super::lent::{Low, Lows};
use super::log::LogRun;
use super::token_bucket::CreditCount;
use super::{Bucket, BucketState, FixedWindow, LendingBucket, Log, SlidingWindow, TokenBucket};
use crate::{Algorithm, Align, OnChange, Op, Outcome, Quota, QuotaSpec, Timestamp, step};

const FIXED: Algorithm = Algorithm::FixedWindow(Align::FirstRequest);
const CLOCK: Algorithm = Algorithm::FixedWindow(Align::Clock);

/// Takes one unit at each instant.
#[track_caller]
fn run(spec: QuotaSpec<'_>, instants_us: &[u64]) -> String {
    let costs = instants_us.iter().map(|at| (*at, 1));
    picture(&decide(spec, costs))
}

fn decide(spec: QuotaSpec<'_>, costs: impl Iterator<Item = (u64, u64)>) -> Vec<Outcome> {
    let quota = spec.build().unwrap();
    let mut bucket = Bucket::new(&quota);
    costs
        .map(|(at, cost)| {
            let at = Timestamp::from_micros(at);
            step::decide_one(&quota, &mut bucket, Op::Take(cost), at)
        })
        .collect()
}

fn picture(outcomes: &[Outcome]) -> String {
    let sign = |outcome: &Outcome| if outcome.is_allowed() { '+' } else { '-' };
    outcomes.iter().map(sign).collect()
}

/// Each step is an instant and a cost; each outcome is written as `+remaining reset` or
/// `-remaining reset wait`.
#[track_caller]
fn check(spec: QuotaSpec<'_>, table: &[(u64, u64, &str)]) {
    let outcomes = decide(spec, table.iter().map(|(at, cost, _)| (*at, *cost)));
    for (row, (outcome, (_, _, expected))) in outcomes.iter().zip(table).enumerate() {
        let Outcome {
            remaining,
            reset_us,
            wait,
            ..
        } = outcome;
        let text = match (outcome.is_allowed(), wait.as_micros()) {
            (true, _) => format!("+{remaining} {reset_us}"),
            (false, Some(wait)) => format!("-{remaining} {reset_us} {wait}"),
            (false, None) => format!("-{remaining} {reset_us} never"),
        };
        assert_eq!(text, *expected, "row {row}");
    }
}

#[test]
fn a_token_returns_each_interval() {
    let spec = Quota::new(1, 10).burst(3);
    assert_eq!(run(spec, &[0, 0, 0, 9, 10, 10]), "+++-+-");
    assert_eq!(run(spec, &[0, 0, 0, 0, 20, 20, 20]), "+++-++-");
    assert_eq!(run(spec, &[0, 0, 0, 1_000, 1_000, 1_000, 1_000]), "++++++-");
}

#[test]
fn a_burst_of_one_spaces_requests_evenly() {
    let spec = Quota::new(1, 10).burst(1);
    assert_eq!(run(spec, &[0, 0, 9, 10, 19, 20, 40, 40]), "+--+-++-");
}

/// 3 tokens in 10 microseconds: one every 3⅓, and no third is lost.
#[test]
fn a_fraction_of_a_token_is_kept() {
    let spec = Quota::new(3, 10).burst(2);
    assert_eq!(run(spec, &[0, 0, 3, 4, 6, 7, 9, 10, 13, 14]), "++-+-+-+-+");
    check(
        spec,
        &[
            (0, 2, "+0 7"),
            (3, 1, "-0 4 1"), // 1.1 are owed
            (4, 1, "+0 6"),   // 1.8
            (6, 1, "-0 4 1"), // 1.2
            (7, 1, "+0 7"),   // 1.9
            (10, 1, "+0 7"),  // 2: three in ten, to the microsecond
        ],
    );
}

/// More than one token per microsecond.
#[test]
fn rates_above_one_per_tick_are_counted() {
    check(
        Quota::new(7, 2).burst(5),
        &[
            (0, 5, "+0 2"),
            (0, 1, "-0 2 1"),
            (1, 3, "+0 2"),
            (1, 1, "-0 2 1"),
            (2, 4, "+0 2"),
            (2, 6, "-0 2 never"),
            (4, 0, "+5 0"),
        ],
    );
}

#[test]
fn a_token_bucket_reports_the_remaining_units_and_the_wait() {
    check(
        Quota::new(1, 10).burst(5),
        &[
            (0, 0, "+5 0"),
            (0, 2, "+3 20"),
            (5, 4, "-3 15 5"),
            (5, 6, "-3 15 never"),
            (10, 4, "+0 50"),
            (10, 1, "-0 50 10"),
            (59, 5, "-4 1 1"),
            (60, 5, "+0 50"),
        ],
    );
}

#[test]
fn a_fixed_window_opens_with_its_first_request() {
    assert_eq!(
        run(
            Quota::new(2, 10).algorithm(FIXED),
            &[7, 8, 9, 16, 17, 17, 18, 30, 39, 39, 40]
        ),
        "++--++-++-+"
    );
    check(
        Quota::new(3, 10).algorithm(FIXED),
        &[
            (7, 2, "+1 10"),
            (8, 2, "-1 9 9"),
            (8, 4, "-1 9 never"),
            (8, 1, "+0 9"),
            (16, 1, "-0 1 1"),
            (17, 0, "+3 0"),
            (25, 1, "+2 10"),
        ],
    );
}

#[test]
fn a_clock_window_starts_at_the_full_period() {
    assert_eq!(
        run(
            Quota::new(2, 10).algorithm(CLOCK),
            &[7, 8, 9, 10, 11, 12, 19, 20]
        ),
        "++-++--+"
    );
    check(
        Quota::new(2, 10).algorithm(CLOCK),
        &[(19, 2, "+0 1"), (19, 1, "-0 1 1"), (20, 1, "+1 10")],
    );
}

#[test]
fn a_sliding_window_weights_the_previous_window() {
    check(
        Quota::new(4, 100).algorithm(Algorithm::SlidingWindow),
        &[
            (50, 4, "+0 150"),
            (50, 1, "-0 150 75"), // in the next window, after a quarter of the four has faded
            (100, 1, "-0 100 25"),
            (124, 1, "-0 76 1"),
            (125, 1, "+0 175"),
            (150, 1, "+0 150"),
            (150, 3, "-0 150 100"), // 2 + 4 × ⅓ … one must fade from the next window on
            (250, 5, "-3 50 never"),
            (299, 3, "+0 101"),
            (300, 0, "+1 100"),
            (400, 0, "+4 0"),
        ],
    );
}

/// The clock goes back into the previous window: the current one then counts as just begun, and
/// nothing of the previous one has faded.
#[test]
fn a_sliding_window_does_not_gain_weight_over_time() {
    check(
        Quota::new(10, 100).algorithm(Algorithm::SlidingWindow),
        &[
            (50, 8, "+2 150"),
            (100, 2, "+0 200"),
            (99, 1, "-0 201 14"),
            (113, 1, "+0 187"),
        ],
    );
}

#[test]
fn a_sliding_log_drops_each_unit_after_one_period() {
    check(
        Quota::new(3, 100).algorithm(Algorithm::SlidingLog),
        &[
            (0, 1, "+2 100"),
            (40, 2, "+0 100"),
            (99, 1, "-0 41 1"),
            (100, 1, "+0 100"),
            (100, 2, "-0 100 40"),
            (100, 3, "-0 100 100"),
            (100, 4, "-0 100 never"),
            (140, 2, "+0 100"),
            (240, 0, "+3 0"),
        ],
    );
}

/// 320 microseconds in 32 parts of 10: a unit counts until one period after its part ends.
#[test]
fn a_bucketed_window_counts_by_parts() {
    check(
        Quota::new(3, 320).algorithm(Algorithm::BucketedWindow),
        &[
            (3, 1, "+2 327"),
            (9, 1, "+1 321"),
            (10, 1, "+0 330"),
            (329, 1, "-0 11 1"),
            (330, 2, "+0 330"),
            (339, 1, "-0 321 1"),
            (340, 1, "+0 330"),
        ],
    );
}

/// A period shorter than its number of parts.
#[test]
fn a_tiny_bucketed_window_has_parts_of_one_microsecond() {
    check(
        Quota::new(2, 5).algorithm(Algorithm::BucketedWindow),
        &[(0, 2, "+0 6"), (5, 1, "-0 1 1"), (6, 2, "+0 6")],
    );
}

#[test]
fn a_coarser_log_counts_longer_and_never_shorter() {
    let run_at = |stamp, units| LogRun { stamp, units };
    let runs = [
        run_at(1, 2),
        run_at(3, 1),
        run_at(5, 4),
        run_at(9, 1),
        run_at(11, 1),
    ];
    for (runs_max, expected) in [
        (5, vec![(1, 2), (3, 1), (5, 4), (9, 1), (11, 1)]),
        (3, vec![(3, 3), (9, 5), (11, 1)]),
        (2, vec![(5, 7), (11, 2)]),
        (1, vec![(11, 9)]),
        (0, vec![(11, 9)]),
    ] {
        let mut log = Log::from_runs(runs);
        log.coarsen(runs_max);
        let left: Vec<(u64, u64)> = log.runs().map(|run| (run.stamp, run.units)).collect();
        assert_eq!(left, expected, "{runs_max}");
    }
}

/// A stored log may be damaged; decoding it loses no unit.
#[test]
fn a_log_of_runs_out_of_order_loses_no_unit() {
    let runs = [(5, 1), (5, 2), (3, 4), (9, 0), (7, 1)];
    let log = Log::from_runs(runs.map(|(stamp, units)| LogRun { stamp, units }));
    let left: Vec<(u64, u64)> = log.runs().map(|run| (run.stamp, run.units)).collect();
    assert_eq!(left, [(5, 7), (7, 1)]);
}

#[test]
fn a_bucket_has_its_quotas_algorithm_and_only_logs_allocate() {
    for (algorithm, name) in [
        (Algorithm::TokenBucket, "Tokens"),
        (FIXED, "Fixed"),
        (CLOCK, "Fixed"),
        (Algorithm::SlidingWindow, "Sliding"),
        (Algorithm::SlidingLog, "Log"),
        (Algorithm::BucketedWindow, "Log"),
    ] {
        let quota = Quota::new(9, 100).algorithm(algorithm).build().unwrap();
        let mut bucket = Bucket::new(&quota);
        assert!(format!("{bucket:?}").starts_with(name));
        assert_eq!(bucket.heap_bytes(), 0);
        let now = Timestamp::from_micros(7);
        step::decide_one(&quota, &mut bucket, Op::Take(2), now);
        assert_eq!(bucket.heap_bytes() > 0, name == "Log");
        assert!(!bucket.is_beyond_reach(&quota, now));
    }
}

/// Returns the numbers of a state, after checking that they decode to the same state.
#[track_caller]
fn written(quota: Quota, bucket: &Bucket) -> Vec<u64> {
    let mut numbers = Vec::new();
    bucket.encode(&quota, &mut |number| numbers.push(number));
    let read = Bucket::decode(numbers.iter().copied(), &quota, Timestamp::default());
    assert_eq!(read.as_ref(), Some(bucket));
    numbers
}

/// The stored form of all versions: stores keep such numbers across versions.
#[test]
fn the_encoding_of_states_is_stable() {
    let low = |(at, ticks)| Low { at, ticks };
    let mut tokens = TokenBucket {
        at: 1,
        fraction: 2,
        credits: CreditCount::default(),
    };
    let second = Quota::new(7, 1_000_000);
    let coarse = Quota::new(1_000_003, 86_400_000_000); // in milliseconds
    let (fine, ms) = (second.build().unwrap(), coarse.build().unwrap());
    assert_eq!(written(fine, &Bucket::Tokens(tokens)), [1, 2]);
    assert_eq!(written(ms, &Bucket::Tokens(tokens)), [1, 2, 1_000_004]);
    tokens.credits = CreditCount { since: 3, ticks: 4 };
    let (fine, ms) = (fine.with_refundable(true), ms.with_refundable(true));
    assert_eq!(written(fine, &Bucket::Tokens(tokens)), [1, 2, 3, 4]);
    let numbers = [1, 2, 3, 4, 0, 0, 1_000_004];
    assert_eq!(written(ms, &Bucket::Tokens(tokens)), numbers);
    let (fine, ms) = (fine.with_lending(true), ms.with_lending(true));
    let lows = Lows::from_list([(5, 6), (7, 8)].map(low));
    let lent = Bucket::Lent(Box::new(LendingBucket { tokens, lows }));
    assert_eq!(written(fine, &lent), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(written(ms, &lent), [1, 2, 3, 4, 5, 6, 7, 8, 1_000_004]);

    let [kept, scaled] = [OnChange::Keep, OnChange::Scale].map(|it| second.on_change(it));
    let by = |spec: QuotaSpec<'_>, algorithm| spec.algorithm(algorithm).build().unwrap();
    let window = Bucket::Fixed(FixedWindow { start: 5, used: 6 });
    assert_eq!(written(by(kept, FIXED), &window), [5, 6]);
    assert_eq!(written(by(scaled, CLOCK), &window), [5, 6, 7 << 26]);
    let sliding = Algorithm::SlidingWindow;
    let [index, current, previous] = [5, 6, 7];
    let window = Bucket::Sliding(SlidingWindow {
        index,
        current,
        previous,
    });
    let numbers = [5, 6, 7, 1_000_000, 7 << 26];
    assert_eq!(written(by(kept, sliding), &window), numbers[..4]);
    assert_eq!(written(by(scaled, sliding), &window), numbers);
    let run = |(stamp, units)| LogRun { stamp, units };
    let log = Bucket::Log(Log::from_runs([(5, 6), (7, 8)].map(run)));
    for algorithm in [Algorithm::SlidingLog, Algorithm::BucketedWindow] {
        assert_eq!(written(by(kept, algorithm), &log), [14, 5, 6, 7, 8]);
    }
}

/// Stored band ids and reservation ids contain these codes.
#[test]
fn algorithm_codes_are_stable() {
    for (code, algorithm) in [
        (0, Algorithm::TokenBucket),
        (1, FIXED),
        (2, CLOCK),
        (3, Algorithm::SlidingWindow),
        (4, Algorithm::SlidingLog),
        (5, Algorithm::BucketedWindow),
    ] {
        assert_eq!(algorithm.code(), code);
        assert_eq!(Algorithm::from_code(code), Some(algorithm));
    }
    assert_eq!(Algorithm::from_code(u8::MAX), None);
}

/// A forced charge owes what it took below empty, in every algorithm, and the clock pays it off.
#[test]
fn an_overdrawn_bucket_says_what_it_owes() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::FixedWindow(Align::FirstRequest),
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
        Algorithm::BucketedWindow,
        Algorithm::CalendarWindow,
    ] {
        let spec = Quota::new(10, 10_000_000).algorithm(algorithm).overdraft(5);
        let quota = spec.build().unwrap();
        let mut bucket = Bucket::new(&quota);
        // The beginning of a window by the clock.
        let now = Timestamp::from_millis(1_700_000_000_000);
        let owes = [8, 5, 7].map(|cost| {
            let outcome = step::decide_one(&quota, &mut bucket, Op::Force(cost), now);
            assert_eq!(outcome.overdrawn, bucket.reading(&quota, now).overdrawn);
            (outcome.remaining, outcome.overdrawn)
        });
        assert_eq!(owes, [(2, 0), (0, 3), (0, 5)], "{algorithm:?}");
        let later = now.plus(30_000_000);
        assert_eq!(bucket.reading(&quota, later).overdrawn, 0, "{algorithm:?}");
    }
}

/// A refusal reports the debt too: in ticks that a unit does not fill, rounded up.
#[test]
fn a_debt_is_rounded_up_to_whole_units() {
    let quota = Quota::new(10, 10_000_000).overdraft(5).build().unwrap();
    let mut bucket = Bucket::new(&quota);
    let now = Timestamp::from_millis(1_700_000_000_000);
    step::decide_one(&quota, &mut bucket, Op::Force(13), now);
    for (after_us, owed) in [(0, 3), (1, 3), (999_999, 3), (1_000_000, 2), (3_000_000, 0)] {
        let refused = bucket.take(&quota, 1, now.plus(after_us));
        assert_eq!(
            (refused.overdrawn, refused.remaining),
            (owed, 0),
            "{after_us}"
        );
    }
}
