//! Refunding the charges of a decision.

use crate::{ask, limiter, settle};
use std::time::Duration;
use tidegate::Request;
use tokio::time::advance;

#[tokio::test(start_paused = true)]
async fn a_decision_is_refunded_once() {
    for algorithm in [
        "token-bucket",
        "fixed-window",
        "sliding-log",
        "bucketed-window",
    ] {
        let limiter = limiter(&format!(
            "{{ name: all, rate: 4/h, algorithm: {algorithm}, refundable: true }}"
        ));
        let check = || limiter.check_now(&Request::new()).unwrap();
        let (first, clone) = (check(), check());
        let second = clone.clone();
        assert!(limiter.refund_decision(&first).await.unwrap());
        for again in [&first, &first.clone()] {
            assert!(!limiter.refund_decision(again).await.unwrap());
            assert_eq!(limiter.refund_decision_at_once(again), Some(false));
        }
        assert_eq!(limiter.refund_decision_at_once(&second), Some(true));
        assert!(
            !limiter.refund_decision(&clone).await.unwrap(),
            "a clone is the same"
        );
        for _ in 0..4 {
            assert!(check().is_allowed(), "{algorithm}");
        }
        let refused = check();
        assert!(!refused.is_allowed());
        assert!(
            !limiter.refund_decision(&refused).await.unwrap(),
            "nothing was charged"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_refundable_limits_are_refunded() {
    let limiter = limiter(
        "{ name: kept, rate: 3/h },
         { name: given, rate: 3/h, refundable: true },
         { name: forced, rate: 3/h, charge: always, refundable: true }",
    );
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert!(limiter.refund_decision(&decision).await.unwrap());
    let looked = limiter.check_now(&Request::new().cost(0)).unwrap();
    let remaining: Vec<u64> = looked.applied().map(|band| band.remaining()).collect();
    assert_eq!(remaining, [2, 3, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_with_nothing_refundable_is_unchanged() {
    let limiter = limiter("{ name: all, rate: 3/h }");
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert!(!limiter.refund_decision(&decision).await.unwrap());
    assert_eq!(limiter.refund_decision_at_once(&decision), Some(false));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_is_refundable_like_any_other() {
    let limiter = limiter("{ name: all, rate: 1/s burst 1, on_refusal: wait, max_wait: 10s }");
    ask(&limiter).await.unwrap();
    let waited = ask(&limiter).await.unwrap();
    assert!(waited.waited() >= Duration::from_secs(1));
    assert!(limiter.refund_decision(&waited).await.unwrap());
    settle().await;
    advance(Duration::from_millis(1)).await;
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
    assert!(!limiter.refund_decision(&waited).await.unwrap());
}
