use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    AskPurpose, Attempt, Limiter, ManualClock, MemoryStore, RepeatedRequest, Request, Rules,
    Timestamp,
};

fn limiter(yaml: &str) -> (Limiter<MemoryStore<ManualClock>>, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let limiter = Limiter::builder()
        .clock(clock.clone())
        .yaml(yaml)
        .expect("a valid config")
        .build()
        .expect("a limiter");
    (limiter, clock)
}

fn ip(text: &str) -> Request<'static> {
    Request::new().ip(text.parse().expect("an address"))
}

const TWO_LIMITS: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, bands: [2/s, { rate: 100/h, label: hourly }] }
      - { name: everyone, rate: 3/min, algorithm: fixed-window }
";

#[test]
fn allowed_reports_the_band_with_the_fewest_remaining() {
    let (limiter, _) = limiter(TWO_LIMITS);
    let decision = limiter.check_now(&ip("192.0.2.1")).unwrap();
    let binding = decision.binding().unwrap();
    assert_eq!(
        (
            binding.limit(),
            binding.band(),
            binding.key(),
            binding.remaining()
        ),
        ("per-client", Some("2/s"), "ip:192.0.2.1", 1)
    );
    assert_eq!(binding.retry_after(), Some(Duration::ZERO));
    assert_eq!(decision.applied().count(), 3);
    assert_eq!(decision.policy(), "api");
}

#[test]
fn a_refusal_reports_the_longest_wait_and_charges_nothing() {
    let (limiter, clock) = limiter(TWO_LIMITS);
    for _ in 0..2 {
        assert!(limiter.check_now(&ip("192.0.2.1")).unwrap().is_allowed());
    }
    let refused = limiter.check_now(&ip("192.0.2.1")).unwrap();
    assert!(!refused.is_allowed());
    assert_eq!(refused.binding().unwrap().band(), Some("2/s"));
    assert_eq!(
        refused.binding().unwrap().retry_after(),
        Some(Duration::from_millis(500))
    );
    let everyone = refused.applied().last().unwrap();
    assert_eq!(
        (
            everyone.limit(),
            everyone.is_allowed(),
            everyone.remaining()
        ),
        ("everyone", true, 1)
    );

    clock.advance_micros(500_000);
    assert!(limiter.check_now(&ip("192.0.2.1")).unwrap().is_allowed());
    let refused = limiter.check_now(&ip("192.0.2.1")).unwrap();
    assert_eq!(refused.binding().unwrap().limit(), "everyone");
}

#[test]
fn a_request_without_limits_has_its_own_outcome() {
    let (limiter, _) = limiter(
        "policies: [{ name: api, limits: [{ name: x, match: [{ path: /only }], rate: 1/s }] }]",
    );
    let decision = limiter.check_now(&Request::new().path("/other")).unwrap();
    assert!(decision.is_allowed() && decision.is_unlimited());
    assert!(decision.binding().is_none());
    assert_eq!(decision.applied().count(), 0);
}

#[test]
fn a_shadow_limit_is_never_reported() {
    let (limiter, _) =
        limiter("policies: [{ name: api, limits: [{ name: watched, rate: 1/h, mode: shadow }] }]");
    for _ in 0..3 {
        let decision = limiter.check_now(&Request::new()).unwrap();
        assert!(decision.is_allowed() && decision.is_unlimited());
    }
    let decision = limiter.check_now(&Request::new()).unwrap();
    let watched = decision.applied().next().unwrap();
    assert!(watched.is_shadow() && !watched.is_allowed());
}

#[test]
fn a_missing_identity_may_refuse_and_can_never_pass() {
    let (limiter, _) = limiter(
        "policies: [{ name: api, limits: [{ name: x, key: api-key, missing: refuse, rate: 1/s }] }]",
    );
    let decision = limiter.check_now(&Request::new()).unwrap();
    let binding = decision.binding().unwrap();
    assert!(!decision.is_allowed());
    assert_eq!((binding.limit(), binding.band()), ("x", None));
    assert!(binding.wait().is_never());
}

#[test]
fn secrets_never_show() {
    let (limiter, _) =
        limiter("policies: [{ name: api, limits: [{ name: x, key: api-key, rate: 1/s }] }]");
    let decision = limiter
        .check_now(&Request::new().api_key("hunter2"))
        .unwrap();
    let key = decision.binding().unwrap().key().to_owned();
    assert!(key.starts_with("api-key:#"), "{key}");
    assert!(!format!("{decision:?}").contains("hunter2"));
}

#[test]
fn charge_always_goes_into_overdraft_and_refuses_the_next() {
    let (limiter, clock) = limiter(
        "policies: [{ name: llm, limits: [{ name: tokens, rate: 10/s burst 100, charge: always, overdraft: 50 }] }]",
    );
    assert!(
        limiter
            .check_now(&Request::new().cost(130))
            .unwrap()
            .is_allowed()
    );
    let refused = limiter.check_now(&Request::new().cost(0)).unwrap();
    assert_eq!(refused.binding().unwrap().remaining(), 0);
    clock.advance_micros(3_000_000);
    assert!(
        !limiter
            .check_now(&Request::new().cost(1))
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test]
async fn asynchronous_checks_give_the_same_decisions() {
    let (limiter, _) = limiter(TWO_LIMITS);
    let now = limiter.check_now(&ip("192.0.2.1").cost(0)).unwrap();
    let later = limiter.check(&ip("192.0.2.1").cost(0)).await.unwrap();
    assert_eq!(format!("{now:?}"), format!("{later:?}"));
}

#[test]
fn an_unknown_policy_is_an_error_that_names_the_known_ones() {
    let (limiter, _) = limiter(TWO_LIMITS);
    let error = limiter
        .check_now(&Request::new().policy("apo"))
        .unwrap_err();
    assert!(error.is_bad_request());
    assert_eq!(error.to_string(), "unknown policy `apo`; expected `api`");
}

#[test]
fn closing_closes_every_clone() {
    let (limiter, _) = limiter(TWO_LIMITS);
    limiter.clone().close();
    assert_eq!(
        limiter.check_now(&Request::new()).unwrap_err().to_string(),
        "the limiter is closed"
    );
}

#[test]
fn a_decision_carries_its_response_settings_and_quotas() {
    let limiter = Limiter::from_yaml(
        "
respond: { profile: collector }
policies:
  - name: other
    limits: [{ name: l, rate: 1/s }]
  - name: api
    respond: { status: 403 }
    limits:
      - { name: wide, key: ip, rate: 100/min }
      - { name: tight, key: user, bands: [5/min, 2/s], respond: { status: 429 } }
",
    )
    .unwrap();
    let request = Request::new().policy("api").user("ann");
    let decision = limiter.check_now(&request.cost(2)).unwrap();
    assert_eq!(decision.policy_index(), 1);
    assert_eq!(decision.respond().refusal.status, 403);
    assert_eq!(decision.refusal().status, 429);
    let binding = decision.binding().unwrap();
    assert_eq!((binding.limit_index(), binding.band_index()), (1, Some(1)));
    assert_eq!(binding.key_parts(), [tidegate::KeyPart::User]);
    let names: Vec<&str> = decision
        .applied()
        .filter_map(|applied| Some(applied.header_names()?.name()))
        .collect();
    assert_eq!(names, ["wide", "tight.1min", "tight.1s"]);
    let spoken = binding.header_names().unwrap();
    assert_eq!((spoken.window_max_s(), spoken.per_second()), (1, 2));

    let plain = limiter.check_now(&Request::new()).unwrap();
    assert_eq!((plain.policy_index(), plain.refusal().status), (0, 402));
}

#[test]
fn limits_in_code_can_set_their_responses() {
    let limiter = Limiter::builder()
        .limit(tidegate::LimitSpec::new("a").band("1/s"))
        .respond(tidegate::Respond::of(tidegate::respond::Profile::Gateway))
        .build()
        .unwrap();
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(decision.refusal().content_type, "application/json");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "these rules are another limiter's")]
fn rules_of_another_limiter_are_noticed_in_a_debug_build() {
    let (ours, _) = limiter(TWO_LIMITS);
    let (theirs, _) = limiter(TWO_LIMITS);
    let rules = theirs.rules().unwrap();
    ours.attempt(&rules, &ip("192.0.2.1"), AskPurpose::Pass)
        .ok();
}

#[test]
fn rules_from_before_a_reload_still_decide() {
    let (limiter, _) = limiter(TWO_LIMITS);
    let before = limiter.rules().unwrap();
    let after = "policies: [{ name: other, limits: [{ name: x, rate: 1/s }] }]";
    limiter
        .reload(tidegate::Config::from_yaml(after).unwrap())
        .unwrap();
    let policy =
        |rules: &Arc<Rules>| match limiter.attempt(rules, &ip("192.0.2.1"), AskPurpose::Pass) {
            Ok(Attempt::Done(decision)) => decision.policy().to_owned(),
            other => panic!("{other:?}"),
        };
    assert_eq!(policy(&before), "api");
    assert_eq!(policy(&limiter.clone().rules().unwrap()), "other");
}

#[tokio::test]
async fn a_repeated_request_is_decided_like_any_other() {
    let (limiter, clock) = limiter(TWO_LIMITS);
    let rules = limiter.rules().unwrap();
    let mut repeated = RepeatedRequest::new(&rules, &ip("192.0.2.1"));
    let mut is_allowed = async || {
        limiter
            .check_repeated(&mut repeated)
            .await
            .unwrap()
            .is_allowed()
    };
    assert!(is_allowed().await);
    assert!(limiter.check_now(&ip("192.0.2.1")).unwrap().is_allowed());
    assert!(!is_allowed().await, "both count in the same bucket");
    clock.advance_micros(1_000_000);
    assert!(is_allowed().await);
    clock.advance_micros(1_000_000);
    assert!(!is_allowed().await, "the other limit counts as well");
}

#[tokio::test]
async fn a_repeated_request_is_checked_by_the_current_guards() {
    let (limiter, _) = limiter(
        "
guards: [{ name: banned, deny: ip, list: [192.0.2.1] }]
policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]",
    );
    let rules = limiter.rules().unwrap();
    let mut repeated = RepeatedRequest::new(&rules, &ip("192.0.2.1"));
    for _ in 0..2 {
        let decision = limiter.check_repeated(&mut repeated).await.unwrap();
        assert_eq!(decision.guard().unwrap().name, "banned");
    }
    assert!(limiter.check_now(&ip("192.0.2.2")).unwrap().is_allowed());
}
