//! The hits of every limit that a request matches.

use crate::failure::Instance;
use tidegate::{Decision, Descriptor, DescriptorHits, Limiter, Request, ToldLimit};
use tidegate_testkit::laws::block_on;

fn limiter(policy: &str) -> Limiter {
    Limiter::from_yaml(&format!("policies: [{{ name: api, {policy} }}]")).expect("a limiter")
}

/// Returns the hits of each limit, as `limit result hits`, with `near N` and `shadow` where they apply.
fn told(decision: &Decision, request: &Request<'_>) -> Vec<String> {
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
    told(&limiter.check_now(request).expect("a decision"), request)
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
fn a_request_that_met_two_limits_was_counted_for_one_of_them_and_its_four_hits_as_one() {
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
fn shadow_limits_are_counted_by_what_they_would_have_done() {
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
fn limits_that_are_evaluated_separately_are_charged_whatever_others_decide() {
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
fn charges_that_are_made_although_another_limit_refuses_are_counted_as_allowed() {
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

fn descriptor<'a>(entries: &'a [(&'a str, &'a str)], hits: DescriptorHits) -> Descriptor<'a> {
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
        limit: Some(ToldLimit {
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
        told(reserved.decision(), &request),
        ["small refused 6", "large not_charged 6"],
        "an estimate is charged only if it fits"
    );
    let tested = block_on(limiter.test(&request)).unwrap();
    assert!(told(&tested, &request).is_empty());
    let reported = block_on(limiter.report(&request)).unwrap();
    assert_eq!(
        told(&reported, &request),
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
    let ask = || told(&instance.ask_for(8), &request);
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
    assert_eq!(told(&instance.ask_for(8), &request), ["x allowed 8"]);
}

#[test]
fn a_refusal_because_the_store_is_unknown_is_counted() {
    let instance = Instance::new(
        "{policies: [{name: a, limits: [{name: x, rate: 100/h, on_failure: deny}]}]}",
    );
    instance.store.cut();
    let request = Request::new().cost(3);
    assert_eq!(told(&instance.ask_for(3), &request), ["x refused 3"]);
}
