//! Groups of limits that share a hash slot.

use tidegate_config::{Config, NoEnvironment};
use tidegate_policy::{Policy, SlotTag};

fn policy(text: &str) -> Policy {
    policy_in("layout: packed", text)
}

fn policy_in(store: &str, text: &str) -> Policy {
    let text = format!(
        "store: {{ url: \"redis://a,b\", redis: {{ {store} }} }}\npolicies: [{{ name: p, {text} }}]"
    );
    let config = Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
    config.policies.into_iter().next().unwrap()
}

#[test]
fn the_same_key_is_one_group() {
    let policy = policy(
        "limits: [{ name: a, key: ip, rate: 1/s }, { name: b, key: user, rate: 1/s },
        { name: c, key: [ip], rate: 1/h, missing: skip }, { name: d, mode: off, key: path, rate: 1/s }]",
    );
    let groups = policy.groups(SlotTag::Subject);
    let [ip, user] = groups.as_slice() else {
        panic!("{groups:?}")
    };
    assert_eq!(
        (ip.by.as_str(), ip.limits.as_slice()),
        ("ip", [0, 2].as_slice())
    );
    assert_eq!(
        (user.by.as_str(), user.limits.as_slice()),
        ("user", [1].as_slice())
    );
    assert!(policy.spans_groups(SlotTag::Subject));
    assert!(!policy.spans_groups(SlotTag::Policy));
    assert_eq!(policy.groups(SlotTag::Policy).len(), 1);
}

#[test]
fn the_order_of_a_key_matters() {
    let policy = policy(
        "limits: [{ name: a, key: [ip, user], rate: 1/s }, { name: b, key: [user, ip], rate: 1/s }]",
    );
    assert_eq!(policy.groups_at_most(SlotTag::Subject), 2);
}

#[test]
fn with_evaluate_first_only_shadow_limits_join_the_group() {
    for (limits, most) in [
        (
            "{ name: a, key: ip, match: { path: /a }, rate: 1/s }, { name: b, key: user, rate: 1/s }",
            1,
        ),
        (
            "{ name: a, key: ip, mode: shadow, rate: 1/s }, { name: b, key: user, rate: 1/s }",
            2,
        ),
        (
            "{ name: a, key: ip, mode: shadow, rate: 1/s }, { name: b, key: ip, rate: 1/s }",
            1,
        ),
        (
            "{ name: b, key: user, rate: 1/s }, { name: a, key: ip, mode: shadow, rate: 1/s }",
            1,
        ),
        (
            "{ name: a, key: ip, mode: shadow, rate: 1/s }, { name: b, key: user, mode: shadow, rate: 1/s }",
            2,
        ),
        (
            "{ name: b, key: user, missing: skip, rate: 1/s }, { name: a, key: ip, mode: shadow, rate: 1/s }, { name: c, key: host, rate: 1/s }",
            2,
        ),
    ] {
        let policy = policy(&format!("evaluate: first, limits: [{limits}]"));
        assert_eq!(policy.groups_at_most(SlotTag::Subject), most, "{limits}");
    }
}

#[test]
fn descriptors_may_span_any_number_of_groups() {
    for (limits, subject, policy_tag) in [
        // One limit, matched by several descriptors, each in its own bucket.
        (
            "{ name: a, match: { descriptor: [u] }, key: descriptor:u, rate: 1/s }",
            true,
            false,
        ),
        // Limits that descriptors carry are separate from all configured limits.
        (
            "{ name: a, match: { descriptor: [u] }, rate: 1/s }",
            true,
            false,
        ),
        ("{ name: a, key: ip, rate: 1/s }", false, false),
    ] {
        let policy = policy(&format!("limits: [{limits}]"));
        assert_eq!(policy.spans_groups(SlotTag::Subject), subject, "{limits}");
        assert_eq!(policy.spans_groups(SlotTag::Policy), policy_tag, "{limits}");
    }
    let domain = policy("domain: d, limits: [{ name: a, key: ip, rate: 1/s }]");
    assert!(domain.spans_groups(SlotTag::Subject));
}

#[test]
fn policies_that_envoy_can_query_span_groups() {
    let text = "listen: { grpc: '127.0.0.1:1' }\npolicies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";
    let config = Config::parse(text, "x", &NoEnvironment).unwrap();
    assert!(config.policies[0].spans_groups(SlotTag::Subject));
}

#[test]
fn limits_evaluated_separately_are_separate_groups() {
    let policy = policy(
        "evaluate: each, limits: [{ name: a, match: { descriptor: [u] }, key: descriptor, rate: 1/s },
        { name: b, key: user, rate: 1/s }]",
    );
    assert!(!policy.spans_groups(SlotTag::Subject));
    assert_eq!(policy.groups(SlotTag::Subject).len(), 2);
}

#[test]
fn unlimited_limits_are_in_no_group() {
    let policy = policy(
        "evaluate: first, limits: [{ name: a, match: { path: /x }, rate: unlimited }, { name: b, key: user, rate: 1/s }]",
    );
    assert_eq!(policy.groups(SlotTag::Subject).len(), 1);
    assert!(!policy.spans_groups(SlotTag::Subject));
}

#[test]
fn in_the_open_layout_a_tag_groups_descriptors() {
    let limits = "limits: [{ name: a, match: { descriptor: [u] }, key: descriptor:u, rate: 1/s }]";
    let together = policy_in(
        "layout: open, template: \"x:{{{policy}}}:{limit}:{key}\"",
        limits,
    );
    assert_eq!(together.groups(SlotTag::Policy).len(), 1);
    // The limit that a descriptor carries has a packed key, which is in another slot.
    assert!(together.spans_groups(SlotTag::Policy));
}

#[test]
fn in_the_open_layout_the_bucket_name_decides_the_group() {
    let bands = "bands: [{ rate: 1/s, label: s }, { rate: 1/h, label: h }]";
    let apart = policy_in(
        "layout: open",
        &format!("limits: [{{ name: a, key: ip, {bands} }}]"),
    );
    let groups = apart.groups(SlotTag::Policy);
    assert_eq!(groups[0].by, "ratelimit:p:a:<ip>:h");
    assert_eq!(groups[1].limits, [0]);
    assert!(apart.spans_groups(SlotTag::Policy));
    let together = policy_in(
        "layout: open, template: \"x:{{{key}}}:{limit}:{band}\"",
        &format!("limits: [{{ name: a, key: ip, {bands} }}, {{ name: b, key: ip, rate: 1/s }}]"),
    );
    assert!(!together.spans_groups(SlotTag::Subject));
}
