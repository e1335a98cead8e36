use std::time::Duration;
use tidegate::{
    AnswerReason, BuildError, Config, Decision, Descriptor, DescriptorHits, LimitSpec, Limiter,
    ManualClock, MemoryStore, PermitTerm, Request, Timestamp,
};
use tidegate_testkit::laws::block_on;

type Manual = Limiter<MemoryStore<ManualClock>>;

fn policy(limits: &str) -> String {
    format!("policies: [{{ name: api, {limits} }}]")
}

fn limiter_of(policies: &str) -> (Manual, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let builder = Limiter::builder().yaml(policies);
    let builder = builder.unwrap_or_else(|errors| panic!("{errors}"));
    let built = builder.clock(clock.clone()).build();
    (built.unwrap_or_else(|error| panic!("{error}")), clock)
}

fn limiter(limits: &str) -> (Manual, ManualClock) {
    limiter_of(&policy(&format!("limits: [{limits}]")))
}

fn check(limiter: &Manual) -> Decision {
    limiter.check_now(&Request::new()).expect("a decision")
}

/// Returns how many requests are let pass when each is dropped at the end.
fn room(limiter: &Manual) -> usize {
    let all: Vec<Decision> = (0..20).map(|_| check(limiter)).collect();
    all.iter().filter(|it| it.is_allowed()).count()
}

#[test]
fn a_request_counts_until_the_last_holder_of_its_permit_is_gone() {
    let (limiter, clock) = limiter("{ name: jobs, concurrent: 2 }");
    let (first, second) = (check(&limiter), check(&limiter));
    let clone = first.clone();
    let permit = first.into_permit().unwrap();
    drop(clone);
    clock.advance_micros(7_200_000_000);
    let refused = check(&limiter);
    assert_eq!(refused.reason(), AnswerReason::Limited);
    let binding = refused.binding().unwrap();
    assert_eq!(
        (binding.band(), binding.remaining()),
        (Some("2 at once"), 0)
    );
    assert_eq!(binding.retry_after(), Some(Duration::from_secs(1)));
    assert!(refused.permit().is_none());

    drop(permit);
    let third = check(&limiter);
    assert!(third.is_allowed());
    drop((second, third));
    assert_eq!(room(&limiter), 2);
}

#[test]
fn a_permit_is_released_once_whoever_says_so() {
    let (limiter, _clock) = limiter("{ name: jobs, concurrent: 1 }");
    let decision = check(&limiter);
    let permit = decision.permit().unwrap();
    assert!(permit.is_held() && permit.release());
    let next = check(&limiter);
    assert!(next.is_allowed());
    assert!(!permit.release() && decision.permit().is_none());
    drop((decision, permit));
    assert_eq!(room(&limiter), 0, "the next holds its own");
    drop(next);
    assert_eq!(room(&limiter), 1);
}

#[test]
fn a_permit_outlives_the_limiter() {
    let (limiter, _clock) = limiter("{ name: jobs, concurrent: 1 }");
    let permit = check(&limiter).into_permit().unwrap();
    drop(limiter);
    assert!(permit.release());
}

/// Next to rates: a refusal by either takes nothing of the other.
#[test]
fn a_refused_request_holds_no_permit_and_charges_no_rate() {
    let (limiter, _clock) = limiter("{ name: jobs, concurrent: 2 }, { name: all, rate: 3/h }");
    let held: Vec<Decision> = (0..2).map(|_| check(&limiter)).collect();
    for _ in 0..5 {
        assert_eq!(check(&limiter).limit(), Some("jobs"));
    }
    drop(held);
    assert_eq!(room(&limiter), 1, "one is left of three");
    for _ in 0..5 {
        assert_eq!(check(&limiter).limit(), Some("all"));
    }
    let free = limiter.check_now(&Request::new().cost(0)).unwrap();
    let remaining: Vec<u64> = free.applied().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [2, 0]);
}

#[test]
fn a_limit_in_shadow_mode_holds_permits_and_refuses_nothing() {
    let (limiter, _clock) = limiter("{ name: jobs, concurrent: 1, mode: shadow }");
    let first = check(&limiter);
    let second = check(&limiter);
    let would: Vec<&str> = second.shadow_refusals().map(|it| it.limit()).collect();
    assert!(second.is_allowed() && would == ["jobs"]);
    drop(second);
    assert_eq!(
        check(&limiter).shadow_refusals().count(),
        1,
        "one holds it still"
    );
    drop(first);
    assert_eq!(check(&limiter).shadow_refusals().count(), 0);
}

#[test]
fn only_the_first_limit_that_matches_holds_a_permit() {
    let limits = "evaluate: first, limits: [{ name: ann, match: { attributes: { a: b } }, concurrent: 1 }, \
                  { name: rest, concurrent: 1 }]";
    let (limiter, _clock) = limiter_of(&policy(limits));
    let attributes = [("a", "b")];
    let ann = Request::new().attributes(&attributes);
    let first = limiter.check_now(&ann).unwrap();
    let rest = check(&limiter);
    assert_eq!((first.limit(), rest.limit()), (Some("ann"), Some("rest")));
    assert!(!limiter.check_now(&ann).unwrap().is_allowed());
    drop(first);
    assert!(limiter.check_now(&ann).unwrap().is_allowed());
    assert!(!check(&limiter).is_allowed());
}

/// Limits that are decided separately count a request that another one refuses. It is not in flight.
#[test]
fn a_limit_decided_separately_does_not_keep_the_permit_of_a_refused_request() {
    let limits =
        "evaluate: each, limits: [{ name: jobs, concurrent: 1 }, { name: all, rate: 2/h }]";
    let (limiter, _clock) = limiter_of(&policy(limits));
    for allowed in [true, true, false, false] {
        let decision = check(&limiter);
        assert_eq!(decision.is_allowed(), allowed);
        let named = if allowed { "jobs" } else { "all" };
        assert_eq!(decision.limit(), Some(named), "its permit is free");
    }
}

#[test]
fn a_reload_with_a_lower_number_takes_nothing_away() {
    let (limiter, _clock) = limiter("{ name: jobs, concurrent: 4 }");
    let mut held: Vec<Decision> = (0..4).map(|_| check(&limiter)).collect();
    let lower = Config::from_yaml(&policy("limits: [{ name: jobs, concurrent: 2 }]")).unwrap();
    limiter.reload(lower).unwrap();
    assert!(held.iter().all(|it| it.permit().is_some()));
    for free in [0, 0, 0, 1] {
        assert_eq!(room(&limiter), free);
        held.pop();
    }
    assert_eq!(room(&limiter), 2);
}

/// A test, a report and a cost of 0 are not in flight, and no caller releases permits of others.
#[test]
fn only_requests_that_pass_hold_permits() {
    let (limiter, _clock) =
        limiter("{ name: jobs, concurrent: 1, match: { descriptor: { k: v } } }");
    let entries = [("k", "v")];
    let of = |hits| {
        [Descriptor {
            entries: &entries,
            hits,
            limit: None,
        }]
    };
    let one = of(DescriptorHits::AsRequest);
    let request = Request::new().descriptors(&one);
    let mut kept = vec![
        block_on(limiter.report(&request)).unwrap(),
        block_on(limiter.test(&request)).unwrap(),
        limiter.check_now(&request.cost(0)).unwrap(),
    ];
    assert!(
        kept.iter()
            .all(|it| it.is_allowed() && it.permit().is_none())
    );
    kept.push(limiter.check_now(&request).unwrap());
    let back = of(DescriptorHits::GiveBack(1));
    limiter
        .check_now(&Request::new().descriptors(&back))
        .unwrap();
    assert!(!limiter.check_now(&request).unwrap().is_allowed());
    assert!(!block_on(limiter.test(&request)).unwrap().is_allowed());
}

/// A caller that does not see the end of its request holds the permit for the limit's time.
#[test]
fn without_an_end_a_permit_is_held_for_its_time() {
    let (limiter, clock) = limiter("{ name: jobs, concurrent: 2, hold: 10s }");
    let request = Request::new().permit(&PermitTerm::HOLD);
    for _ in 0..2 {
        let decision = limiter.check_now(&request).unwrap();
        assert!(decision.is_allowed() && decision.permit().is_none());
        clock.advance_micros(4_000_000);
    }
    let refused = limiter.check_now(&request).unwrap();
    let retry_after = refused.binding().and_then(|it| it.retry_after());
    assert_eq!(retry_after, Some(Duration::from_secs(2)));
    clock.advance_micros(2_000_000);
    assert_eq!(room(&limiter), 1);
    clock.advance_micros(4_000_000);
    assert_eq!(room(&limiter), 2);
}

#[test]
fn settings_of_rates_are_errors_in_code() {
    for spec in [
        LimitSpec::new("a").concurrent(1).band("1/s"),
        LimitSpec::new("a").concurrent(1).unit("tokens"),
        LimitSpec::new("a")
            .concurrent(1)
            .block(Duration::from_secs(1)),
        LimitSpec::new("a").concurrent(1).hold(Duration::ZERO),
        LimitSpec::new("a").band("1/s").hold(Duration::from_secs(1)),
        LimitSpec::new("a").concurrent(u64::MAX),
    ] {
        let built = Limiter::builder().limit(spec.clone()).build();
        assert!(matches!(built, Err(BuildError::Limit { .. })), "{spec:?}");
    }
}

/// Cost is the number of permits, and one that is larger than the limit never passes.
#[test]
fn a_request_may_take_several_permits() {
    let (limiter, _clock) = limiter("{ name: jobs, concurrent: 5 }");
    let take = |cost| limiter.check_now(&Request::new().cost(cost)).unwrap();
    let three = take(3);
    assert!(three.is_allowed() && !take(3).is_allowed());
    let never = take(6);
    assert_eq!(never.binding().and_then(|it| it.retry_after()), None);
    drop(three);
    assert!(take(5).is_allowed());
}
