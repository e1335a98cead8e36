//! Costs that calls state, before a request and after it.

use crate::kit::{Buckets, Call, Code, Pair, within_an_hour};
use crate::random::dice::Dice;

/// Amounts are odd and costs even, so that no counter is ever exactly at its limit: that is a
/// documented difference.
const CONFIG: &str = "domain: spent
descriptors:
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 1001 } }
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 3001 } }
";

const CALLS: usize = 600;

#[test]
fn costs_known_after_the_response_stop_a_client_alike() {
    compare(Buckets::InMemory, compare_flow);
    compare(Buckets::InRedis, compare_flow);
}

#[test]
fn calls_of_any_cost_are_decided_alike() {
    compare(Buckets::InMemory, compare_any);
    compare(Buckets::InRedis, compare_any);
}

fn compare(buckets: Buckets, calls: fn(&Pair) -> Vec<String>) {
    within_an_hour(|redis| {
        let files = [("spent".to_owned(), CONFIG.to_owned())];
        let pair = Pair::start((redis, buckets), &files);
        pair.as_ref().map(calls).unwrap_or_default()
    });
}

/// `hits_addend: 0` before each request and 600 after it: two of six pass.
fn compare_flow(pair: &Pair) -> Vec<String> {
    let mut differences = Vec::new();
    let mut passed = [0, 0];
    for _ in 0..6 {
        let before = pair.ask(&call(&["user=flow"], Some(0)));
        for (passed, answer) in passed.iter_mut().zip(&before) {
            *passed += usize::from(answer.overall == Code::Ok);
        }
        if before.iter().any(|answer| answer.overall == Code::Ok) {
            pair.ask(&call(&["user=flow"], Some(600)));
        }
    }
    if passed != [2, 2] {
        differences.push(format!("{passed:?} of 6 passed"));
    }
    differences
}

/// Random costs, of one limit and of two at once, decided separately.
fn compare_any(pair: &Pair) -> Vec<String> {
    let mut dice = Dice::new(20_261_117);
    let mut differences = Vec::new();
    let mut refused = 0;
    for nth in 0..CALLS {
        let user = format!("user={}", dice.below(25));
        let tenant = format!("tenant={}", dice.below(12));
        let descriptors: &[&str] = match dice.below(3) {
            0 => &[&user],
            1 => &[&tenant],
            _ => &[&user, &tenant],
        };
        let hits = dice.below(5) * dice.below(120) * 2;
        let call = call(descriptors, Some(hits));
        let [theirs, ours] = pair.ask(&call);
        refused += usize::from(theirs.overall == Code::Over);
        if !theirs.is_also(&ours) {
            differences.push(format!(
                "{nth} {call:?}\ntheirs {theirs:?}\nours   {ours:?}"
            ));
        }
    }
    // A check that the comparison covered both results.
    assert!((CALLS / 5..CALLS * 4 / 5).contains(&refused), "{refused}");
    differences
}

fn call(descriptors: &[&str], hits: Option<u64>) -> Call {
    let entry = |text: &&str| {
        let (key, value) = text.split_once('=').unwrap();
        vec![(key.to_owned(), value.to_owned())]
    };
    Call {
        domain: "spent".to_owned(),
        descriptors: descriptors.iter().map(entry).collect(),
        hits,
    }
}
