//! One trace, every frontend: all of them report the same decisions.
//!
//! | module | contents |
//! |---|---|
//! | `setting` | random configurations |
//! | `question` | random check requests |
//! | `frontends` | the library and all frontends, each with separate buckets |
//! | `said` | their responses, and the comparison |
//!
//! Each frontend gets the same requests in the same order, one frontend after the other. So times
//! in the responses may differ by the time that has passed. Nothing else may differ.

/// The library and all frontends, each with separate buckets.
mod frontends;
/// Random check requests.
mod question;
/// Responses and their comparison.
mod said;
/// Random configurations.
mod setting;

use frontends::Frontends;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use question::Question;
use said::Tolerance;
use std::cell::Cell;
use tidegate::{Clock, SystemClock};
use tidegate_testkit::redis;
use tokio::runtime::Runtime;

/// All instants at which state changes by time are multiples of this after the epoch or after a
/// request: every period, its thirty-second part and its share of a unit are.
const GRID_US: u64 = 7_500_000;

/// The maximum clock difference of two processes around such an instant.
const MARGIN_US: u64 = 100_000;

#[test]
fn every_frontend_reports_memory_buckets_alike() {
    agree("");
}

#[test]
fn every_frontend_reports_redis_buckets_alike() {
    let redis = redis::Server::start();
    // A long timeout, so that a busy machine does not change decisions. A cached refusal is
    // reported like one by Redis.
    let store = format!(
        "store: {{ url: '{}', timeout: 10s, redis: {{ prefix: 'PREFIX' }} }}",
        redis.url()
    );
    agree(&store);
}

/// Sends traces to every frontend; `store` is a line of the configuration.
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
        // Fields that only some frontends have are not sent to the others.
        let trace = trace.into_iter().map(|it| it.said_by(is_whole));
        let trace: Vec<Question> = trace.collect();
        loop {
            let nth = cases.replace(cases.get() + 1);
            let store = store.replace("PREFIX", &format!("agree{nth}-FRONTEND:"));
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
    // A check that the comparison covered both results.
    let (asked, refused) = (asked.get(), refused.get());
    assert!(
        (asked / 20..asked * 19 / 20).contains(&refused),
        "{refused} of {asked} were refused"
    );
}

/// Sends all of `trace` to every frontend. Returns the number of refusals, or the first difference.
async fn compare(config: &str, trace: &[Question], is_whole: bool) -> Result<usize, String> {
    let mut frontends = Frontends::open(config, is_whole).await;
    let (mut refused, begin) = (0, now_us());
    for (nth, question) in trace.iter().enumerate() {
        let library = frontends.library(question).await;
        refused += usize::from(!library.is_allowed());
        let others = frontends.others(question).await;
        // Past state was recorded at different times as well.
        let may = Tolerance {
            passed_ms: (now_us() - begin).div_ceil(1_000),
            each_by_itself: config.contains(setting::EACH),
        };
        for (frontend, said) in others {
            if let Some(difference) = library.differs(&said, may) {
                return Err(format!(
                    "{config}\nquestion {nth}, {frontend}, with {may:?}: {difference}\n\
                     {question:?}\nlibrary: {library:?}\n{frontend}: {said:?}"
                ));
            }
        }
    }
    Ok(refused)
}

/// Returns true if no state changes by time between two instants.
fn is_between(from_us: u64, to_us: u64) -> bool {
    let grid = |at: u64| at / GRID_US;
    grid(from_us - MARGIN_US) == grid(to_us + MARGIN_US)
}

fn now_us() -> u64 {
    SystemClock::new().now().as_micros()
}
