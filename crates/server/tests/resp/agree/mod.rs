//! One trace, every door: whoever asks, and in whatever words, is told the same.
//!
//! | module | what it is |
//! |---|---|
//! | `setting` | configurations that nobody has thought of |
//! | `question` | questions that nobody has thought of |
//! | `doors` | the library and the doors, each with buckets of its own |
//! | `said` | what they say, and whether it is the same |
//!
//! Each door is asked the same in the same order. They are asked one after the other, so that what is
//! told of times differs by as much as has passed, and by no more; of everything else nothing differs.

/// The library and the doors, each with buckets of its own.
mod doors;
/// Questions that nobody has thought of.
mod question;
/// What they say, and whether it is the same.
mod said;
/// Configurations that nobody has thought of.
mod setting;

use doors::Doors;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use question::Question;
use said::Tolerance;
use std::cell::Cell;
use tidegate::{Clock, SystemClock};
use tidegate_testkit::redis;
use tokio::runtime::Runtime;

/// All instants at which anything here changes by itself are multiples of this much after the epoch,
/// or after a question: every period, its thirty-second part and its share of a unit are.
const GRID_US: u64 = 7_500_000;

/// How far from such an instant the clocks of two processes may differ.
const MARGIN_US: u64 = 100_000;

#[test]
fn every_door_tells_the_same_of_buckets_in_memory() {
    agree("");
}

#[test]
fn every_door_tells_the_same_of_buckets_in_redis() {
    let redis = redis::Server::start();
    // A store that has all the time it wants: a busy machine is no reason to decide otherwise. What is
    // told of a refusal that is remembered is what Redis would tell.
    let store = format!(
        "store: {{ url: '{}', timeout: 10s, prefix: 'PREFIX' }}",
        redis.url()
    );
    agree(&store);
}

/// Asks traces of every door; `store` is a line of the configuration.
fn agree(store: &str) {
    let runtime = Runtime::new().unwrap();
    let (asked, refused, cases) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        cases: 48,
        max_shrink_time: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let traces = (any::<bool>(), setting::policy(), question::trace());
    let ran = TestRunner::new(config).run(&traces, |(is_whole, policy, trace)| {
        // What only some doors can say is not asked of the others.
        let trace = trace.into_iter().map(|it| it.said_by(is_whole));
        let trace: Vec<Question> = trace.collect();
        loop {
            let nth = cases.replace(cases.get() + 1);
            let store = store.replace("PREFIX", &format!("agree{nth}-DOOR:"));
            let config = format!("{store}\n{policy}");
            let asking = compare(&config, &trace, is_whole);
            let (before, compared) = (now_us(), runtime.block_on(asking));
            if is_between(before, now_us()) {
                let found = compared.map_err(TestCaseError::fail)?;
                asked.set(asked.get() + trace.len());
                refused.set(refused.get() + found);
                return Ok(());
            }
        }
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    // So that it is known to have compared something.
    let (asked, refused) = (asked.get(), refused.get());
    assert!(
        (asked / 20..asked * 19 / 20).contains(&refused),
        "{refused} of {asked} were refused"
    );
}

/// Asks every door all of `trace`; how many were refused, or what differed first.
async fn compare(config: &str, trace: &[Question], is_whole: bool) -> Result<usize, String> {
    let mut doors = Doors::open(config, is_whole).await;
    let (mut refused, begin) = (0, now_us());
    for (nth, question) in trace.iter().enumerate() {
        let library = doors.library(question).await;
        refused += usize::from(!library.is_allowed());
        let others = doors.others(question).await;
        // What is kept of the past was taken at different times as well.
        let may = Tolerance {
            passed_ms: (now_us() - begin).div_ceil(1_000),
            each_by_itself: config.contains(setting::EACH),
        };
        for (door, said) in others {
            if let Some(difference) = library.differs(&said, may) {
                return Err(format!(
                    "{config}\nquestion {nth}, {door}, with {may:?}: {difference}\n\
                     {question:?}\nlibrary: {library:?}\n{door}: {said:?}"
                ));
            }
        }
    }
    Ok(refused)
}

/// Whether nothing has changed by itself from one instant to another.
fn is_between(from_us: u64, to_us: u64) -> bool {
    let grid = |at: u64| at / GRID_US;
    grid(from_us - MARGIN_US) == grid(to_us + MARGIN_US)
}

fn now_us() -> u64 {
    SystemClock::new().now().as_micros()
}
