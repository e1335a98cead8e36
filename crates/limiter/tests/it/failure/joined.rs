//! Joined policies on a store that needs several steps: all users of a bucket must count in it the same way.

use super::{CuttableStore, Instance, clock, config};
use tidegate::Rules;
use tidegate_core::Atomicity;

/// `a` and `b` have the same key, and `c` another; `d` is joined with nothing.
const JOINED: &str = "
routes:
  - { name: near, match: { path: /near }, upstreams: 'http://a', policy: [a, b] }
  - { name: far, match: { path: /far }, upstreams: 'http://a', policy: [b, c] }
  - { name: rest, upstreams: 'http://a', policy: d }
policies:
  - { name: a, limits: [{ name: x, key: user, rate: 9/h }] }
  - { name: b, limits: [{ name: y, key: user, bands: [9/h, 9/min] }] }
  - { name: c, limits: [{ name: z, rate: 9/h }] }
  - { name: d, limits: [{ name: v, key: user, rate: 9/h }, { name: w, key: user, rate: 9/h }] }
";

/// Returns the same without routes.
fn apart() -> String {
    let (_, policies) = JOINED.split_once("policies:").expect("there are policies");
    format!("policies:{policies}")
}

fn instance(keeps_policies: bool, yaml: &str) -> Instance {
    let clock = clock();
    let mut store = CuttableStore::new(&clock);
    store.atomicity = if keeps_policies {
        Atomicity::PerPolicy
    } else {
        Atomicity::PerSubject
    };
    Instance::over(store, clock, yaml)
}

/// Returns the limits of a policy all of whose bands are refundable.
fn refundable(rules: &Rules, policy: &str) -> Vec<String> {
    let limits = rules
        .policy(Some(policy))
        .expect("it is there")
        .limits
        .iter();
    let refundable = limits.filter(|limit| limit.bands.iter().all(|it| it.quota.is_refundable()));
    refundable.map(|limit| limit.name.clone()).collect()
}

#[test]
fn a_limit_counts_alike_in_its_policy_and_in_joined_ones() {
    let instance = instance(false, JOINED);
    let rules = instance.limiter.rules().unwrap();
    // Only `b+c` spans groups; that `b` is also in `a+b` does not affect `a`.
    for (policy, expected) in [
        ("a", vec![]),
        ("b", vec!["y"]),
        ("c", vec!["z"]),
        ("d", vec![]),
        ("a+b", vec!["y"]),
        ("b+c", vec!["y", "z"]),
    ] {
        assert_eq!(refundable(&rules, policy), expected, "{policy}");
    }
}

#[test]
fn policies_grouped_by_name_are_in_separate_slots_when_joined() {
    let instance = instance(true, JOINED);
    let rules = instance.limiter.rules().unwrap();
    for (policy, expected) in [
        ("a", vec!["x"]),
        ("b", vec!["y"]),
        ("c", vec!["z"]),
        ("d", vec![]),
        ("a+b", vec!["x", "y"]),
        ("b+c", vec!["y", "z"]),
    ] {
        assert_eq!(refundable(&rules, policy), expected, "{policy}");
    }
}

#[test]
fn policies_that_are_no_longer_joined_count_separately() {
    let instance = instance(false, JOINED);
    instance.limiter.reload(config(&apart())).unwrap();
    let rules = instance.limiter.rules().unwrap();
    for policy in ["a", "b", "c", "d"] {
        assert_eq!(refundable(&rules, policy), [""; 0], "{policy}");
    }
    instance.limiter.reload(config(JOINED)).unwrap();
    let rules = instance.limiter.rules().unwrap();
    assert_eq!(refundable(&rules, "b"), ["y"]);
}
