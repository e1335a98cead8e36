//! The state of buckets when the numbers of their limits change.

use tidegate::{Algorithm, BuildError, Timestamp};
use tidegate::{Config, KeyPart, LimitSpec, Limiter, ManualClock, MemoryStore, OnChange, Request};

type TestLimiter = Limiter<MemoryStore<ManualClock>>;

fn config(limit: &str) -> Config {
    let text = format!("policies: [{{ name: api, limits: [{{ name: x, {limit} }}] }}]");
    Config::from_yaml(&text).expect("a valid config")
}

fn limiter(limit: &str) -> TestLimiter {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let builder = Limiter::builder().config(config(limit)).clock(clock);
    builder.build().expect("a valid config")
}

fn take(limiter: &TestLimiter, cost: u64) -> bool {
    let decision = limiter.check_now(&Request::new().cost(cost));
    decision.expect("a decision").is_allowed()
}

fn left(limiter: &TestLimiter) -> u64 {
    let decision = limiter.check_now(&Request::new().cost(0));
    let decision = decision.expect("a decision");
    decision.binding().expect("a limit applies").remaining()
}

/// The limit before, the units used of it, the limit after, and the units left then.
#[test]
fn a_reload_keeps_scales_or_resets_usage_as_configured() {
    for (before, used, after, rest) in [
        ("rate: 100/h", 60, "rate: 200/h", 80),
        ("rate: 100/h", 60, "rate: 10/h", 4),
        ("rate: 100/h", 50, "rate: 100/h, on_change: scale", 50),
        (
            "rate: 100/h, on_change: scale",
            50,
            "rate: 200/h, on_change: scale",
            100,
        ),
        (
            "rate: 100/h, on_change: scale",
            50,
            "rate: 100/h burst 10, on_change: scale",
            5,
        ),
        ("rate: 100/h, on_change: scale", 50, "rate: 200/h", 100),
        (
            "rate: 100/h, on_change: reset",
            60,
            "rate: 200/h, on_change: reset",
            200,
        ),
        (
            "rate: 100/h, on_change: reset",
            60,
            "rate: 100/h, on_change: reset, max_wait: 5m, on_refusal: wait",
            40,
        ),
        // From the table to the records, and back.
        ("rate: 100/h", 60, "rate: 100/h, refundable: true", 40),
        ("rate: 100/h, refundable: true", 60, "rate: 100/h", 40),
        (
            "rate: 100/h",
            60,
            "rate: 100/h, on_refusal: wait, max_wait: 5m",
            40,
        ),
        (
            "rate: 4000/h, algorithm: fixed-window",
            3_000,
            "rate: 5000/h, algorithm: fixed-window",
            2_000,
        ),
        (
            "rate: 5000/h, algorithm: fixed-window",
            3_000,
            "rate: 4000/h, algorithm: fixed-window",
            1_000,
        ),
        // Microseconds, milliseconds.
        ("rate: 1000000/d", 500_000, "rate: 1000003/d", 500_001),
        ("rate: 1000003/d", 500_001, "rate: 1000000/d", 500_000),
    ] {
        let limiter = limiter(before);
        assert!(take(&limiter, used), "{before}");
        limiter.reload(config(after)).expect("a valid config");
        assert_eq!(left(&limiter), rest, "{before} to {after}");
    }
}

#[test]
fn returning_to_earlier_numbers_gains_nothing() {
    let (one, other) = (
        "rate: 100/h, on_change: reset",
        "rate: 50/h, on_change: reset",
    );
    let limiter = limiter(one);
    assert!(take(&limiter, 100));
    limiter.reload(config(other)).expect("a valid config");
    assert!(take(&limiter, 50));
    for limit in [one, other, one] {
        limiter.reload(config(limit)).expect("a valid config");
        assert!(!take(&limiter, 1), "{limit}");
    }
}

/// A subject with a new rate from a plan follows the limit's `on_change`, without any reload.
#[test]
fn a_plan_that_changes_follows_the_limit() {
    for (on_change, rest) in [("keep", 160), ("scale", 120), ("reset", 200)] {
        let text = format!(
            "
plans: [{{ name: events, file: plans.yaml }}]
policies:
  - name: api
    limits:
      - name: x
        key: attr:project
        rate: {{ plan: events, subject: attr:project, default: refuse }}
        algorithm: fixed-window
        on_change: {on_change}
"
        );
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let config = Config::from_yaml(&text).expect("a valid config");
        let limiter = Limiter::builder().config(config).clock(clock).build();
        let limiter = limiter.expect("a valid config");
        let plans = |amount: u64| {
            let text = format!("subjects: {{ one: {{ amount: {amount}, period: 3600 }} }}");
            let document = tidegate::plans_from_text(&text, false).expect("a valid config");
            limiter
                .replace_plans("events", document)
                .expect("a valid config");
        };
        let attributes = [("project", "one")];
        let ask = |cost| {
            let request = Request::new().attributes(&attributes).cost(cost);
            let decision = limiter.check_now(&request).expect("a decision");
            let binding = decision.binding().expect("a limit applies");
            (decision.is_allowed(), binding.remaining())
        };
        plans(100);
        assert_eq!(ask(40), (true, 60));
        plans(200);
        assert_eq!(ask(0), (true, rest), "{on_change}");
    }
}

#[test]
fn limits_in_code_choose_what_a_change_does_to_usage() {
    let build = |algorithm| {
        let limit = LimitSpec::new("x").key(KeyPart::Ip).band("100/h");
        let limit = limit.algorithm(algorithm).on_change(OnChange::Scale);
        Limiter::builder().limit(limit).build()
    };
    let limiter = build(Algorithm::TokenBucket).expect("it can be scaled");
    assert!(
        limiter
            .check_now(&Request::new())
            .expect("a decision")
            .is_allowed()
    );
    let refused = build(Algorithm::SlidingLog).expect_err("it cannot");
    assert!(matches!(refused, BuildError::Limit { .. }), "{refused}");
    assert!(
        refused.to_string().contains("cannot be scaled"),
        "{refused}"
    );
}
