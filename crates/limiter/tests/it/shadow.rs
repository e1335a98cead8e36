use crate::failure::CuttableStore;
use crate::plans::{document, limiter as planned};
use std::time::Duration;
use tidegate::{
    AnswerReason, Config, DecidedBy, Decision, Descriptor, DescriptorHits, LimitOverride,
    LimitSpec, Limiter, ManualClock, Request, Store, Throttle, Timestamp,
};
use tidegate_core::Quota;
use tidegate_testkit::laws::block_on;

fn limiter(rest: &str) -> Limiter {
    let limiter = Limiter::from_yaml(&format!("mode: shadow\n{rest}"));
    limiter.unwrap_or_else(|error| panic!("{error}"))
}

fn limits(limits: &str) -> Limiter {
    limiter(&format!("policies: [{{ name: api, limits: [{limits}] }}]"))
}

/// Returns the limits that would have refused, and the reasons.
fn would(decision: &Decision) -> Vec<(&str, AnswerReason)> {
    assert!(decision.is_allowed(), "{decision:?}");
    assert!(decision.binding().is_none(), "nothing is reported");
    let refusing = decision.shadow_refusals();
    refusing.map(|it| (it.limit(), it.reason())).collect()
}

#[test]
fn in_shadow_mode_every_limit_counts_and_none_refuses() {
    let limiter = limits("{ name: all, rate: 2/h }, { name: user, key: user, rate: 1/h }");
    let ann = Request::new().user("ann");
    let check = || limiter.check_now(&ann).unwrap();
    assert_eq!(would(&check()), []);
    assert_eq!(would(&check()), [("user", AnswerReason::Limited)]);
    let both = [
        ("all", AnswerReason::Limited),
        ("user", AnswerReason::Limited),
    ];
    assert_eq!(would(&check()), both, "the second request took from `all`");
}

#[test]
fn an_identity_that_is_missing_was_not_counted_in_shadow() {
    let limiter =
        limits("{ name: user, key: user, missing: refuse, rate: 5/h }, { name: all, rate: 5/h }");
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(would(&decision), [("user", AnswerReason::NoIdentity)]);
    let left = |decision: &Decision| {
        let mut all = decision.applied().filter(|it| it.limit() == "all");
        all.next().map(|it| it.remaining())
    };
    assert_eq!(
        left(&decision),
        Some(4),
        "the request passes, so others count it"
    );
}

#[test]
fn a_subject_without_a_plan_is_counted_and_passes() {
    let text = "
mode: shadow
plans: [{ name: events, file: plans.yaml }]
policies:
  - name: events
    limits:
      - { name: plan, key: attr:project, rate: { plan: events, subject: attr:project, default: refuse } }
";
    let (limiter, _) = planned(text, "subjects: { one: { amount: 3, period: 60 } }");
    let ask = |project| {
        let attributes = [("project", project)];
        limiter.check_now(&Request::new().attributes(&attributes))
    };
    assert_eq!(
        would(&ask("two").unwrap()),
        [("plan", AnswerReason::NoPlan)]
    );
    assert_eq!(would(&ask("one").unwrap()), []);
    let more = "subjects: { one: { amount: 1, period: 60 } }";
    limiter.replace_plans("events", document(more)).unwrap();
    assert_eq!(
        would(&ask("one").unwrap()),
        [("plan", AnswerReason::Limited)]
    );
}

#[test]
fn shadow_guards_refuse_no_client_and_exemptions_still_apply() {
    let limiter = limiter(
        "
guards:
  - { name: closed, deny: user, list: [eve] }
  - { name: staff, allow: ip, list: [10.0.0.0/8] }
policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]
",
    );
    let eve = Request::new().user("eve");
    let decision = limiter.check_now(&eve).unwrap();
    assert_eq!(would(&decision), []);
    let guards = decision.shadow_guards().map(|guard| guard.name.as_str());
    assert_eq!(guards.collect::<Vec<_>>(), ["closed"]);
    assert!(limiter.check_guards(&eve).unwrap().is_allowed());
    let staff = eve.ip("10.0.0.1".parse().unwrap()).cost(9);
    let exempt = limiter.check_now(&staff).unwrap();
    assert_eq!(
        (would(&exempt), exempt.reason()),
        (vec![], AnswerReason::Exempt)
    );
}

#[test]
fn a_shadow_limit_with_evaluate_first_still_ends_the_search() {
    let text = "
policies:
  - name: api
    evaluate: first
    limits:
      - { name: watched, rate: 9/h, mode: shadow }
      - { name: login, match: [{ path: /login }], rate: 1/h }
      - { name: rest, rate: 1/h }
";
    let limiter = limiter(text);
    let login = Request::new().path("/login");
    let met = |decision: Decision| -> Vec<String> {
        let names = decision.applied().map(|it| it.limit().to_owned());
        names.collect()
    };
    assert_eq!(
        met(limiter.check_now(&login).unwrap()),
        ["watched", "login"]
    );
    let rest = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(would(&rest), [], "`rest` was not charged by the other");
}

#[test]
fn requests_during_a_shadow_block_were_not_counted() {
    for text in [
        "mode: shadow\npolicies: [{ name: api, limits: [{ name: all, rate: 1/s, block: 5m }] }]",
        "policies: [{ name: api, limits: [{ name: all, rate: 1/s, block: 5m, mode: shadow }] }]",
    ] {
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let limiter = Limiter::builder().clock(clock.clone()).yaml(text);
        let limiter = limiter.unwrap().build().unwrap();
        let check = || limiter.check_now(&Request::new()).unwrap();
        assert_eq!(would(&check()), []);
        for (after_s, left_s) in [(0, 300), (2, 298), (297, 1)] {
            clock.advance_micros(after_s * 1_000_000);
            let decision = check();
            assert_eq!(would(&decision), [("all", AnswerReason::LimitBlocked)]);
            assert!(!decision.is_blocked());
            let refusal = decision.shadow_refusals().next().unwrap();
            let left = Duration::from_secs(left_s);
            assert_eq!(refusal.retry_after(), Some(left), "{text}");
        }
        clock.advance_micros(1_000_000);
        assert_eq!(would(&check()), [], "the limit is exceeded");
    }
}

#[test]
fn shadow_mode_neither_blocks_nor_writes_blocks() {
    let text = "policies: [{ name: api, limits: [{ name: all, rate: 1/h, block: 5m }] }]";
    let shadow = limiter(text);
    for _ in 0..3 {
        shadow.check_now(&Request::new()).unwrap();
    }
    let block = Quota::block(1_000_000).unwrap();
    let kept = block_on(shadow.store().inspect(b"api/all/global", &block));
    assert!(kept.unwrap().is_none());
    shadow.reload(Config::from_yaml(text).unwrap()).unwrap();
    let refused = shadow.check_now(&Request::new()).unwrap();
    assert!(
        !refused.is_allowed(),
        "enforced from the reload on, and its bucket was kept"
    );
}

#[tokio::test(start_paused = true)]
async fn shadow_mode_never_queues_a_request() {
    let limiter = limits("{ name: all, rate: 1/min, on_refusal: wait, max_wait: 30s }");
    for _ in 0..2 {
        let decision = limiter.check(&Request::new()).await.unwrap();
        assert_eq!(decision.waited(), Duration::ZERO);
    }
    assert!(limiter.waiting().is_empty());
    let decision = limiter.check(&Request::new()).await.unwrap();
    assert_eq!(would(&decision), [("all", AnswerReason::Limited)]);
}

#[test]
fn in_shadow_mode_limits_of_a_descriptor_refuse_nothing() {
    let limiter = limits("{ name: all, rate: 9/h }");
    let brought = Descriptor {
        entries: &[("user", "ann")],
        hits: DescriptorHits::AsRequest,
        limit: Some(LimitOverride {
            amount: 1,
            period_us: 3_600_000_000,
        }),
    };
    let descriptors = [brought];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(would(&limiter.check_now(&request).unwrap()), []);
    let second = limiter.check_now(&request).unwrap();
    assert_eq!(would(&second), [("override", AnswerReason::Limited)]);
    assert!(second.descriptor_allowed(0));
}

#[tokio::test]
async fn a_reservation_is_held_although_it_does_not_fit() {
    let limiter = limiter(
        "policies: [{ name: llm, reserve: 60s, limits: [{ name: tokens, rate: 100/h }, { name: day, rate: 900/d }] }]",
    );
    let reservation = limiter
        .reserve(&Request::new().cost(800), None)
        .await
        .unwrap();
    assert_eq!(
        would(reservation.decision()),
        [("tokens", AnswerReason::Limited)]
    );
    let id = reservation.id().expect("the reservation holds");
    limiter.commit(id, 300).await.unwrap();
    let looked = limiter.check(&Request::new().cost(0)).await.unwrap();
    let left: Vec<u64> = looked.applied().map(|it| it.remaining()).collect();
    assert_eq!(left, [100, 600], "only what was charged is settled");
}

#[test]
fn in_shadow_mode_quotas_of_the_caller_refuse_nothing() {
    let limiter = limits("{ name: all, rate: 9/h }");
    let quota = Throttle::quota(1, 1, 60).unwrap();
    let throttle = Throttle {
        key: b"ann",
        quota: &quota,
        quantity: 1,
    };
    let rules = limiter.rules().unwrap();
    let ask = || limiter.throttle_at_once(&rules, &throttle).unwrap();
    assert!(ask().outcome.is_allowed());
    let second = ask();
    assert!(second.is_allowed() && !second.outcome.is_allowed());
}

#[test]
fn limits_in_code_are_in_shadow_mode_with_the_config() {
    let limiter = Limiter::builder()
        .yaml("{ mode: shadow, policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }] }")
        .unwrap()
        .limit(LimitSpec::new("code").band("1/h"))
        .build()
        .unwrap();
    let request = Request::new().policy("default").cost(2);
    let decision = limiter.check_now(&request).unwrap();
    assert_eq!(would(&decision), [("code", AnswerReason::Limited)]);
}

/// Returns a limiter with one limit per `on_failure` value, in a policy with this `evaluate`.
fn cut_off(evaluate: &str) -> Limiter<CuttableStore> {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let store = CuttableStore::new(&clock);
    let text = format!(
        "
mode: shadow
store: {{ url: 'redis://db', local_share: 1 }}
policies:
  - name: api
    evaluate: {evaluate}
    limits:
      - {{ name: local, rate: 1/h, on_failure: local }}
      - {{ name: allow, rate: 1/h, on_failure: allow }}
      - {{ name: deny, rate: 1/h, on_failure: deny }}
      - {{ name: error, rate: 1/h, on_failure: error }}
"
    );
    let builder = Limiter::builder().yaml(&text).expect("a valid config");
    let builder = builder.clock(clock);
    store.cut();
    builder.build_with(store).expect("a limiter")
}

#[test]
fn in_shadow_mode_an_unreachable_store_only_counts_refusals() {
    for evaluate in ["all", "each"] {
        let limiter = cut_off(evaluate);
        let mut away = vec![
            ("deny", AnswerReason::NoStore),
            ("error", AnswerReason::NoStore),
        ];
        away.sort_unstable_by_key(|it| it.0);
        let would = |decision: &Decision| {
            let mut would = would(decision);
            assert_eq!(decision.decided_by(), DecidedBy::Local);
            would.sort_unstable_by_key(|it| it.0);
            would
                .iter()
                .map(|it| (it.0.to_owned(), it.1))
                .collect::<Vec<_>>()
        };
        let named = |all: &[(&str, AnswerReason)]| {
            all.iter()
                .map(|it| (it.0.to_owned(), it.1))
                .collect::<Vec<_>>()
        };
        let first = block_on(limiter.check(&Request::new())).unwrap();
        assert_eq!(would(&first), named(&away), "{evaluate}");
        away.push(("local", AnswerReason::Limited));
        let second = block_on(limiter.check(&Request::new())).unwrap();
        assert_eq!(would(&second), named(&away), "{evaluate}");
    }
}

#[test]
fn a_reload_changes_the_mode_and_keeps_buckets() {
    let text = "policies: [{ name: api, limits: [{ name: all, rate: 2/h }] }]";
    let shadow = format!("mode: shadow\n{text}");
    let limiter = Limiter::from_yaml(text).unwrap();
    let check = || limiter.check_now(&Request::new()).unwrap();
    check();
    limiter.reload(Config::from_yaml(&shadow).unwrap()).unwrap();
    assert_eq!(would(&check()), []);
    assert_eq!(would(&check()), [("all", AnswerReason::Limited)]);
    limiter.reload(Config::from_yaml(text).unwrap()).unwrap();
    assert!(!check().is_allowed());
}
