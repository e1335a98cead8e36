use super::{Local, config, limiter, passes};
use std::time::Duration;
use tidegate::{ManualClock, Request};
use tidegate_import::{RuleSetRecord, fluxgate_rule_sets, fluxgate_rules};

fn translated(text: &str) -> String {
    let imported = fluxgate_rules("rules", text);
    let imported = imported.unwrap_or_else(|errors| panic!("{errors}"));
    imported.to_part()
}

fn rules(text: &str) -> (Local, ManualClock) {
    limiter(&translated(text))
}

fn from(ip: &str) -> Request<'_> {
    Request::new().ip(ip.parse().expect("an address"))
}

/// The flow of the document: 10 a second by address, 100 a minute by user, 1000 an hour for all.
const FLOW: &str = r#"[
  { "id": "rule-1", "scope": "PER_IP", "ruleSetId": "api-limits", "bands": [{ "windowSeconds": 1, "capacity": 10, "label": "10-per-second" }] },
  { "id": "rule-2", "scope": "PER_USER", "ruleSetId": "api-limits", "bands": [{ "windowSeconds": 60, "capacity": 100, "label": "100-per-minute" }] },
  { "id": "rule-3", "scope": "GLOBAL", "ruleSetId": "api-limits", "bands": [{ "windowSeconds": 3600, "capacity": 1000, "label": "1000-per-hour" }] }
]"#;

#[test]
fn every_rule_uses_its_own_key_and_the_least_remaining_is_reported() {
    let (limiter, _) = rules(FLOW);
    let decision = limiter
        .check_now(&from("192.168.1.100").user("user-123"))
        .unwrap();
    let asked: Vec<(&str, Option<&str>, u64)> = decision
        .applied()
        .map(|it| (it.limit(), it.label(), it.remaining()))
        .collect();
    assert_eq!(
        asked,
        [
            ("rule-1", Some("10-per-second"), 9),
            ("rule-2", Some("100-per-minute"), 99),
            ("rule-3", Some("1000-per-hour"), 999),
        ]
    );
    assert_eq!(decision.policy(), "api-limits");
    let binding = decision.binding().unwrap();
    assert_eq!(
        (binding.limit(), binding.key()),
        ("rule-1", "ip:192.168.1.100")
    );
}

#[test]
fn one_refusal_refuses_the_request_and_nothing_stays_charged() {
    let (limiter, clock) = rules(FLOW);
    let ann = || from("192.0.2.1").user("ann");
    assert!(passes(&limiter, &ann().cost(10)));
    for _ in 0..50 {
        let refused = limiter.check_now(&ann()).unwrap();
        assert!(!refused.is_allowed());
        let binding = refused.binding().unwrap();
        assert_eq!(binding.limit(), "rule-1");
        assert_eq!(binding.retry_after(), Some(Duration::from_millis(100)));
    }
    clock.advance_micros(1_000_000);
    let decision = limiter.check_now(&ann()).unwrap();
    let user = decision
        .applied()
        .find(|it| it.limit() == "rule-2")
        .unwrap();
    // Ten used, one refilled (100 a minute is one in 600 ms), and one used by this request.
    assert_eq!(user.remaining(), 90);
}

#[test]
fn every_band_is_charged_the_same_permits() {
    let (limiter, _) = rules(
        r#"{ "id": "a", "scope": "GLOBAL", "bands": [
             { "windowSeconds": 1, "capacity": 5, "label": "s" },
             { "windowSeconds": 60, "capacity": 7, "label": "min" }] }"#,
    );
    assert!(passes(&limiter, &Request::new().cost(5)));
    let refused = limiter.check_now(&Request::new().cost(6)).unwrap();
    assert_eq!(
        refused.binding().unwrap().retry_after(),
        None,
        "it never fits"
    );
}

#[test]
fn rules_that_are_disabled_or_without_bands_are_ignored() {
    let (limiter, _) = rules(
        r#"[{ "id": "off", "enabled": false, "scope": "GLOBAL", "bands": [{ "windowSeconds": 60, "capacity": 1 }] },
            { "id": "empty", "scope": "GLOBAL", "bands": [] },
            { "id": "none", "scope": "GLOBAL" }]"#,
    );
    for _ in 0..3 {
        let decision = limiter.check_now(&Request::new()).unwrap();
        assert!(decision.is_allowed());
        assert!(decision.binding().is_none(), "allowed without a rule");
    }
}

#[test]
fn a_band_without_a_label_is_the_default_one_and_two_of_them_share_no_bucket() {
    let (limiter, _) = rules(
        r#"[{ "id": "one", "ruleSetId": "one", "scope": "GLOBAL", "bands": [{ "windowSeconds": 60, "capacity": 3 }] },
            { "id": "two", "ruleSetId": "two", "scope": "GLOBAL", "bands": [
              { "windowSeconds": 1, "capacity": 2 }, { "windowSeconds": 3600, "capacity": 100 }] }]"#,
    );
    let one = limiter.check_now(&Request::new().policy("one")).unwrap();
    assert_eq!(one.binding().unwrap().label(), Some("default"));
    let two = limiter.check_now(&Request::new().policy("two")).unwrap();
    let remaining: Vec<u64> = two.applied().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [1, 99]);
}

#[test]
fn asking_often_loses_no_refill() {
    // In FluxGate, 33 of these 60 pass.
    let (limiter, clock) = rules(
        r#"{ "id": "a", "scope": "GLOBAL", "bands": [{ "windowSeconds": 1, "capacity": 10 }] }"#,
    );
    assert!(passes(&limiter, &Request::new().cost(10)));
    let mut passed = 0;
    for _ in 0..60 {
        clock.advance_micros(90_000);
        passed += u32::from(passes(&limiter, &Request::new()));
    }
    assert_eq!(passed, 54, "5.4 seconds of 10 each");
}

#[test]
fn a_client_without_user_counts_by_address_apart_from_such_a_user() {
    let (limiter, _) = rules(
        r#"{ "id": "a", "scope": "PER_USER", "bands": [{ "windowSeconds": 60, "capacity": 1 }] }"#,
    );
    assert!(passes(&limiter, &from("192.0.2.1")));
    assert!(!passes(&limiter, &from("192.0.2.1")));
    assert!(passes(&limiter, &from("192.0.2.1").user("192.0.2.1")));
    assert!(passes(&limiter, &from("192.0.2.2")));
}

#[test]
fn scopes_select_the_bucket_subject() {
    let (limiter, _) = rules(
        r#"[{ "id": "key", "ruleSetId": "key", "bands": [{ "windowSeconds": 60, "capacity": 1 }] },
            { "id": "custom", "ruleSetId": "custom", "scope": "CUSTOM", "keyStrategyId": "tenant", "bands": [{ "windowSeconds": 60, "capacity": 1 }] }]"#,
    );
    let of = |key| Request::new().policy("key").api_key(key);
    assert!(passes(&limiter, &of("one")));
    assert!(!passes(&limiter, &of("one")));
    assert!(passes(&limiter, &of("two")));
    for (tenant, passed) in [("a", true), ("a", false), ("b", true)] {
        let attributes = [("tenant", tenant)];
        let request = Request::new().policy("custom").attributes(&attributes);
        assert_eq!(passes(&limiter, &request), passed, "{tenant}");
    }
}

#[test]
fn another_amount_keeps_the_usage() {
    let rule = |capacity: u32| {
        format!(
            r#"{{ "id": "a", "scope": "GLOBAL", "bands": [{{ "windowSeconds": 3600, "capacity": {capacity} }}] }}"#
        )
    };
    let (limiter, _) = rules(&rule(100));
    assert!(passes(&limiter, &Request::new().cost(100)));
    limiter.reload(config(&translated(&rule(150)))).unwrap();
    assert!(
        !passes(&limiter, &Request::new()),
        "no client gets a full new quota"
    );
}

#[test]
fn a_changed_amount_among_unlabelled_bands_reset_all_buckets() {
    let rule = |capacity: u32| {
        format!(
            r#"{{ "id": "a", "scope": "GLOBAL", "bands": [
                 {{ "windowSeconds": 60, "capacity": {capacity} }}, {{ "windowSeconds": 3600, "capacity": 100 }}] }}"#
        )
    };
    let (limiter, _) = rules(&rule(3));
    assert!(passes(&limiter, &Request::new().cost(3)));
    limiter.reload(config(&translated(&rule(4)))).unwrap();
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert!(!decision.is_allowed(), "used units stay used");
    let remaining: Vec<u64> = decision.applied().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [0, 97]);
}

#[test]
fn adding_a_shorter_band_or_reordering_lost_the_usage() {
    let rule = |bands: &str| format!(r#"{{ "id": "a", "scope": "GLOBAL", "bands": [{bands}] }}"#);
    let hour = r#"{ "windowSeconds": 3600, "capacity": 100 }"#;
    let minute = r#"{ "windowSeconds": 60, "capacity": 50 }"#;
    let (limiter, _) = rules(&rule(hour));
    assert!(passes(&limiter, &Request::new().cost(100)));
    for bands in [
        format!("{minute}, {hour}"),
        format!("{hour}, {minute}"),
        hour.to_owned(),
    ] {
        let reloaded = limiter.reload(config(&translated(&rule(&bands))));
        reloaded.unwrap();
        assert!(!passes(&limiter, &Request::new()), "{bands}");
    }
}

#[test]
fn bands_of_one_period_without_labels_have_each_their_own_bucket() {
    let (limiter, _) = rules(
        r#"{ "id": "a", "scope": "GLOBAL", "bands": [
             { "windowSeconds": 60, "capacity": 5 }, { "windowSeconds": 60, "capacity": 3 },
             { "windowSeconds": 60, "capacity": 4 }] }"#,
    );
    let decision = limiter.check_now(&Request::new()).unwrap();
    let told = decision.applied().map(|it| (it.label(), it.remaining()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (Some("per-60s-2"), 4),
            (Some("default"), 2),
            (Some("per-60s"), 3)
        ]
    );
}

#[test]
fn a_hash_of_redis_is_one_rule_with_one_band() {
    let fields = [
        ("ruleSetId", "api-limits"),
        ("capacity", "2"),
        ("windowSeconds", "60"),
    ];
    let record = RuleSetRecord {
        key: "fluxgate:ruleset:api-limits".to_owned(),
        fields: fields
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .to_vec(),
    };
    let part = fluxgate_rule_sets("redis", &[record]).unwrap().to_part();
    let (limiter, _) = limiter(&part);
    let decision = limiter.check_now(&from("192.0.2.1").cost(2)).unwrap();
    assert_eq!(decision.binding().unwrap().limit(), "api-limits-rule");
    assert!(!passes(&limiter, &from("192.0.2.1")));
    assert!(passes(&limiter, &from("192.0.2.2")));
}
