//! The hits of every limit that a request matches.

use crate::failure::Instance;
use tidegate::{Decision, Descriptor, DescriptorHits, LimitOverride, Limiter, Request};
use tidegate_testkit::laws::block_on;

fn limiter(policy: &str) -> Limiter {
    Limiter::from_yaml(&format!("policies: [{{ name: api, {policy} }}]")).expect("a limiter")
}

/// Returns the hits of each limit, as `limit result hits`, with `near N` and `shadow` where they apply.
fn lines_of(decision: &Decision, request: &Request<'_>) -> Vec<String> {
    let hits = decision.limit_hits(request).map(|it| {
        let near = match it.near {
            0 => String::new(),
            near => format!(" near {near}"),
        };
        let shadow = if it.is_shadow { " shadow" } else { "" };
        format!(
            "{} {} {}{near}{shadow}",
            it.limit,
            it.result.as_str(),
            it.hits
        )
    });
    hits.collect()
}

fn check(limiter: &Limiter, request: &Request<'_>) -> Vec<String> {
    lines_of(&limiter.check_now(request).expect("a decision"), request)
}

/// Sends one call per cost, and returns the hits of every limit after each.
fn calls(policy: &str, costs: &[u64]) -> Vec<Vec<String>> {
    let limiter = limiter(policy);
    let costs = costs.iter();
    costs
        .map(|cost| check(&limiter, &Request::new().cost(*cost)))
        .collect()
}

const TWO: &str = "limits: [{ name: small, rate: 5/h }, { name: large, rate: 100/h }]";

#[test]
fn a_request_on_two_limits_was_counted_once_and_as_one_hit() {
    assert_eq!(
        calls(TWO, &[4, 4, 1, 0]),
        [
            vec!["small allowed 4", "large allowed 4"],
            vec!["small refused 4", "large not_charged 4"],
            vec!["small allowed 1 near 1", "large allowed 1"],
            vec![],
        ]
    );
}

#[test]
fn a_limit_of_several_bands_is_counted_once_and_is_as_near_as_its_nearest_band() {
    let policy = "limits: [{ name: both, bands: [10/h, 12/day] }]";
    assert_eq!(
        calls(policy, &[6, 4, 1]),
        [
            ["both allowed 6"],
            ["both allowed 4 near 2"],
            ["both refused 1"]
        ]
    );
}

#[test]
fn shadow_limits_are_counted_by_their_hypothetical_outcome() {
    let policy = "limits: [{ name: real, rate: 10/h }, { name: soon, rate: 4/h, mode: shadow }]";
    assert_eq!(
        calls(policy, &[3, 3, 1, 4]),
        [
            ["real allowed 3", "soon allowed 3 shadow"],
            ["real allowed 3", "soon refused 3 shadow"],
            ["real allowed 1", "soon allowed 1 near 1 shadow"],
            ["real refused 4", "soon refused 4 shadow"],
        ]
    );
}

#[test]
fn separately_evaluated_limits_are_charged_independently() {
    let policy = "evaluate: each, \
                  limits: [{ name: small, rate: 5/h }, { name: large, rate: 100/h }]";
    assert_eq!(
        calls(policy, &[5, 4]),
        [
            ["small allowed 5 near 1", "large allowed 5"],
            ["small refused 4", "large allowed 4"],
        ]
    );
}

#[test]
fn only_the_limits_that_are_evaluated_are_counted() {
    let policy =
        "evaluate: first, limits: [{ name: first, rate: 9/h }, { name: second, rate: 9/h }]";
    assert_eq!(calls(policy, &[1]), [["first allowed 1"]]);
    let named = "limits: [{ name: all, rate: 9/h }, { name: named, key: user, missing: refuse, rate: 9/h }]";
    assert_eq!(calls(named, &[2]), [["named refused 2"]]);
    let free = "limits: [{ name: free, rate: unlimited }]";
    assert_eq!(calls(free, &[2]), [["free allowed 2"]]);
}

#[test]
fn charges_made_despite_another_refusal_are_counted_as_allowed() {
    let spent = "charge: even-if-refused, \
                 limits: [{ name: small, rate: 5/h }, { name: large, rate: 100/h }]";
    assert_eq!(
        calls(spent, &[6]),
        [["small refused 6", "large allowed 6"]],
        "a stated cost is charged all the same"
    );
    let mixed =
        "limits: [{ name: strict, rate: 5/h }, { name: always, charge: always, rate: 100/h }]";
    assert_eq!(
        calls(mixed, &[6]),
        [["strict refused 6", "always not_charged 6"]],
        "nothing was charged"
    );
}

fn descriptor<'a>(entries: &'a [(&'a str, &'a str)], hits: DescriptorHits<'a>) -> Descriptor<'a> {
    Descriptor {
        entries,
        hits,
        limit: None,
    }
}

#[test]
fn each_descriptor_is_counted_with_its_own_hits() {
    let limiter = limiter(
        "evaluate: each, limits: [\
         { name: user, match: { descriptor: [user] }, key: descriptor:user, rate: 10/h },\
         { name: path, match: { descriptor: [path] }, rate: 10/h }]",
    );
    let brought = Descriptor {
        limit: Some(LimitOverride {
            amount: 5,
            period_us: 3_600_000_000,
        }),
        ..descriptor(&[("plan", "gold")], DescriptorHits::Take(5))
    };
    let descriptors = [
        descriptor(&[("user", "ann")], DescriptorHits::Take(9)),
        descriptor(&[("user", "bob")], DescriptorHits::AsRequest),
        descriptor(&[("path", "/")], DescriptorHits::Take(0)),
        descriptor(&[("path", "/")], DescriptorHits::GiveBack(3)),
        descriptor(&[("nothing", "known")], DescriptorHits::Take(7)),
        brought,
    ];
    let request = Request::new().cost(2).descriptors(&descriptors);
    let mut hits = check(&limiter, &request);
    hits.sort();
    assert_eq!(
        hits,
        [
            "override allowed 5 near 1",
            "user allowed 2",
            "user allowed 9 near 1"
        ]
    );
}

#[test]
fn reservations_count_their_estimate_and_tests_count_nothing() {
    let limiter = limiter(
        "reserve: 60s, charge: always, limits: [{ name: small, rate: 5/h }, { name: large, rate: 99/h }]",
    );
    let request = Request::new().cost(6);
    let reserved = block_on(limiter.reserve(&request, None)).unwrap();
    assert_eq!(
        lines_of(reserved.decision(), &request),
        ["small refused 6", "large not_charged 6"],
        "an estimate is charged only if it fits"
    );
    let tested = block_on(limiter.test(&request)).unwrap();
    assert!(lines_of(&tested, &request).is_empty());
    let reported = block_on(limiter.report(&request)).unwrap();
    assert_eq!(
        lines_of(&reported, &request),
        ["small allowed 6 near 1", "large allowed 6"]
    );
}

#[test]
fn hits_are_counted_without_the_store_as_with_it() {
    let instance = Instance::new(
        "{store: {local_share: 0.5}, policies: [{name: a, limits: [{name: x, rate: 100/h}, \
         {name: y, rate: 20/h}, {name: free, rate: 20/h, on_failure: allow}]}]}",
    );
    let request = Request::new().cost(8);
    let ask = || lines_of(&instance.ask_for(8), &request);
    assert_eq!(ask(), ["x allowed 8", "y allowed 8", "free allowed 8"]);
    instance.store.cut();
    // Local buckets start at the share of the remaining units: 6 of 12.
    assert_eq!(ask(), ["x not_charged 8", "y refused 8"]);
}

#[test]
fn hits_of_a_local_share_counted_as_near_though_most_of_the_limit_was_free() {
    let instance = Instance::new(
        "{store: {local_share: 0.5}, policies: [{name: a, limits: [{name: x, rate: 20/h}]}]}",
    );
    instance.store.cut();
    let request = Request::new().cost(8);
    assert_eq!(lines_of(&instance.ask_for(8), &request), ["x allowed 8"]);
}

#[test]
fn a_refusal_because_the_store_is_unknown_is_counted() {
    let instance = Instance::new(
        "{policies: [{name: a, limits: [{name: x, rate: 100/h, on_failure: deny}]}]}",
    );
    instance.store.cut();
    let request = Request::new().cost(3);
    assert_eq!(lines_of(&instance.ask_for(3), &request), ["x refused 3"]);
}

/// The overdraft cuts a charge to what is left, and the cost would be compared with a level that never was.
#[test]
fn a_cut_charge_crosses_a_warning_by_the_units_that_it_charged() {
    let limit = "name: all, rate: 10/h, algorithm: fixed-window, charge: always, warn: 80%";
    let limiter = limiter(&format!("limits: [{{ {limit} }}]"));
    let warned = |cost| {
        let decision = limiter.check_now(&Request::new().cost(cost)).unwrap();
        assert!(decision.is_allowed(), "one unit was left before");
        decision.warnings().count()
    };
    assert_eq!((warned(9), warned(20)), (1, 0));
}

/// The level below empty was unknown, and each charge of a bucket in debt seemed to cross the share again.
#[test]
fn an_overdrawn_bucket_warns_once_for_each_share() {
    for algorithm in [
        "token-bucket",
        "fixed-window",
        "sliding-window",
        "sliding-log",
    ] {
        let limit = format!(
            "name: all, rate: 10/h, algorithm: {algorithm}, charge: always, overdraft: 50, warn: [80%, 90%]"
        );
        let limiter = limiter(&format!("limits: [{{ {limit} }}]"));
        let reached = |decision: &Decision| {
            let warned = decision.warnings().map(|band| band.reached_share());
            warned.flatten().collect::<Vec<_>>()
        };
        let check = |cost| reached(&limiter.check_now(&Request::new().cost(cost)).unwrap());
        assert_eq!([check(8), check(1), check(9)], [vec![80], vec![90], vec![]]);
        let report = || reached(&block_on(limiter.report(&Request::new().cost(3))).unwrap());
        assert_eq!((report().len(), report().len()), (0, 0), "{algorithm}");
    }
}

/// It is charged all the same, and no later request would report the share.
#[test]
fn a_refused_request_that_is_charged_warns() {
    let limit =
        "name: all, rate: 10/h, algorithm: fixed-window, charge: even-if-refused, warn: 100%";
    let limiter = limiter(&format!("limits: [{{ {limit} }}]"));
    let warned = |cost| {
        let decision = limiter.check_now(&Request::new().cost(cost)).unwrap();
        let shares = decision.warnings().map(|band| band.reached_share());
        (decision.is_allowed(), shares.collect::<Vec<_>>())
    };
    assert_eq!(warned(9), (true, vec![]));
    assert_eq!(warned(5), (false, vec![Some(100)]));
    assert_eq!(warned(5), (false, vec![]));
}

#[test]
fn each_warning_names_its_own_bucket() {
    let window = "algorithm: fixed-window, warn: [50%, 100%]";
    let limiter = limiter(&format!(
        "limits: [{{ name: per-user, key: user, rate: 4/h, {window} }}, {{ name: all, rate: 2/h, {window} }}]"
    ));
    let warned = |cost| -> Vec<String> {
        let decision = limiter
            .check_now(&Request::new().user("ann").cost(cost))
            .unwrap();
        let bands = decision.warnings();
        bands
            .map(|band| format!("{} {} {:?}", band.limit(), band.key(), band.reached_share()))
            .collect()
    };
    assert_eq!(
        warned(2),
        ["per-user user:ann Some(50)", "all global Some(100)"],
        "of several shares the highest"
    );
}

#[test]
fn a_refused_request_counts_as_allowed_by_the_limits_that_it_charged() {
    let forced =
        "{ name: forced, rate: 9/h, charge: always }, { name: full, rate: 1/h, charge: always }";
    assert_eq!(
        calls(&format!("limits: [{forced}]"), &[1, 1]),
        [
            vec!["forced allowed 1", "full allowed 1 near 1"],
            vec!["forced allowed 1", "full refused 1"],
        ]
    );
    // A take that refuses keeps the forced charges back.
    let policy = format!("limits: [{forced}, {{ name: small, rate: 1/h }}]");
    let last = calls(&policy, &[1, 1]).pop().unwrap();
    assert_eq!(
        last,
        ["forced not_charged 1", "full refused 1", "small refused 1"]
    );
}
