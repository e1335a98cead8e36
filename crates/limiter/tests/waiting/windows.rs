//! Windows: the first request to arrive in this process is the first to call the store.

use crate::{Crowd, InMemory, ask, ask_for, limiter, settle, waiting};
use std::time::Duration;
use tidegate::Request;
use tokio::time::{Instant, advance};

const MS: Duration = Duration::from_millis(1);

const ALGORITHMS: [&str; 4] = [
    "fixed-window",
    "sliding-window",
    "sliding-log",
    "bucketed-window",
];

fn windows(algorithm: &str, rest: &str) -> InMemory {
    limiter(&format!(
        "{{ name: all, rate: 5/s, algorithm: {algorithm}, on_refusal: wait, {rest} }}"
    ))
}

#[tokio::test(start_paused = true)]
async fn all_pass_in_order_of_arrival_within_the_policy() {
    for algorithm in ALGORITHMS {
        let limiter = windows(algorithm, "max_wait: 1h");
        let all = Crowd::of(&limiter, 50).await.end().await;
        let mut last = Duration::ZERO;
        for (nth, (decision, passed)) in all.iter().enumerate() {
            assert!(decision.is_allowed(), "{algorithm} {nth}");
            assert!(
                *passed >= last,
                "{algorithm} {nth}: {passed:?} before {last:?}"
            );
            last = *passed;
        }
        // A fixed window and an estimate admit up to twice as many in an interval.
        let most = if algorithm.starts_with("fixed") || algorithm == "sliding-window" {
            10
        } else {
            5
        };
        for pair in all.windows(most + 1) {
            let apart = pair[most].1 - pair[0].1;
            assert!(
                apart + MS >= Duration::from_secs(1),
                "{algorithm}: {apart:?}"
            );
        }
        assert!(last <= Duration::from_secs(25), "{algorithm}: {last:?}");
        assert_eq!(waiting(&limiter), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_not_reached_in_time_is_refused_on_time() {
    for algorithm in ALGORITHMS {
        let limiter = windows(algorithm, "max_wait: 2500ms");
        let all = Crowd::of(&limiter, 40).await.end().await;
        let allowed = all.iter().filter(|(it, _)| it.is_allowed()).count();
        assert!((10..=20).contains(&allowed), "{algorithm}: {allowed}");
        for (decision, ended) in &all {
            assert!(
                *ended <= Duration::from_millis(2_502),
                "{algorithm} {ended:?}"
            );
            let binding = decision.binding().unwrap();
            assert_eq!(binding.limit(), "all");
            if !decision.is_allowed() {
                assert!(binding.retry_after().is_some_and(|it| !it.is_zero()));
                assert!(decision.waited().is_zero());
            }
        }
        // Requests that passed came before those that did not.
        let order: Vec<bool> = all.iter().map(|(it, _)| it.is_allowed()).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{algorithm}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_queue_is_bounded_and_never_overtaken() {
    let limiter = windows("fixed-window", "max_wait: 1h, max_waiting: 3");
    let crowd = Crowd::of(&limiter, 8).await;
    assert_eq!(waiting(&limiter), 3);
    for _ in 0..20 {
        let refused = ask(&limiter).await.unwrap();
        assert!(!refused.is_allowed());
        let binding = refused.binding().unwrap();
        assert!(binding.retry_after().is_some_and(|wait| !wait.is_zero()));
        advance(45 * MS).await;
    }
    // The window is almost over. A newcomer must not overtake requests that wait.
    advance(100 * MS).await;
    let late = ask(&limiter);
    settle().await;
    let all = crowd.end().await;
    assert!(all.iter().all(|(it, _)| it.is_allowed()));
    assert!(
        late.await.unwrap().is_allowed(),
        "two were left of the window"
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_with_a_large_cost_is_not_overtaken_by_small_ones() {
    let limiter = windows("sliding-log", "max_wait: 1h");
    for _ in 0..3 {
        ask(&limiter).await.unwrap();
        advance(100 * MS).await;
    }
    let began = Instant::now();
    let much = ask_for(&limiter, 5);
    settle().await;
    let little = ask_for(&limiter, 1);
    settle().await;
    assert_eq!(waiting(&limiter), 2, "though two are left");
    assert!(much.await.unwrap().is_allowed());
    let passed = began.elapsed();
    assert!(little.await.unwrap().is_allowed());
    assert!(began.elapsed() > passed);
}

#[tokio::test(start_paused = true)]
async fn when_the_first_waiter_leaves_the_next_one_asks() {
    let limiter = windows("sliding-log", "max_wait: 1h");
    for _ in 0..2 {
        ask(&limiter).await.unwrap();
    }
    let much = ask_for(&limiter, 5);
    settle().await;
    let little = ask_for(&limiter, 1);
    settle().await;
    assert_eq!(waiting(&limiter), 2);
    much.abort();
    // Immediately: it fits by now, and no request is before it.
    let little = tokio::time::timeout(MS, little).await;
    assert!(little.unwrap().unwrap().is_allowed());
    assert_eq!(waiting(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn a_leaving_waiter_leaves_no_trace() {
    let limiter = windows("fixed-window", "max_wait: 1h, max_waiting: 50");
    for turn in 0..20 {
        let crowd = Crowd::of(&limiter, 60).await;
        let waits: Vec<_> = crowd.tasks.iter().filter(|it| !it.is_finished()).collect();
        assert_eq!(waits.len(), 50, "{turn}");
        let from_behind = turn % 2 == 0;
        for nth in 0..50 {
            waits[if from_behind { 49 - nth } else { nth }].abort();
        }
        settle().await;
        assert_eq!(waiting(&limiter), 0);
    }
    advance(Duration::from_secs(2)).await;
    let all = Crowd::of(&limiter, 5).await.end().await;
    assert!(
        all.iter()
            .all(|(it, passed)| it.is_allowed() && passed.is_zero())
    );
}

#[tokio::test(start_paused = true)]
async fn queues_of_different_clients_are_independent() {
    let limiter = limiter(
        "{ name: all, key: user, rate: 1/s, algorithm: fixed-window, on_refusal: wait, max_wait: 1h }",
    );
    let of = |user: &'static str| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.check(&Request::new().user(user)).await.unwrap() })
    };
    let ann: Vec<_> = (0..10).map(|_| of("ann")).collect();
    settle().await;
    assert_eq!(waiting(&limiter), 9);
    assert!(of("bob").await.unwrap().waited().is_zero());
    for task in ann {
        assert!(task.await.unwrap().is_allowed());
    }
}

#[tokio::test(start_paused = true)]
async fn two_alternately_refusing_windows_do_not_deadlock() {
    let limiter = limiter(
        "{ name: short, rate: 2/s, algorithm: sliding-log, on_refusal: wait, max_wait: 1h },
         { name: long, key: user, rate: 3/2s, algorithm: fixed-window, on_refusal: wait, max_wait: 1h }",
    );
    let began = Instant::now();
    let of = |user: &'static str| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.check(&Request::new().user(user)).await.unwrap() })
    };
    let users = ["ann", "bob", "cat"];
    let tasks: Vec<_> = (0..30).map(|nth| of(users[nth % 3])).collect();
    for task in tasks {
        assert!(task.await.unwrap().is_allowed());
    }
    // Two a second is the only bound.
    assert!(
        began.elapsed() <= Duration::from_secs(16),
        "{:?}",
        began.elapsed()
    );
    assert!(limiter.waiting().iter().all(|it| it.count == 0));
}
