//! Token buckets: a request that waits has a place, and no other request passes before it.

use crate::{Crowd, ask, ask_for, limiter, settle, waiting};
use std::time::Duration;
use tidegate::Request;
use tokio::time::Instant;

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_thousand_wait_in_order_of_arrival_and_the_next_is_refused() {
    let limiter = limiter(
        "{ name: all, rate: 100/s burst 1, on_refusal: wait, max_wait: 10s, max_waiting: 2000 }",
    );
    // One passes immediately, and a thousand have places.
    let crowd = Crowd::of(&limiter, 1_001).await;
    assert_eq!(waiting(&limiter), 1_000);
    let late = ask(&limiter).await.unwrap();
    assert!(!late.is_allowed());
    let retry_after = late.binding().unwrap().retry_after().unwrap();
    assert!(retry_after <= 10 * MS, "{retry_after:?}");
    let all = crowd.end().await;
    for (nth, (decision, passed)) in (0..).zip(&all) {
        assert!(decision.is_allowed(), "{nth}");
        // Never before its turn, and at most late by a timer and a tick.
        let turn = 10 * MS * nth;
        assert!(*passed >= turn && *passed <= turn + MS, "{nth}: {passed:?}");
        assert!(decision.waited() <= Duration::from_secs(10) + MS);
    }
    assert!(all[0].0.waited().is_zero());
    assert_eq!(waiting(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_longer_than_max_wait() {
    let limiter = limiter("{ name: all, rate: 3/s burst 2, on_refusal: wait, max_wait: 1500ms }");
    // Two at once, and four refill in a second and a half.
    let all = Crowd::of(&limiter, 10).await.end().await;
    let allowed: Vec<_> = all.iter().filter(|(it, _)| it.is_allowed()).collect();
    assert_eq!(allowed.len(), 6);
    for (decision, passed) in allowed {
        assert!(*passed <= Duration::from_millis(1_501), "{decision:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_leaving_frees_a_place() {
    let limiter = limiter(
        "{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 1h, max_waiting: 3 }",
    );
    let crowd = Crowd::of(&limiter, 4).await;
    assert_eq!(waiting(&limiter), 3);
    let refused = ask(&limiter).await.unwrap();
    assert!(!refused.is_allowed(), "no more may wait");
    assert_eq!(refused.binding().unwrap().remaining(), 0);
    tokio::time::advance(101 * MS).await;
    settle().await;
    assert_eq!(waiting(&limiter), 2);
    let another = ask(&limiter);
    settle().await;
    assert_eq!(waiting(&limiter), 3);
    let all = crowd.end().await;
    assert!(all.iter().all(|(it, _)| it.is_allowed()));
    assert!(another.await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_does_not_refuse_requests_that_need_not_wait() {
    let limiter = limiter(
        "{ name: all, key: user, rate: 10/s burst 1, on_refusal: wait, max_wait: 1h, max_waiting: 1 }",
    );
    let of = |user: &'static str| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.check(&Request::new().user(user)).await.unwrap() })
    };
    assert!(of("ann").await.unwrap().is_allowed());
    let waits = of("ann");
    settle().await;
    assert_eq!(waiting(&limiter), 1);
    // All clients of one limit share the room; but no other client has used this bucket.
    assert!(of("bob").await.unwrap().is_allowed());
    assert!(!of("bob").await.unwrap().is_allowed());
    assert!(waits.await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn a_queued_request_does_not_compete_for_its_place_again() {
    let limiter = limiter("{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 1s }");
    let crowd = Crowd::of(&limiter, 6).await;
    // Other requests try all the time; those that do not wait find nothing in between.
    let began = Instant::now();
    for _ in 0..500 {
        tokio::time::advance(MS).await;
        assert!(!limiter.check_now(&Request::new()).unwrap().is_allowed());
    }
    assert!(began.elapsed() >= 500 * MS);
    let all = crowd.end().await;
    for (nth, (decision, passed)) in (0..).zip(&all) {
        assert!(decision.is_allowed());
        assert!(*passed <= 100 * MS * nth + 2 * MS, "{nth}: {passed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_interval_exceeds_the_policy() {
    let (rate, burst) = (50, 7);
    let limiter = limiter(
        "{ name: all, rate: 50/s burst 7, on_refusal: wait, max_wait: 2s, max_waiting: 40 }",
    );
    let began = Instant::now();
    let mut tasks = Vec::new();
    for round in 0..200_u64 {
        for _ in 0..round % 5 {
            let limiter = limiter.clone();
            tasks.push(tokio::spawn(async move {
                let decision = limiter.check(&Request::new().cost(1 + round % 3)).await;
                (decision.unwrap(), 1 + round % 3, began.elapsed())
            }));
        }
        tokio::time::advance(Duration::from_millis(round % 23)).await;
        settle().await;
    }
    let mut passed: Vec<(Duration, u64)> = Vec::new();
    for task in tasks {
        let (decision, cost, at) = task.await.unwrap();
        if decision.is_allowed() {
            passed.push((at, cost));
        }
    }
    passed.sort_unstable();
    assert!(passed.len() > 60, "{}", passed.len());
    for (i, (from, _)) in passed.iter().enumerate() {
        let mut sum = 0;
        for (to, cost) in &passed[i..] {
            sum += cost;
            // A timer fires up to a millisecond late, so that two may seem that much closer.
            let micros = u64::try_from((*to - *from + MS).as_micros()).unwrap();
            assert!(
                sum <= burst + rate * micros / 1_000_000 + 1,
                "{from:?} {to:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_impossible_cost_is_refused_at_once_and_others_wait_exactly() {
    let limiter = limiter("{ name: all, rate: 10/s burst 5, on_refusal: wait, max_wait: 1s }");
    let never = ask_for(&limiter, 6).await.unwrap();
    assert!(!never.is_allowed());
    assert_eq!(never.binding().unwrap().retry_after(), None);
    assert!(ask_for(&limiter, 5).await.unwrap().waited().is_zero());
    let began = Instant::now();
    let four = ask_for(&limiter, 4);
    settle().await;
    let one = ask_for(&limiter, 1);
    assert!(four.await.unwrap().is_allowed());
    assert!(began.elapsed() >= 400 * MS && began.elapsed() <= 402 * MS);
    let one = one.await.unwrap();
    assert!(one.is_allowed() && began.elapsed() >= 500 * MS);
    assert_eq!(one.binding().unwrap().remaining(), 0);
    // The time until the bucket is full, counted from when the request passed.
    let reset = one.binding().unwrap().reset_after();
    assert!(reset <= Duration::from_millis(500), "{reset:?}");
    // A read waits for nothing.
    let looked = limiter.check(&Request::new().cost(0)).await.unwrap();
    assert!(looked.is_allowed() && looked.waited().is_zero());
}
