use crate::{MINUTE, ManualLimiter, policy, reserve};
use std::time::Duration;
use tidegate::SettleState::{Already, Expired, Settled};
use tidegate::{CheckError, Config, Limiter, Request};

const TOKENS: &str = "{ name: tokens, rate: 100/h, overdraft: 50 }";

#[tokio::test]
async fn unused_units_are_refunded_once() {
    let here = ManualLimiter::new(TOKENS);
    let id = here.reserve(80).await;
    assert_eq!(here.remaining(), 20);
    assert_eq!(here.commit(&id, 30).await, Settled);
    assert_eq!(here.remaining(), 70);
    for actual in [30, 0, 80, 500] {
        assert_eq!(here.commit(&id, actual).await, Already);
        assert_eq!(here.remaining(), 70);
    }
}

#[tokio::test]
async fn refunded_units_can_be_reserved_again() {
    let here = ManualLimiter::new(TOKENS);
    for _ in 0..20 {
        let id = here.reserve(100).await;
        assert_eq!(here.commit(&id, 0).await, Settled);
    }
    assert_eq!(here.remaining(), 100);
}

#[tokio::test]
async fn every_algorithm_refunds_unused_units() {
    for algorithm in [
        "token-bucket",
        "fixed-window",
        "sliding-window",
        "sliding-log",
        "bucketed-window",
    ] {
        let here = ManualLimiter::new(&format!(
            "{{ name: tokens, rate: 60/h, algorithm: {algorithm} }}"
        ));
        let (first, second) = (here.reserve(30).await, here.reserve(30).await);
        assert_eq!(here.remaining(), 0, "{algorithm}");
        assert_eq!(here.commit(&first, 10).await, Settled, "{algorithm}");
        assert_eq!(here.remaining(), 20, "{algorithm}");
        assert_eq!(here.commit(&second, 30).await, Settled, "{algorithm}");
        assert_eq!(here.remaining(), 20, "{algorithm}");
        assert_eq!(here.commit(&first, 0).await, Already, "{algorithm}");
        assert_eq!(here.remaining(), 20, "{algorithm}");
        let again = here.limiter.check_now(&Request::new().cost(20)).unwrap();
        assert!(again.is_allowed(), "{algorithm}");
    }
}

#[tokio::test]
async fn usage_beyond_the_estimate_is_charged_down_to_the_overdraft() {
    let here = ManualLimiter::new(TOKENS);
    let id = here.reserve(10).await;
    assert_eq!(here.commit(&id, 60).await, Settled);
    assert_eq!(here.remaining(), 40);
    assert_eq!(here.commit(&id, 60).await, Already);
    assert_eq!(here.remaining(), 40);
    // Ninety beyond a bucket of forty: it goes fifty below empty, and no deeper.
    let id = here.reserve(10).await;
    assert_eq!(here.commit(&id, 1_000).await, Settled);
    let refused = here.limiter.check_now(&Request::new()).unwrap();
    let wait = refused.binding().unwrap().retry_after().unwrap();
    assert_eq!(wait, Duration::from_secs(3_600) * 51 / 100);
}

/// A forced charge refuses if nothing is left, but is still made. Its mark must be recorded in any
/// case.
#[tokio::test]
async fn an_excess_on_an_empty_bucket_is_charged_once() {
    let here = ManualLimiter::new(TOKENS);
    let id = here.reserve(100).await;
    assert_eq!(here.commit(&id, 110).await, Settled);
    let wait = || {
        let refused = here.limiter.check_now(&Request::new()).unwrap();
        refused.binding().unwrap().retry_after().unwrap()
    };
    let owed = wait();
    assert_eq!(owed, Duration::from_secs(3_600) * 11 / 100);
    for _ in 0..3 {
        assert_eq!(here.commit(&id, 110).await, Already);
        assert_eq!(wait(), owed);
    }
}

#[tokio::test]
async fn an_expired_reservation_refunds_nothing_and_charges_an_excess() {
    let windows = "{ name: tokens, rate: 100/h, overdraft: 50, algorithm: fixed-window }";
    let here = ManualLimiter::new(windows);
    let (less, same, more) = (
        here.reserve(20).await,
        here.reserve(20).await,
        here.reserve(20).await,
    );
    here.pass(MINUTE);
    // The last instant counts.
    let in_time = here.reserve(20).await;
    here.pass(MINUTE);
    assert_eq!(here.commit(&in_time, 0).await, Settled);
    assert_eq!(here.remaining(), 40);
    assert_eq!(here.commit(&less, 0).await, Expired);
    assert_eq!(here.remaining(), 40);
    assert_eq!(here.commit(&same, 20).await, Expired);
    assert_eq!(here.remaining(), 40);
    assert_eq!(here.commit(&more, 30).await, Expired);
    assert_eq!(here.remaining(), 30);
    assert_eq!(here.commit(&more, 30).await, Already);
    assert_eq!(here.remaining(), 30);
}

#[tokio::test]
async fn a_late_full_commit_after_a_refund_was_reported_as_settled() {
    let here = ManualLimiter::new("{ name: tokens, rate: 100/h, algorithm: fixed-window }");
    let id = here.reserve(50).await;
    assert_eq!(here.commit(&id, 0).await, Settled);
    // The mark of the refund has expired.
    here.pass(MINUTE + Duration::from_millis(1));
    assert_eq!(here.commit(&id, 50).await, Expired);
}

#[tokio::test]
async fn a_mark_outlives_the_reservation() {
    let here = ManualLimiter::new("{ name: tokens, rate: 100/h, algorithm: fixed-window }");
    let id = here.reserve(50).await;
    assert_eq!(here.commit(&id, 10).await, Settled);
    // Long after the mark of a commit has expired, the reservation has expired as well.
    for _ in 0..30 {
        here.pass(Duration::from_secs(7));
        assert_ne!(here.commit(&id, 0).await, Settled);
        assert_eq!(here.remaining(), 90);
    }
}

#[tokio::test]
async fn a_ttl_beyond_the_longest_is_cut_and_none_is_the_default() {
    let here = ManualLimiter::new(TOKENS);
    let reserve = async |ttl: Option<Duration>| {
        let reserved = here.limiter.reserve(&Request::new(), ttl).await.unwrap();
        reserved.expires_after().unwrap()
    };
    assert_eq!(reserve(None).await, MINUTE);
    assert_eq!(
        reserve(Some(Duration::from_secs(32_400))).await,
        10 * MINUTE
    );
    assert_eq!(reserve(Some(MINUTE / 2)).await, MINUTE / 2);
    let never = here.limiter.reserve(&Request::new(), Duration::ZERO).await;
    assert!(matches!(never, Err(CheckError::CannotReserve { .. })));
}

#[tokio::test]
async fn all_limits_are_charged_or_none_and_all_are_settled() {
    let here = ManualLimiter::new(
        "{ name: user, key: user, rate: 100/h }, { name: all, rate: 120/h }, \
         { name: two, key: user, bands: [{ rate: 100/h, label: hour }, { rate: 500/d, label: day }] }",
    );
    let ann = Request::new().user("ann");
    let bob = Request::new().user("bob");
    let id = reserve(&here.limiter, &ann.cost(80)).await;
    let refused = here.limiter.reserve(&bob.cost(80), MINUTE).await.unwrap();
    assert!(!refused.is_allowed() && refused.id().is_none());
    assert_eq!(refused.expires_after(), None);
    assert_eq!(refused.decision().limit(), Some("all"));
    let applied = |request: &Request<'_>| -> Vec<u64> {
        let looked = here.limiter.check_now(&request.cost(0)).unwrap();
        looked.applied().map(|it| it.remaining()).collect()
    };
    assert_eq!(
        applied(&bob),
        [100, 40, 100, 500],
        "bob was charged nothing"
    );
    assert_eq!(here.commit(&id, 5).await, Settled);
    assert_eq!(applied(&ann), [95, 115, 95, 495]);
}

#[tokio::test]
async fn an_estimate_must_fit_even_if_costs_are_always_charged() {
    let here = ManualLimiter::new("{ name: tokens, rate: 100/h, charge: always, overdraft: 50 }");
    let refused = here
        .limiter
        .reserve(&Request::new().cost(101), MINUTE)
        .await;
    assert!(!refused.unwrap().is_allowed());
    assert_eq!(here.remaining(), 100);
    let id = here.reserve(100).await;
    assert_eq!(here.commit(&id, 120).await, Settled);
    assert_eq!(here.remaining(), 0);
}

#[tokio::test]
async fn an_estimate_of_zero_tests_if_anything_is_left() {
    let here = ManualLimiter::new("{ name: tokens, rate: 10/h, overdraft: 10 }");
    let id = here.reserve(0).await;
    assert_eq!(here.remaining(), 10);
    // Nothing was charged, so there is no bucket to settle: other usage is reported separately.
    assert_eq!(here.commit(&id, 0).await, Settled);
    here.reserve(10).await;
    let refused = here.limiter.reserve(&Request::new().cost(0), MINUTE).await;
    assert!(!refused.unwrap().is_allowed());
}

#[tokio::test]
async fn shadow_limits_are_settled_if_they_were_charged() {
    let here = ManualLimiter::new(
        "{ name: all, rate: 100/h }, { name: watched, rate: 30/h, mode: shadow, overdraft: 10 }",
    );
    let left = || -> Vec<u64> {
        let looked = here.limiter.check_now(&Request::new().cost(0)).unwrap();
        looked.applied().map(|it| it.remaining()).collect()
    };
    let fits = here.reserve(20).await;
    let does_not = here.reserve(20).await;
    assert_eq!(left(), [60, 10]);
    assert_eq!(here.commit(&does_not, 0).await, Settled);
    assert_eq!(
        left(),
        [80, 10],
        "it was not charged, and nothing comes back"
    );
    assert_eq!(here.commit(&fits, 5).await, Settled);
    assert_eq!(left(), [95, 25]);
}

#[tokio::test]
async fn a_request_without_limits_is_reserved_and_settled() {
    let here = ManualLimiter::new("{ name: a, match: [{ path: /a }], rate: 1/h }");
    let id = reserve(&here.limiter, &Request::new().path("/b").cost(7)).await;
    let settled = here.limiter.commit(&id, 9).await.unwrap();
    let [unit] = settled.units() else {
        panic!("the limits count one unit")
    };
    assert_eq!((unit.estimate, unit.actual), (7, 9));
    assert_eq!((settled.state(), settled.policy()), (Settled, "llm"));
}

#[tokio::test]
async fn a_policy_without_reservations_reports_how_to_enable_them() {
    let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: a, rate: 1/h }] }]");
    let limiter = limiter.unwrap();
    let error = limiter.reserve(&Request::new(), MINUTE).await.unwrap_err();
    assert!(error.is_bad_request());
    assert_eq!(
        error.to_string(),
        "policy `api` cannot reserve this: it does not accept reservations; add `reserve: 60s`"
    );
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
}

#[tokio::test]
async fn a_reservation_too_large_for_its_id_is_refused_without_a_charge() {
    let limits: Vec<String> = (0..70)
        .map(|nth| format!("{{ name: l{nth}, rate: 100/h }}"))
        .collect();
    let here = ManualLimiter::new(&limits.join(", "));
    let error = here.limiter.reserve(&Request::new(), MINUTE).await;
    assert!(matches!(error, Err(CheckError::CannotReserve { .. })));
    assert_eq!(here.remaining(), 100);
}

/// Otherwise, a rate cut by a thousand would make each unit worth a thousand times as much time.
#[tokio::test]
async fn a_reload_does_not_change_the_value_of_a_reserved_unit() {
    let here = ManualLimiter::new("{ name: tokens, rate: 1000/h }");
    let id = here.reserve(900).await;
    let load = |limits: &str| {
        let config = Config::from_yaml(&policy(limits)).unwrap();
        here.limiter.reload(config).unwrap();
    };
    load("{ name: tokens, rate: 10/h }");
    let used = here.limiter.check_now(&Request::new().cost(0)).unwrap();
    assert_eq!(
        used.binding().unwrap().remaining(),
        1,
        "a tenth of an hour is left"
    );
    assert_eq!(here.commit(&id, 0).await, Settled);
    assert_eq!(here.remaining(), 10);
    load("{ name: other, rate: 1/h }");
    assert_eq!(
        here.commit(&id, 0).await,
        Already,
        "regardless of the current policy"
    );
}

#[tokio::test]
async fn a_reserving_decision_is_refunded_only_by_its_id() {
    let here = ManualLimiter::new(TOKENS);
    let reserved = here.limiter.reserve(&Request::new().cost(50), MINUTE).await;
    let reserved = reserved.unwrap();
    assert!(
        !here
            .limiter
            .refund_decision(reserved.decision())
            .await
            .unwrap()
    );
    assert_eq!(here.remaining(), 50);
    here.limiter.refund(reserved.id().unwrap()).await.unwrap();
    assert_eq!(here.remaining(), 100);
}

/// A full store has no room for more marks. Then, of all reservations that share the overflow mark,
/// one is settled, and the estimates of the others stay charged. Never more than that is refunded.
#[tokio::test]
async fn a_store_without_room_for_marks_never_refunds_too_much() {
    let clock = crate::clock();
    let builder = Limiter::builder().config(crate::config("{ name: all, rate: 1000/h }"));
    let limiter = builder.clock(clock.clone()).max_keys(1).build().unwrap();
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(reserve(&limiter, &Request::new().cost(10)).await);
    }
    for _ in 0..2 {
        for id in &ids {
            limiter.refund(id).await.unwrap();
        }
    }
    let left = crate::remaining(&limiter, &Request::new()).await;
    assert!((600..=1_000).contains(&left), "{left}");
}
