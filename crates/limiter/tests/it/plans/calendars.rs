//! Rates from plans in the calendar of each subject.

use super::{config, document};
use tidegate::{Limiter, ManualClock, MemoryStore, Request, Timestamp};

/// 2026-01-20T12:00Z, and the first of the next months in UTC.
const JANUARY_20: u64 = 1_768_910_400_000;
const FEBRUARY: u64 = 1_769_904_000_000;
const MARCH: u64 = 1_772_323_200_000;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

type ManualLimiter = Limiter<MemoryStore<ManualClock>>;

fn text(limit: &str) -> String {
    format!(
        "
plans: [{{ name: tiers, file: plans.yaml }}]
policies:
  - name: api
    time_zone: Asia/Tokyo
    limits: [{{ name: each, key: user, {limit} rate: {{ plan: tiers, subject: user, default: 3/month }} }}]
"
    )
}

fn limiter(limit: &str, plans: &str) -> (ManualLimiter, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
    let builder = Limiter::builder().config(config(&text(limit)));
    let limiter = builder.clock(clock.clone()).build();
    let limiter = limiter.unwrap_or_else(|error| panic!("{error}"));
    use_plans(&limiter, plans);
    (limiter, clock)
}

fn use_plans(limiter: &ManualLimiter, plans: &str) {
    let replaced = limiter.replace_plans("tiers", document(plans));
    replaced.unwrap_or_else(|error| panic!("{error}"));
}

/// Returns how many of `times` requests pass.
fn passes(limiter: &ManualLimiter, user: &str, times: u64) -> u64 {
    let request = Request::new().user(user);
    let decisions = (0..times).map(|_| limiter.check_now(&request).expect("a decision"));
    decisions.map(|it| u64::from(it.is_allowed())).sum()
}

/// Returns the milliseconds until the window of a user ends.
fn left(limiter: &ManualLimiter, user: &str) -> u128 {
    let request = Request::new().user(user).cost(0);
    let decision = limiter.check_now(&request).expect("a decision");
    decision
        .binding()
        .expect("a limit")
        .reset_after()
        .as_millis()
}

#[test]
fn each_subject_has_the_month_of_its_zone_and_billing_day() {
    let plans = "
plans: { gold: { rate: 3/month }, utc: { rate: 3/month, time_zone: UTC } }
groups: { acme: { plan: gold, time_zone: Europe/Berlin } }
subjects:
  policy: { plan: gold }
  plan: { plan: utc }
  group: { group: acme }
  subject: { group: acme, anchor: 31 }
  both: { group: acme, time_zone: America/New_York, anchor: 2026-01-15T09:30 }
  minutes: { plan: gold, rate: 3/min }
";
    for (user, end) in [
        ("policy", FEBRUARY - 9 * HOUR_MS),
        ("stranger", FEBRUARY - 9 * HOUR_MS),
        ("plan", FEBRUARY),
        ("group", FEBRUARY - HOUR_MS),
        ("subject", FEBRUARY - DAY_MS - HOUR_MS),
        ("both", FEBRUARY + 14 * DAY_MS + 14 * HOUR_MS + HOUR_MS / 2),
    ] {
        let (limiter, clock) = limiter("", plans);
        assert_eq!(passes(&limiter, user, 5), 3, "{user}");
        assert_eq!(left(&limiter, user), u128::from(end - JANUARY_20), "{user}");
        clock.set(Timestamp::from_millis(end - 1));
        assert_eq!(passes(&limiter, user, 5), 0, "{user}");
        clock.set(Timestamp::from_millis(end));
        assert_eq!(passes(&limiter, user, 5), 3, "{user}");
    }
    let (limiter, _clock) = limiter("", plans);
    assert_eq!(passes(&limiter, "minutes", 5), 3);
    assert_eq!(left(&limiter, "minutes"), 60_000);
}

#[test]
fn days_of_a_plan_follow_the_calendar_if_the_limit_is_aligned() {
    let plans = "subjects: { ann: { rate: 3/day, time_zone: Asia/Kathmandu } }";
    let (limiter, clock) = limiter("align: calendar,", plans);
    assert_eq!(passes(&limiter, "ann", 5), 3);
    // Midnight in Kathmandu is 18:15 in UTC.
    assert_eq!(left(&limiter, "ann"), u128::from(6 * HOUR_MS + HOUR_MS / 4));
    clock.set(Timestamp::from_millis(
        JANUARY_20 + 6 * HOUR_MS + HOUR_MS / 4,
    ));
    assert_eq!(passes(&limiter, "ann", 5), 3);
    let seconds = document("subjects: { ann: { amount: 3, period: 86400 } }");
    let wrong = limiter.replace_plans("tiers", seconds).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "line 1: subject `ann`, for limit `each` of policy `api`: `3/d` has no period of the \
         calendar; write `3/day`"
    );
}

#[test]
fn another_zone_or_billing_day_takes_effect_at_once_and_grants_nothing_twice() {
    for amount in [3, 50_000] {
        let plan =
            |calendar: &str| format!("subjects: {{ ann: {{ rate: {amount}/month, {calendar} }} }}");
        let (limiter, clock) = limiter("", &plan("time_zone: UTC"));
        let take = |cost: u64| {
            let request = Request::new().user("ann").cost(cost);
            limiter.check_now(&request).unwrap().is_allowed()
        };
        assert!(take(amount));
        // The 20th at noon is in the month from the 15th.
        clock.set(Timestamp::from_millis(JANUARY_20 + DAY_MS));
        use_plans(&limiter, &plan("time_zone: America/New_York, anchor: 15"));
        // Silent until after the end of the month in UTC.
        clock.set(Timestamp::from_millis(FEBRUARY + DAY_MS));
        assert!(!take(1), "the units of the 20th of January");
        let end = FEBRUARY + 14 * DAY_MS + 5 * HOUR_MS;
        clock.set(Timestamp::from_millis(end - 1));
        assert!(!take(1));
        clock.set(Timestamp::from_millis(end));
        assert!(take(amount));
        // Back: the 15th of February is in February.
        use_plans(&limiter, &plan("time_zone: UTC"));
        assert!(!take(1));
        clock.set(Timestamp::from_millis(MARCH));
        assert!(take(amount));
    }
}

#[test]
fn requests_cannot_wait_for_the_month_of_a_plan() {
    let limit = "on_refusal: wait, max_wait: 1s,";
    let text = text(limit).replace("default: 3/month", "default: 3/min");
    let limiter = Limiter::from_yaml(&text).unwrap();
    let wrong = limiter.replace_plans("tiers", document("subjects: { ann: 5/month }"));
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "line 1: subject `ann`, for limit `each` of policy `api`: `5/month`: requests cannot wait \
         for a calendar window"
    );
}
