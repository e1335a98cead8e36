use super::{EVENTS, PLANS, ask, config, document, limiter, passes};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use tidegate::plan::PlanDocument;
use tidegate::{BuildError, PlansError, Request};

#[test]
fn another_amount_or_period_finds_the_bucket_as_it_was() {
    let (limiter, clock) = limiter(EVENTS, "subjects: { p: { amount: 5, period: 60 } }");
    assert_eq!(passes(&limiter, "p", 3), 3);
    let replace = |text| limiter.replace_plans("events", document(text));
    replace("subjects: { p: { amount: 8, period: 60 } }").unwrap();
    assert_eq!(passes(&limiter, "p", 9), 5, "three are used");
    replace("subjects: { p: { amount: 9, period: 600 } }").unwrap();
    clock.advance_micros(30_000_000);
    assert_eq!(passes(&limiter, "p", 9), 1, "eight are used");
    // In the in-memory table, a window that has begun keeps its end.
    clock.advance_micros(30_000_000);
    assert_eq!(passes(&limiter, "p", 20), 9);
    clock.advance_micros(60_000_000);
    assert_eq!(passes(&limiter, "p", 9), 0, "the window is longer now");
}

#[test]
fn invalid_plans_keep_the_last_valid_ones_in_force() {
    let (limiter, _) = limiter(EVENTS, "subjects: { p: 5/h }");
    let wrong = limiter.replace_plans("events", document("subjects: { p: { amount: x }, q: 1/h }"));
    assert!(matches!(wrong, Err(PlansError::Document(_))), "{wrong:?}");
    // A burst is for token buckets, and this is a window.
    let burst = limiter.replace_plans("events", document("subjects: { p: 5/h burst 9 }"));
    let Err(PlansError::Rate { reason }) = burst else {
        panic!("{burst:?}");
    };
    assert!(
        reason.contains("subject `p`, for limit `per-project` of policy `events`"),
        "{reason}"
    );
    let unknown = limiter.replace_plans("evnts", PlanDocument::default());
    assert!(
        matches!(unknown, Err(PlansError::Unknown { .. })),
        "{unknown:?}"
    );
    assert_eq!(passes(&limiter, "p", 9), 5);
    let states = limiter.plans();
    assert_eq!((states[0].loads, states[0].failures), (1, 2));
    assert!(
        states[0]
            .error
            .as_ref()
            .is_some_and(|it| it.contains("burst")),
        "{states:?}"
    );
}

#[test]
fn a_decision_keeps_reporting_the_band_it_was_made_with() {
    let (limiter, _) = limiter(EVENTS, PLANS);
    let before = ask(&limiter, "one");
    limiter
        .replace_plans("events", document("subjects: { one: 7/s }"))
        .unwrap();
    limiter
        .replace_plans("events", document("subjects: { two: 1/s }"))
        .unwrap();
    assert_eq!(
        before
            .binding()
            .and_then(|it| it.band().map(str::to_owned))
            .as_deref(),
        Some("5/min")
    );
    assert_eq!(before.binding().map(|it| it.capacity()), Some(5));
    assert_eq!(
        ask(&limiter, "one").binding().map(|it| it.capacity()),
        Some(2)
    );
}

#[test]
fn a_charge_is_refunded_by_the_plan_that_made_it() {
    let text = EVENTS.replace(
        "algorithm: fixed-window",
        "algorithm: fixed-window\n        refundable: true",
    );
    let (limiter, _) = limiter(&text, "subjects: { p: 3/h }");
    let decision = ask(&limiter, "p");
    limiter
        .replace_plans("events", document("subjects: { p: 4/h }"))
        .unwrap();
    tidegate_testkit::laws::block_on(limiter.refund_decision(&decision)).unwrap();
    assert_eq!(passes(&limiter, "p", 9), 4);
}

#[test]
fn a_reload_keeps_plans_and_rejects_limits_that_cannot_count_them() {
    let (limiter, _) = limiter(EVENTS, "subjects: { p: 20000/h }");
    limiter
        .reload(config(&EVENTS.replace("default: 2/h", "default: 1/h")))
        .unwrap();
    assert_eq!(
        ask(&limiter, "p").binding().map(|it| it.capacity()),
        Some(20_000)
    );
    assert_eq!(passes(&limiter, "stranger", 9), 1);
    // A log stores each unit, and this amount is too large.
    let refused = limiter.reload(config(&EVENTS.replace("fixed-window", "sliding-log")));
    assert!(
        matches!(refused, Err(BuildError::Plans { .. })),
        "{refused:?}"
    );
    assert_eq!(
        ask(&limiter, "p").binding().map(|it| it.remaining()),
        Some(19_998)
    );
    // Another source has not delivered any plans yet.
    limiter
        .reload(config(
            &EVENTS
                .replace("events, file", "others, file")
                .replace("plan: events", "plan: others"),
        ))
        .unwrap();
    assert_eq!(limiter.plans()[0].subjects, 0);
}

#[test]
fn requests_during_a_plan_change_use_one_plan_completely() {
    let (limiter, _) = limiter(EVENTS, "subjects: { p: { amount: 1000000, period: 10 } }");
    let (done, seen) = (
        AtomicBool::new(false),
        [AtomicUsize::new(0), AtomicUsize::new(0)],
    );
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    let decision = ask(&limiter, "p");
                    let binding = decision.binding().expect("it is limited");
                    match (binding.capacity(), binding.period().as_secs()) {
                        (1_000_000, 10) => seen[0].fetch_add(1, SeqCst),
                        (2_000_000, 20) => seen[1].fetch_add(1, SeqCst),
                        other => panic!("half of one and half of the other: {other:?}"),
                    };
                }
            });
        }
        let mut turns = 0_u32;
        while turns < 100 || seen.iter().any(|it| it.load(SeqCst) == 0) {
            let text = match turns % 2 {
                0 => "subjects: { a: 1/s, p: { amount: 2000000, period: 20 } }",
                _ => "subjects: { p: { amount: 1000000, period: 10 } }",
            };
            limiter.replace_plans("events", document(text)).unwrap();
            turns += 1;
        }
        done.store(true, SeqCst);
    });
    assert!(limiter.plans()[0].loads >= 100);
}

#[test]
fn a_hundred_thousand_subjects_are_all_found() {
    let mut plans = PlanDocument::default();
    for subject in 0..100_000_u32 {
        let amount = (subject % 7 + 1).to_string();
        plans.subject(
            &format!("project-{subject}"),
            &[("amount", &amount), ("period", "3600")],
        );
    }
    let (limiter, _) = limiter(EVENTS, "");
    limiter.replace_plans("events", plans).unwrap();
    let state = &limiter.plans()[0];
    assert_eq!((state.subjects, state.rates), (100_000, 7));
    for subject in (0..100_000_usize).step_by(9_973) {
        let expected = subject % 7 + 1;
        assert_eq!(passes(&limiter, &format!("project-{subject}"), 9), expected);
    }
}

#[test]
fn a_secret_subject_is_found_and_never_shown() {
    let text = EVENTS.replace("attr:project", "api-key");
    let (limiter, _) = limiter(&text, "subjects: { hunter2: { amount: 3, period: 60 } }");
    let request = Request::new().api_key("hunter2");
    let passed = (0..9)
        .filter(|_| limiter.check_now(&request).unwrap().is_allowed())
        .count();
    assert_eq!(passed, 3);
    let decision = limiter.check_now(&request).unwrap();
    let told = format!("{decision:?} {limiter:?} {:?}", limiter.plans());
    assert!(!told.contains("hunter2"), "{told}");
}
