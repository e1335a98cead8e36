//! Limits in code that accept reservations.

use super::MINUTE;
use std::time::Duration;
use tidegate::{
    BuildError, CheckError, Config, KeyPart, LimitSpec, Limiter, Request, ReserveRules,
};
use tidegate::{SettleState, Timestamp};

fn tokens() -> LimitSpec {
    LimitSpec::new("tokens").key(KeyPart::User).band("1000/h")
}

fn ann() -> Request<'static> {
    Request::new().policy("default").user("ann")
}

#[tokio::test]
async fn limits_in_code_accept_reservations_if_enabled_even_after_a_reload() {
    let yaml = "policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]";
    let config = || Config::from_yaml(yaml).unwrap();
    let builder = || Limiter::builder().config(config()).limit(tokens());
    let without = builder().build().unwrap();
    let error = without.reserve(&ann(), None).await.unwrap_err();
    assert!(matches!(error, CheckError::CannotReserve { policy, .. } if policy == "default"));

    let limiter = builder().reserve(MINUTE).build().unwrap();
    limiter.reload(config()).unwrap();
    let reserved = limiter.reserve(&ann().cost(800), None).await.unwrap();
    assert_eq!(reserved.expires_after(), Some(MINUTE));
    let refused = limiter.reserve(&ann().cost(800), None).await.unwrap();
    assert!(!refused.is_allowed());
    let settled = limiter.commit(reserved.id().unwrap(), 150).await.unwrap();
    assert_eq!(settled.state(), SettleState::Settled);
    let left = limiter.check(&ann().cost(0)).await.unwrap();
    assert_eq!(left.binding().unwrap().remaining(), 850);
    // The policy of the configuration still accepts none.
    let error = limiter.reserve(&Request::new(), None).await.unwrap_err();
    assert!(matches!(error, CheckError::CannotReserve { policy, .. } if policy == "api"));
}

#[tokio::test]
async fn reservations_in_code_are_refunded_late_if_others_kept_the_debt() {
    let clock = super::clock();
    let limiter = Limiter::builder()
        .limit(LimitSpec::new("all").band("100/s burst 100"))
        .reserve(MINUTE)
        .clock(clock.clone())
        .build()
        .unwrap();
    let ask = |cost| Request::new().cost(cost);
    let reserved = limiter.reserve(&ask(50), None).await.unwrap();
    // Other requests never let the debt fall below 40, for longer than it takes to fill the bucket.
    let start = Timestamp::from_millis(1_700_000_000_000);
    for step in 1..=40_u64 {
        clock.set(start.plus(step * 100_000));
        assert!(limiter.check_now(&ask(10)).unwrap().is_allowed());
    }
    limiter.commit(reserved.id().unwrap(), 10).await.unwrap();
    let left = limiter.check_now(&ask(0)).unwrap();
    assert_eq!(left.binding().unwrap().remaining(), 90);
}

#[tokio::test]
async fn a_maximum_ttl_can_be_set_in_code() {
    let reserving = ReserveRules {
        default_ttl: Duration::from_secs(5),
        max_ttl: Duration::from_secs(7),
    };
    let limiter = Limiter::builder().limit(tokens()).reserve(reserving);
    let limiter = limiter.build().unwrap();
    for (ttl, expected) in [(None, 5), (Some(6), 6), (Some(60), 7)] {
        let ttl = ttl.map(Duration::from_secs);
        let reserved = limiter.reserve(&ann(), ttl).await.unwrap();
        assert_eq!(
            reserved.expires_after(),
            Some(Duration::from_secs(expected))
        );
    }
}

#[test]
fn invalid_reservation_settings_fail_the_build() {
    let error = |limit: LimitSpec, reserving: ReserveRules| {
        let built = Limiter::builder().limit(limit).reserve(reserving).build();
        let error = built.unwrap_err();
        assert!(matches!(error, BuildError::Reserve { .. }), "{error:?}");
        error.to_string()
    };
    let reserving = |default_ttl, max_ttl| ReserveRules {
        default_ttl,
        max_ttl,
    };
    for (limit, reserving, expected) in [
        (
            tokens(),
            reserving(Duration::ZERO, MINUTE),
            "a lifetime of 0ns is not from 1ms to 1h",
        ),
        (
            tokens(),
            reserving(MINUTE, MINUTE * 61),
            "a lifetime of 3660s is not from 1ms to 1h",
        ),
        (
            tokens(),
            reserving(MINUTE, MINUTE / 2),
            "the default lifetime 60s is longer than the maximum 30s",
        ),
        (
            tokens().wait(MINUTE),
            MINUTE.into(),
            "requests wait for limit `tokens`; remove `.wait(..)` there, or `.reserve(..)`",
        ),
    ] {
        let expected = format!("reservations of limits in code: {expected}");
        assert_eq!(error(limit, reserving), expected);
    }
}

#[tokio::test]
async fn a_reservation_warns_by_its_last_charge_like_a_decision() {
    let yaml = "
policies:
  - name: llm
    reserve: 60s
    limits: [{ name: tokens, key: user, rate: 1000/h, algorithm: fixed-window, warn: 80% }]
";
    let limiter = Limiter::from_yaml(yaml).unwrap();
    let request = |cost| Request::new().user("ann").cost(cost);
    let warned = async |cost| {
        let reserved = limiter.reserve(&request(cost), None).await.unwrap();
        let decision = reserved.decision();
        let limits = decision.warnings().map(|it| it.limit().to_owned());
        (reserved.is_allowed(), limits.collect::<Vec<_>>())
    };
    assert_eq!(warned(700).await, (true, vec![]));
    assert_eq!(warned(400).await, (false, vec![]), "and nothing is charged");
    assert_eq!(warned(0).await, (true, vec![]), "which asks only");
    assert_eq!(warned(150).await, (true, vec!["tokens".to_owned()]));
    assert_eq!(warned(50).await, (true, vec![]), "the outcome was reported");
}
