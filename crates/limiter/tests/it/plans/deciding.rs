use super::{EVENTS, PLANS, ask, limiter, passes};
use std::time::Duration;
use tidegate::plan::PlanAnswer;
use tidegate::{AnswerReason, KeyPart, Request};

#[test]
fn each_subject_has_what_its_plan_says_in_a_window_of_its_own() {
    let (limiter, clock) = limiter(EVENTS, PLANS);
    assert_eq!(passes(&limiter, "one", 9), 5);
    assert_eq!(passes(&limiter, "two", 9), 5);
    assert_eq!(passes(&limiter, "all", 9), 9);
    assert_eq!(
        passes(&limiter, "odd", 9),
        9,
        "unset is unlimited unless told"
    );
    assert_eq!(passes(&limiter, "stranger", 9), 2);
    clock.advance_micros(60_000_000);
    assert_eq!(passes(&limiter, "one", 9), 5, "its minute is over");
    assert_eq!(passes(&limiter, "two", 9), 0, "its hour is not");
}

#[test]
fn a_decision_tells_the_band_of_the_plan_and_what_the_plan_answered() {
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
    assert_eq!(binding.period(), Duration::from_mins(1));
    assert_eq!(
        binding
            .spoken()
            .map(tidegate::respond::HeaderNames::draft_11),
        Some("\"per-project\";q=5;w=60")
    );
    assert_eq!(binding.key(), "attr.project:one");
    assert_eq!(binding.key_parts(), [KeyPart::Attr("project".to_owned())]);
}

#[test]
fn whoever_the_plan_does_not_know_is_refused_where_it_says_so_and_not_for_want_of_an_identity() {
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
        "nobody was asked about"
    );
}

#[test]
fn a_limit_that_only_watches_refuses_nobody_whom_its_plan_does_not_know() {
    let text = EVENTS.replace("default: 2/h }", "default: refuse }\n        mode: shadow");
    let (limiter, _) = limiter(&text, PLANS);
    assert_eq!(passes(&limiter, "stranger", 3), 3);
}

#[test]
fn what_is_unset_is_refused_or_has_a_rate_where_the_source_says_so() {
    for (unset, expected) in [("refuse", 0), ("4/h", 4), ("unlimited", 9)] {
        let text = EVENTS.replace("plans.yaml }", &format!("plans.yaml }}, unset: {unset}"));
        let (limiter, _) = limiter(&text, PLANS);
        assert_eq!(passes(&limiter, "odd", 9), expected, "{unset}");
        assert_eq!(passes(&limiter, "one", 9), 5, "{unset}");
    }
}

#[test]
fn before_anything_is_loaded_nobody_is_known() {
    let (limiter, _) = limiter(EVENTS, "");
    assert_eq!(passes(&limiter, "one", 9), 2);
    let states = limiter.plans();
    assert_eq!(
        (states[0].name.as_str(), states[0].subjects, states[0].age),
        ("events", 0, None)
    );
}

const QUOTAS: &str = "
plans: [{ name: events, from: { file: plans.yaml } }]
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
fn a_group_has_one_bucket_for_all_its_subjects_and_what_it_refuses_they_have_not_used() {
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
    assert_eq!(passes(&limiter, "c", 12), 9, "nothing is said of its group");
    assert_eq!(passes(&limiter, "d", 12), 9, "it has none");
}

#[test]
fn a_policy_that_is_joined_with_another_has_the_plans_of_both() {
    let text = format!(
        "routes: [{{ id: all, upstreams: ['http://127.0.0.1:1'], policy: [events, other] }}]\n{EVENTS}  - name: other\n    limits: [{{ name: all, rate: 100/h }}]\n"
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
