//! Several limits at once, reloads, and callers that do not wait.

use crate::{Crowd, ask, config, limiter, policy, settle, waiting};
use std::time::Duration;
use tidegate::{AskPurpose, Attempt, LimitSpec, Limiter, Request};
use tidegate_testkit::laws::block_on;
use tokio::time::{Instant, advance};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_limit_that_does_not_wait_refuses_at_once_and_nothing_is_charged() {
    let limiter = limiter(
        "{ name: slow, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s },
         { name: strict, rate: 3/h }",
    );
    let crowd = Crowd::of(&limiter, 3).await;
    let began = Instant::now();
    let refused = ask(&limiter).await.unwrap();
    assert!(!refused.is_allowed() && began.elapsed().is_zero());
    assert_eq!(refused.binding().unwrap().limit(), "strict");
    let all = crowd.end().await;
    assert!(all.iter().all(|(it, _)| it.is_allowed()));
    // The refused request took no place: the next would be the third.
    assert_eq!(all[2].1.as_millis() / 100, 2);
    let looked = limiter.check_now(&Request::new().cost(0)).unwrap();
    let strict = looked.applied().nth(1).unwrap();
    assert_eq!(strict.remaining(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_limits_that_wait_the_longer_wait_counts() {
    let limiter = limiter(
        "{ name: fast, rate: 10/s burst 1, on_refusal: wait, max_wait: 1s },
         { name: slow, rate: 2/s burst 1, on_refusal: wait, max_wait: 2s }",
    );
    let all = Crowd::of(&limiter, 10).await.end().await;
    let allowed: Vec<_> = all.iter().filter(|(it, _)| it.is_allowed()).collect();
    assert_eq!(allowed.len(), 5, "four places of the slow one");
    for (nth, (decision, passed)) in (0..).zip(allowed) {
        assert!(*passed >= 500 * MS * nth && *passed <= 500 * MS * nth + MS);
        assert_eq!(decision.waited().as_millis() / 500, nth.into());
    }
}

#[tokio::test(start_paused = true)]
async fn queues_of_places_and_lines_together_keep_both_limits() {
    let limiter = limiter(
        "{ name: bucket, rate: 10/s burst 1, on_refusal: wait, max_wait: 2s },
         { name: window, rate: 4/s, algorithm: fixed-window, on_refusal: wait, max_wait: 2s }",
    );
    let all = Crowd::of(&limiter, 30).await.end().await;
    let passed: Vec<Duration> = all
        .iter()
        .filter(|(it, _)| it.is_allowed())
        .map(|(_, passed)| *passed)
        .collect();
    assert!((8..=12).contains(&passed.len()), "{passed:?}");
    for pair in passed.windows(2) {
        assert!(pair[1] - pair[0] + MS >= 100 * MS, "{passed:?}");
    }
    for (decision, ended) in &all {
        assert!(*ended <= Duration::from_millis(2_002), "{decision:?}");
    }
    assert!(limiter.waiting().iter().all(|it| it.count == 0));
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_waiters_and_their_bounds() {
    let text = "{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s, max_waiting: 5 }";
    let limiter = limiter(text);
    let crowd = Crowd::of(&limiter, 6).await;
    limiter.reload(config(text)).unwrap();
    assert_eq!(waiting(&limiter), 5, "they are still counted");
    assert!(!ask(&limiter).await.unwrap().is_allowed());
    // From now on no request waits; those that already do keep their places.
    let strict = "{ name: all, rate: 10/s burst 1, refundable: true }";
    limiter.reload(config(strict)).unwrap();
    assert_eq!(limiter.waiting(), []);
    assert!(!ask(&limiter).await.unwrap().is_allowed());
    for (nth, (decision, passed)) in (0..).zip(crowd.end().await) {
        assert!(decision.is_allowed());
        assert!(passed >= 100 * MS * nth && passed <= 100 * MS * nth + MS);
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_released_to_its_own_bucket_after_a_limit_change() {
    let limiter = limiter("{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s }");
    let crowd = Crowd::of(&limiter, 51).await;
    limiter
        .reload(config(
            "{ name: all, rate: 20/s burst 2, on_refusal: wait, max_wait: 1s }",
        ))
        .unwrap();
    for task in &crowd.tasks {
        task.abort();
    }
    settle().await;
    let next = ask(&limiter).await.unwrap();
    assert!(next.is_allowed() && next.waited() <= 101 * MS, "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn a_non_waiting_request_is_decided_at_once() {
    let limiter = limiter("{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s }");
    let rules = limiter.rules().unwrap();
    let is_pending = |request: &Request<'_>| {
        let attempt = limiter.attempt(&rules, request, AskPurpose::Pass).unwrap();
        matches!(attempt, Attempt::Pending(_))
    };
    let request = Request::new();
    assert!(is_pending(&request));
    assert!(
        limiter.check_now(&request).unwrap().is_allowed(),
        "nothing was done"
    );
    let refused = limiter.check_now(&request).unwrap();
    assert!(!refused.is_allowed());
    let retry_after = refused.binding().unwrap().retry_after();
    assert!(retry_after.is_some_and(|wait| wait <= 100 * MS));
    // A read is decided immediately.
    assert!(!is_pending(&Request::new().cost(0)));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_waiting_limits_is_decided_at_once() {
    let limiter = limiter(
        "{ name: slow, match: { path: /slow }, rate: 1/s, on_refusal: wait, max_wait: 10s },
         { name: all, rate: 2/h }",
    );
    let rules = limiter.rules().unwrap();
    let is_pending = |path| {
        let request = Request::new().path(path);
        let attempt = limiter.attempt(&rules, &request, AskPurpose::Pass).unwrap();
        matches!(attempt, Attempt::Pending(_))
    };
    assert!(!is_pending("/fast") && is_pending("/slow"));
}

#[test]
fn without_a_runtime_no_request_waits() {
    let text = policy("{ name: all, rate: 1/h, on_refusal: wait, max_wait: 1h }");
    let limiter = Limiter::from_yaml(&text).unwrap();
    assert!(
        block_on(limiter.check(&Request::new()))
            .unwrap()
            .is_allowed()
    );
    assert!(
        !block_on(limiter.check(&Request::new()))
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_thousand_requests_for_as_many_clients_leave_no_trace() {
    let limiter = limiter(
        "{ name: all, key: user, rate: 1/s, on_refusal: wait, max_wait: 1h, max_waiting: 2000 }",
    );
    let mut tasks = Vec::new();
    for nth in 0..2_000 {
        let limiter = limiter.clone();
        tasks.push(tokio::spawn(async move {
            let user = format!("user-{}", nth / 2);
            limiter.check(&Request::new().user(&user)).await.unwrap()
        }));
    }
    settle().await;
    assert_eq!(waiting(&limiter), 1_000);
    advance(Duration::from_millis(1_001)).await;
    for task in tasks {
        assert!(task.await.unwrap().is_allowed());
    }
    assert_eq!(waiting(&limiter), 0);
}

#[test]
fn limits_that_cannot_wait_are_rejected_in_code_and_config() {
    let spec = || LimitSpec::new("all").band("10/s");
    let refused = |spec| {
        let error = Limiter::builder().limit(spec).build().unwrap_err();
        error.to_string()
    };
    let second = Duration::from_secs(1);
    assert!(refused(spec().max_waiting(5)).contains("has no effect without `.wait(..)`"));
    assert!(refused(spec().wait(Duration::ZERO)).contains("1ms to 1h"));
    assert!(refused(spec().wait(second * 3_601)).contains("1ms to 1h"));
    assert!(refused(spec().wait(second).max_waiting(0)).contains("1 to 1000000"));
    assert!(refused(spec().wait(second).shadow()).contains("conflicts with `.shadow()`"));
    assert!(
        Limiter::builder()
            .limit(spec().wait(second))
            .build()
            .is_ok()
    );
}
