//! Requests that wait for a permit: each release lets the first of them pass.

use crate::{Crowd, ask, limiter, settle, waiting};
use std::time::Duration;
use tidegate::{Decision, Permit};
use tokio::time::{Instant, advance};

const JOBS: &str = "{ name: jobs, concurrent: 2, on_refusal: wait, max_wait: 10s, max_waiting: 5 }";

fn permit(decision: Decision) -> Permit {
    decision
        .into_permit()
        .unwrap_or_else(|| panic!("it holds no permit"))
}

#[tokio::test(start_paused = true)]
async fn each_release_lets_the_first_request_pass_at_once() {
    let limiter = limiter(JOBS);
    let mut held = vec![
        permit(ask(&limiter).await.unwrap()),
        permit(ask(&limiter).await.unwrap()),
    ];
    let began = Instant::now();
    let crowd: Vec<_> = {
        let mut crowd = Vec::new();
        for _ in 0..4 {
            crowd.push(ask(&limiter));
            settle().await;
        }
        crowd
    };
    assert_eq!(waiting(&limiter), 4);
    for (nth, waiter) in crowd.into_iter().enumerate() {
        advance(Duration::from_millis(300)).await;
        settle().await;
        assert!(!waiter.is_finished(), "{nth}: no permit is free");
        drop(held.remove(0));
        let decision = waiter.await.unwrap();
        assert!(decision.is_allowed(), "{nth}");
        assert_eq!(
            began.elapsed(),
            Duration::from_millis(300) * (u32::try_from(nth).unwrap() + 1)
        );
        held.push(permit(decision));
    }
    assert_eq!(waiting(&limiter), 0);
}

/// The wait is bounded in time and number, and a request that leaves delays no other.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_permit_is_bounded() {
    let limiter = limiter(JOBS);
    let held = [
        permit(ask(&limiter).await.unwrap()),
        permit(ask(&limiter).await.unwrap()),
    ];
    let crowd = Crowd::of(&limiter, 7).await;
    assert_eq!(waiting(&limiter), 5);
    crowd.tasks[0].abort();
    settle().await;
    assert_eq!(waiting(&limiter), 4);
    advance(Duration::from_secs(5)).await;
    drop(held);
    settle().await;
    let (mut ends, mut kept) = (Vec::new(), Vec::new());
    for task in crowd.tasks.into_iter().skip(1) {
        let (decision, ended) = task.await.unwrap();
        ends.push((decision.is_allowed(), ended.as_secs()));
        kept.push(decision);
    }
    let refused_at_once = [(false, 0), (false, 0)];
    assert_eq!(ends[..2], [(true, 5), (true, 5)]);
    assert_eq!(ends[2..4], [(false, 10), (false, 10)]);
    assert_eq!(ends[4..], refused_at_once);
    assert_eq!(waiting(&limiter), 0);
}

/// Next to a token bucket in which requests wait for their turn: one that leaves before its turn gives its permit
/// back.
#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_its_place_releases_its_permit() {
    let limiter = limiter(
        "{ name: rate, rate: 1/s burst 1, on_refusal: wait, max_wait: 10s }, { name: jobs, concurrent: 2 }",
    );
    let first = ask(&limiter).await.unwrap();
    let second = ask(&limiter);
    settle().await;
    assert_eq!(waiting(&limiter), 1);
    second.abort();
    settle().await;
    advance(Duration::from_secs(2)).await;
    let third = ask(&limiter).await.unwrap();
    assert!(
        first.is_allowed() && third.is_allowed(),
        "two are in flight, and not three"
    );
}
