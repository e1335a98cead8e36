//! Rates of several units from one plan.

use super::{config, document};
use tidegate::{Decision, Limiter, ManualClock, MemoryStore, Request, Timestamp};
use tidegate_testkit::laws::block_on;

const TIERS: &str = "
plans: [{ name: tiers, file: plans.yaml, rates: [tokens, monthly], unset: refuse }]
policies:
  - name: llm
    reserve: 10min
    limits:
      - { name: calls, key: user, rate: { plan: tiers, subject: user, default: refuse } }
      - { name: month, key: user, rate: { plan: tiers, name: monthly, subject: user, default: refuse } }
      - { name: tokens, key: user, unit: tokens, rate: { plan: tiers, subject: user, default: refuse } }
      - { name: team, key: group, missing: skip, unit: tokens, rate: { plan: tiers, subject: user, of: group, default: skip } }
";

const PLANS: &str = "
plans:
  free: { rate: 5/min, rates: { monthly: 8/month, tokens: 1000/month } }
  calls: { rate: 5/min, rates: { monthly: unlimited } }
groups:
  acme: { plan: free, quota: { rates: { tokens: 1500/month } } }
subjects:
  ann: { plan: free }
  web: { group: acme }
  batch: { group: acme, rates: { tokens: { amount: 9000 } } }
  bob: { plan: calls }
";

/// 2026-01-20T12:00Z.
const JANUARY_20: u64 = 1_768_910_400_000;

type ManualLimiter = Limiter<MemoryStore<ManualClock>>;

fn limiter() -> (ManualLimiter, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
    let builder = Limiter::builder()
        .config(config(TIERS))
        .clock(clock.clone());
    let limiter = builder.build().unwrap_or_else(|error| panic!("{error}"));
    limiter
        .replace_plans("tiers", document(PLANS))
        .unwrap_or_else(|error| panic!("{error}"));
    (limiter, clock)
}

fn ask(limiter: &ManualLimiter, user: &str, cost: &[(&str, u64)]) -> Decision {
    let request = Request::new().user(user).cost(cost);
    limiter.check_now(&request).expect("a decision")
}

/// Returns the binding limit, its band and the rest.
fn binding(decision: &Decision) -> (Option<&str>, Option<&str>, u64) {
    let band = decision.binding().expect("a limit");
    (decision.limit(), band.band(), band.remaining())
}

#[test]
fn one_plan_limits_requests_tokens_and_months() {
    let (limiter, clock) = limiter();
    let first = ask(&limiter, "ann", &[("tokens", 800)]);
    assert!(first.is_allowed());
    assert_eq!(binding(&first), (Some("tokens"), Some("1000/month"), 200));
    // Not enough tokens: neither the minute nor the month is charged.
    let refused = ask(&limiter, "ann", &[("tokens", 300)]);
    assert!(!refused.is_allowed());
    assert_eq!(binding(&refused), (Some("tokens"), Some("1000/month"), 200));
    for left in [3, 2, 1, 0] {
        let decision = ask(&limiter, "ann", &[]);
        assert!(decision.is_allowed());
        assert_eq!(binding(&decision), (Some("calls"), Some("5/min"), left));
    }
    clock.set(Timestamp::from_millis(JANUARY_20 + 60_000));
    let passed = (0..9).filter(|_| ask(&limiter, "ann", &[]).is_allowed());
    assert_eq!(passed.count(), 3, "eight a month");
    let refused = ask(&limiter, "ann", &[]);
    assert_eq!(binding(&refused), (Some("month"), Some("8/month"), 0));
}

#[test]
fn the_quota_of_a_group_has_a_rate_of_the_unit() {
    let (limiter, _clock) = limiter();
    assert!(ask(&limiter, "web", &[("tokens", 1000)]).is_allowed());
    let refused = ask(&limiter, "batch", &[("tokens", 600)]);
    assert_eq!(binding(&refused), (Some("team"), Some("1500/month"), 500));
    assert!(ask(&limiter, "batch", &[("tokens", 500)]).is_allowed());
}

#[test]
fn a_reservation_settles_the_rates_of_a_plan_by_unit() {
    let (limiter, _clock) = limiter();
    let request = Request::new().user("ann").cost(&[("tokens", 900)]);
    let reserved = block_on(limiter.reserve(&request, None)).expect("an answer");
    let id = reserved.id().expect("it was reserved");
    block_on(limiter.commit(id, &[("tokens", 150)])).expect("an answer");
    let next = ask(&limiter, "ann", &[("tokens", 850)]);
    assert!(next.is_allowed(), "150 of 1000 are charged");
    assert_eq!(binding(&next), (Some("tokens"), Some("1000/month"), 0));
}

#[test]
fn a_subject_without_a_rate_of_the_unit_is_refused_only_what_it_asks_for() {
    let (limiter, _clock) = limiter();
    assert!(ask(&limiter, "bob", &[]).is_allowed(), "no tokens asked");
    let refused = ask(&limiter, "bob", &[("tokens", 1)]);
    assert!(!refused.is_allowed());
    assert_eq!(refused.limit(), Some("tokens"));
    assert!(!ask(&limiter, "stranger", &[]).is_allowed());
}

#[test]
fn a_source_that_gets_a_name_treats_its_subjects_as_unknown_until_they_are_loaded() {
    let (limiter, _clock) = limiter();
    let more = TIERS.replace("[tokens, monthly]", "[tokens, monthly, calls]");
    let more = more.replace(
        "rate: { plan: tiers, name: monthly, subject: user, default: refuse",
        "algorithm: fixed-window, rate: { plan: tiers, name: calls, subject: user, default: 2/h",
    );
    limiter.reload(config(&more)).unwrap();
    let passed = (0..5).filter(|_| ask(&limiter, "ann", &[]).is_allowed());
    assert_eq!(passed.count(), 2, "the default");
    let plans = PLANS.replace("monthly: 8/month", "calls: 3/h");
    let plans = plans.replace("monthly: unlimited", "calls: unlimited");
    limiter.replace_plans("tiers", document(&plans)).unwrap();
    assert!(ask(&limiter, "ann", &[]).is_allowed(), "one more of three");
    assert!(!ask(&limiter, "ann", &[]).is_allowed());
}

#[test]
fn a_rate_that_another_limit_uses_need_not_fit() {
    let text = TIERS.replace(
        "name: month, key: user,",
        "name: month, key: user, algorithm: fixed-window,",
    );
    let limiter = Limiter::from_yaml(&text).unwrap();
    let plans = PLANS.replace("rate: 5/min,", "rate: 5/min burst 9,");
    limiter.replace_plans("tiers", document(&plans)).unwrap();
    let wrong = plans.replace("monthly: 8/month", "monthly: 8/h burst 9");
    let wrong = limiter.replace_plans("tiers", document(&wrong));
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "line 8: subject `ann`, rate `monthly`, for limit `month` of policy `llm`: `8/h burst 9`: a \
         window has no burst; only token-bucket has; write `8/h`, or use `algorithm: token-bucket`"
    );
}
