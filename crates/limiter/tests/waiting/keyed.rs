//! Waiting by a key alone.

use crate::{RuntimeClock, settle, waiting};
use std::time::Duration;
use tidegate::{KeyPart, KeyedLimiter, LimitSpec, Limiter, MemoryStore, Rate};
use tokio::time::Instant;

const MS: Duration = Duration::from_millis(1);

fn jobs(max_wait: Option<Duration>) -> KeyedLimiter<MemoryStore<RuntimeClock>> {
    let limit = LimitSpec::new("jobs").key(KeyPart::User);
    let limit = limit.band(Rate::per_second(10).burst(1));
    let limit = match max_wait {
        Some(max_wait) => limit.wait(max_wait),
        None => limit,
    };
    let builder = Limiter::builder().limit(limit);
    KeyedLimiter::new(builder.clock(RuntimeClock::start()).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn keys_wait_independently_until_their_turns() {
    let jobs = jobs(Some(350 * MS));
    let began = Instant::now();
    for nth in 0..3 {
        assert!(jobs.until_ready("ann").await.unwrap().is_allowed());
        let passed = began.elapsed();
        let turn = 100 * MS * nth;
        assert!(passed >= turn && passed <= turn + 2 * MS, "{passed:?}");
    }
    let before = Instant::now();
    assert!(jobs.until_ready("bob").await.unwrap().is_allowed());
    assert!(before.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_would_come_too_late_is_refused_at_once_and_a_dropped_one_is_released() {
    let jobs = jobs(Some(350 * MS));
    let mut queued = Vec::new();
    for _ in 0..4 {
        let jobs = jobs.clone();
        queued.push(tokio::spawn(async move {
            jobs.until_ready("ann").await.unwrap().is_allowed()
        }));
        settle().await;
    }
    assert_eq!(waiting(jobs.limiter()), 3);
    let before = Instant::now();
    assert!(!jobs.until_ready("ann").await.unwrap().is_allowed());
    assert!(before.elapsed().is_zero());
    assert!(!jobs.check_key("ann").unwrap().is_allowed(), "never waits");

    queued[2].abort();
    settle().await;
    assert_eq!(waiting(jobs.limiter()), 2);
    assert!(jobs.until_ready("ann").await.unwrap().is_allowed());
    for nth in [0, 1, 3] {
        assert!((&mut queued[nth]).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn without_wait_no_request_waits() {
    let jobs = jobs(None);
    assert!(jobs.until_ready("ann").await.unwrap().is_allowed());
    let refused = jobs.until_ready("ann").await.unwrap();
    assert!(!refused.is_allowed() && refused.waited().is_zero());
}
