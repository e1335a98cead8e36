use super::{EVENTS, PLANS, ask, limiter, passes};
use std::time::Duration;
use tidegate::plan::PlanAnswer;
use tidegate::{AnswerReason, KeyPart, Request};

#[test]
fn each_subject_has_the_rate_of_its_plan_and_its_own_window() {
    let (limiter, clock) = limiter(EVENTS, PLANS);
    assert_eq!(passes(&limiter, "one", 9), 5);
    assert_eq!(passes(&limiter, "two", 9), 5);
    assert_eq!(passes(&limiter, "all", 9), 9);
    assert_eq!(
        passes(&limiter, "odd", 9),
        9,
        "unset is unlimited by default"
    );
    assert_eq!(passes(&limiter, "stranger", 9), 2);
    clock.advance_micros(60_000_000);
    assert_eq!(passes(&limiter, "one", 9), 5, "its minute is over");
    assert_eq!(passes(&limiter, "two", 9), 0, "its hour is not");
}

#[test]
fn a_decision_reports_the_band_and_the_result_of_the_plan() {
    let (limiter, _) = limiter(EVENTS, PLANS);
    let answer = |project: &str| {
        let decision = ask(&limiter, project);
        let applied = decision.applied().next().expect("the limit is met");
        let (source, answer) = applied.plan().expect("it has a plan");
        assert_eq!(source, "events");
        (applied.band().map(str::to_owned), answer)
    };
    let rate = |is_unset| PlanAnswer::Unlimited { is_unset };
    let (band, told) = answer("two");
    assert_eq!(band.as_deref(), Some("5/h"));
    assert_eq!(told.as_str(), Some("rate"));
    assert_eq!(answer("all"), (None, rate(false)));
    assert_eq!(answer("odd"), (None, rate(true)));
    let (band, told) = answer("stranger");
    assert_eq!(
        (band.as_deref(), told),
        (Some("2/h"), PlanAnswer::UnknownBand)
    );

    let decision = ask(&limiter, "one");
    let binding = decision.binding().expect("it is limited");
    assert_eq!(binding.capacity(), 5);
    assert_eq!(binding.period(), Duration::from_secs(60));
    assert_eq!(
        binding
            .header_names()
            .map(|names| names.draft_11(0))
            .as_deref(),
        Some("\"per-project\";q=5;w=60")
    );
    assert_eq!(binding.key(), "attr.project:one");
    assert_eq!(binding.key_parts(), [KeyPart::Attr("project".to_owned())]);
}

#[test]
fn unknown_subjects_are_refused_if_the_plan_is_set_to() {
    let text = EVENTS.replace("default: 2/h", "default: refuse");
    let (limiter, _) = limiter(&text, PLANS);
    assert!(ask(&limiter, "one").is_allowed());
    let refused = ask(&limiter, "stranger");
    assert!(!refused.is_allowed());
    assert_eq!(refused.reason(), AnswerReason::NoPlan);
    assert_eq!(
        refused.binding().map(|it| it.limit().to_owned()).as_deref(),
        Some("per-project")
    );
    assert_eq!(refused.binding().and_then(|it| it.retry_after()), None);
    let without = limiter.check_now(&Request::new()).unwrap();
    assert!(!without.is_allowed());
    assert_eq!(
        without.reason(),
        AnswerReason::NoIdentity,
        "the store is not called"
    );
}

#[test]
fn a_shadow_limit_allows_subjects_unknown_to_its_plan() {
    let text = EVENTS.replace("default: 2/h }", "default: refuse }\n        mode: shadow");
    let (limiter, _) = limiter(&text, PLANS);
    assert_eq!(passes(&limiter, "stranger", 3), 3);
}

#[test]
fn an_unset_subject_is_refused_or_gets_the_source_default() {
    for (unset, expected) in [("refuse", 0), ("4/h", 4), ("unlimited", 9)] {
        let text = EVENTS.replace("plans.yaml }", &format!("plans.yaml, unset: {unset} }}"));
        let (limiter, _) = limiter(&text, PLANS);
        assert_eq!(passes(&limiter, "odd", 9), expected, "{unset}");
        assert_eq!(passes(&limiter, "one", 9), 5, "{unset}");
    }
}

#[test]
fn before_the_first_load_no_subject_is_known() {
    let (limiter, _) = limiter(EVENTS, "");
    assert_eq!(passes(&limiter, "one", 9), 2);
    let states = limiter.plans();
    assert_eq!(
        (states[0].name.as_str(), states[0].subjects, states[0].age),
        ("events", 0, None)
    );
}

const QUOTAS: &str = "
plans: [{ name: events, file: plans.yaml }]
policies:
  - name: events
    limits:
      - name: per-project
        key: attr:project
        rate: { plan: events, subject: attr:project, default: unlimited }
        algorithm: fixed-window
      - name: per-workspace
        key: group
        missing: skip
        rate: { plan: events, subject: attr:project, of: group, default: unlimited }
        algorithm: fixed-window
";

#[test]
fn a_group_shares_one_bucket_and_refusals_charge_no_subject() {
    let plans = "
groups: { acme: { rate: 4/h, quota: 6/d } }
subjects: { a: { group: acme }, b: { group: acme }, c: { group: other, rate: 9/h }, d: 9/h }
";
    let (limiter, _) = limiter(QUOTAS, plans);
    assert_eq!(passes(&limiter, "a", 9), 4, "its own rate");
    assert_eq!(passes(&limiter, "b", 9), 2, "what is left of the group's");
    let refused = ask(&limiter, "b");
    let binding = refused.binding().expect("it is limited");
    assert_eq!(
        (binding.limit(), binding.key()),
        ("per-workspace", "group:acme")
    );
    let own = refused.applied().find(|it| it.limit() == "per-project");
    assert_eq!(
        own.map(|it| it.remaining()),
        Some(2),
        "and refusals are free"
    );
    assert_eq!(passes(&limiter, "c", 12), 9, "no decision about its group");
    assert_eq!(passes(&limiter, "d", 12), 9, "it has no plan");
}

#[test]
fn a_policy_that_is_joined_with_another_has_the_plans_of_both() {
    let text = format!(
        "routes: [{{ name: all, upstreams: ['http://127.0.0.1:1'], policy: [events, other] }}]\n{EVENTS}  - name: other\n    limits: [{{ name: all, rate: 100/h }}]\n"
    );
    let (limiter, _) = limiter(&text, PLANS);
    let attributes = [("project", "one")];
    let joined = Request::new()
        .policy("events+other")
        .attributes(&attributes);
    let passed = (0..9).filter(|_| limiter.check_now(&joined).unwrap().is_allowed());
    assert_eq!(passed.count(), 5);
    assert_eq!(passes(&limiter, "one", 1), 0, "the bucket is the same");
}

#[test]
fn a_token_bucket_refills_at_the_rate_of_the_plan() {
    let text = EVENTS.replace("fixed-window", "token-bucket");
    let (limiter, clock) = limiter(&text, "subjects: { one: 60/min burst 10 }");
    assert_eq!(passes(&limiter, "one", 20), 10);
    clock.advance_micros(3_000_000);
    assert_eq!(passes(&limiter, "one", 20), 3);
}
