//! Matching of requests with descriptors: after the limits of the whole request, one descriptor after the
//! other, with limits that they carry, and without replaced limits.

use super::descriptor::{described, exactly, on};
use super::fixtures::{all, first, limit, limit_if, on_header, on_path};
use crate::matching::{DescriptorPattern, EntryPattern, KeyRules};
use crate::{
    Condition, Descriptor, DescriptorHits, Evaluate, KeyPart, Limit, LimitOverride,
    MissingIdentity, Policy, Request, Scratch,
};
use proptest::prelude::*;
use tidegate_core::LimitMode;

/// Returns `limit@descriptor` for all applicable limits, and `!limit` or `!limit@descriptor` for a refusal.
fn met(policy: &Policy, request: &Request<'_>) -> String {
    let mut scratch = Scratch::default();
    let meeting = policy.meet(request, &KeyRules::default(), &mut scratch);
    let tell = |limit: usize, descriptor: Option<u16>| {
        let name = &policy.limit(limit).unwrap().name;
        match descriptor {
            Some(number) => format!("{name}@{number}"),
            None => name.clone(),
        }
    };
    if let Some(refused) = meeting.refused {
        assert!(meeting.met.is_empty(), "a refusal meets nothing else");
        return format!("!{}", tell(refused.limit, refused.descriptor));
    }
    let names = meeting
        .met
        .iter()
        .map(|met| tell(met.limit, met.descriptor));
    names.collect::<Vec<_>>().join(" ")
}

/// Returns the buckets of all applicable limits.
fn buckets(policy: &Policy, descriptors: &[Descriptor<'_>]) -> Vec<String> {
    let mut scratch = Scratch::default();
    let request = Request::new().descriptors(descriptors);
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    let buckets = meeting.met.iter().map(|met| {
        let bucket = str::from_utf8(meeting.bucket(met)).unwrap();
        assert!(bucket.ends_with(meeting.subject(met)));
        assert!(
            bucket.bytes().all(|byte| byte.is_ascii_graphic()),
            "{bucket}"
        );
        bucket.to_owned()
    });
    buckets.collect()
}

fn holds(name: &str, entries: &[(&str, &str)]) -> Limit {
    let entries = entries.iter().map(|(k, v)| EntryPattern::new(*k, v));
    limit_if(
        name,
        Condition {
            descriptor: Some(DescriptorPattern::Holds(entries.collect())),
            ..Condition::default()
        },
    )
}

fn entry(name: &str, nth: Option<u8>) -> KeyPart {
    let name = name.to_owned();
    KeyPart::DescriptorEntry { name, nth }
}

fn keyed(key: &[KeyPart], limit: Limit) -> Limit {
    Limit {
        key: key.to_vec(),
        ..limit
    }
}

fn shadow(limit: Limit) -> Limit {
    Limit {
        mode: LimitMode::Shadow,
        ..limit
    }
}

fn replacing(replaces: &[usize], limit: Limit) -> Limit {
    Limit {
        replaces: replaces.to_vec(),
        ..limit
    }
}

#[test]
fn a_limit_without_descriptors_matches_once_for_the_whole_request() {
    let policy = all(vec![
        on("a", &[("a", "")]),
        limit("whole"),
        on("b", &[("b", "")]),
    ]);
    let descriptors = [
        described(&[("b", "1")]),
        described(&[("a", "1")]),
        described(&[("b", "2")]),
    ];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(met(&policy, &request), "whole b@0 a@1 b@2");
    assert_eq!(met(&policy, &Request::new()), "whole");
}

#[test]
fn other_conditions_apply_together_with_descriptor_entries() {
    let mut condition = exactly(&[("a", "")]);
    condition.path = on_path("/api/*/x").path;
    condition.headers = on_header("x-tier", "gold").headers;
    let policy = all(vec![
        limit_if("l", condition),
        limit_if("p", on_path("/api")),
    ]);
    let descriptors = [described(&[("a", "1")])];
    let request = Request::new().descriptors(&descriptors);
    let gold = [("X-Tier", "gold")];
    assert_eq!(met(&policy, &request), "");
    assert_eq!(met(&policy, &request.headers(&gold)), "");
    assert_eq!(met(&policy, &request.path("/api/1/x")), "p");
    let whole = request.path("/api/1/x/y").headers(&gold);
    assert_eq!(met(&policy, &whole), "p l@0");
    assert_eq!(met(&policy, &whole.path("/api/1")), "p");
}

#[test]
fn a_limit_with_two_matching_conditions_matches_once() {
    let policy = all(vec![Limit {
        conditions: vec![
            exactly(&[("a", "")]),
            exactly(&[("a", "")]),
            exactly(&[("b", "")]),
        ],
        ..limit("l")
    }]);
    let descriptors = [described(&[("a", "1")]), described(&[("b", "1")])];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(met(&policy, &request), "l@0 l@1");
}

#[test]
fn entries_in_any_order_match_once_by_the_first_descriptor() {
    let policy = all(vec![
        holds("l", &[("m", "POST"), ("u", "")]),
        holds("star", &[("m", "P*")]),
    ]);
    let descriptors = [
        described(&[("m", "PUT"), ("u", "1")]),
        described(&[("u", "1"), ("x", ""), ("m", "POST")]),
        described(&[("m", "POST"), ("u", "2")]),
    ];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(met(&policy, &request), "l@1 star@0");
    assert_eq!(met(&policy, &Request::new()), "");
}

#[test]
fn the_first_enforced_limit_decides_for_each_descriptor_and_for_the_whole() {
    let policy = first(vec![
        shadow(on("watch", &[("a", "")])),
        on("one", &[("a", "")]),
        on("two", &[("a", "")]),
        limit("whole"),
        limit("never"),
        on("b", &[("b", "")]),
    ]);
    let descriptors = [described(&[("a", "1")]), described(&[("b", "1")])];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(met(&policy, &request), "whole watch@0 one@0 b@1");
}

#[test]
fn replaced_limits_are_left_out_wherever_they_matched() {
    let policy = all(vec![
        on("small", &[("u", "")]),
        limit("whole"),
        replacing(&[0, 1], on("big", &[("t", "gold")])),
    ]);
    let small = described(&[("u", "1")]);
    let big = described(&[("t", "gold")]);
    let both = [small, big];
    assert_eq!(met(&policy, &Request::new().descriptors(&both)), "big@1");
    let alone = [small];
    assert_eq!(
        met(&policy, &Request::new().descriptors(&alone)),
        "whole small@0"
    );
}

#[test]
fn limits_that_replace_each_other_are_both_left_out() {
    let policy = all(vec![
        replacing(&[1], on("a", &[("a", "")])),
        replacing(&[0], on("b", &[("b", "")])),
    ]);
    let (a, b) = (described(&[("a", "")]), described(&[("b", "")]));
    assert_eq!(met(&policy, &Request::new().descriptors(&[a, b])), "");
    assert_eq!(met(&policy, &Request::new().descriptors(&[a])), "a@0");
}

#[test]
fn a_replaced_limit_still_replaces_others() {
    let policy = all(vec![
        on("a", &[("a", "")]),
        replacing(&[0], on("b", &[("b", "")])),
        replacing(&[1], on("c", &[("c", "")])),
    ]);
    let descriptors = [
        described(&[("a", "")]),
        described(&[("b", "")]),
        described(&[("c", "")]),
    ];
    assert_eq!(
        met(&policy, &Request::new().descriptors(&descriptors)),
        "c@2"
    );
}

#[test]
fn a_replaced_limit_does_not_refuse_a_missing_identity() {
    let strict = Limit {
        missing: MissingIdentity::Refuse,
        ..keyed(&[KeyPart::User], limit("strict"))
    };
    let free = Limit {
        bands: Vec::new(),
        ..replacing(&[0], on("free", &[("tier", "free")]))
    };
    let policy = all(vec![strict, free]);
    let descriptors = [described(&[("tier", "free")])];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(met(&policy, &request), "free@0");
    assert_eq!(met(&policy, &Request::new()), "!strict");
}

#[test]
fn a_missing_identity_names_its_descriptor() {
    let strict = |limit: Limit| Limit {
        missing: MissingIdentity::Refuse,
        ..keyed(&[KeyPart::User], limit)
    };
    let policy = all(vec![
        strict(on("exact", &[("a", "")])),
        strict(holds("held", &[("b", "")])),
        limit_if("any", Condition::default()),
    ]);
    let (other, exact) = (described(&[("x", "")]), described(&[("a", "")]));
    let held = described(&[("b", ""), ("y", "")]);
    let ask = |descriptors: &[Descriptor<'_>]| {
        let request = Request::new().descriptors(descriptors);
        (met(&policy, &request), met(&policy, &request.user("ann")))
    };
    let expected = |refused: &str, met: &str| (refused.to_owned(), met.to_owned());
    assert_eq!(ask(&[other, exact]), expected("!exact@1", "any exact@1"));
    assert_eq!(
        ask(&[other, other, held]),
        expected("!held@2", "held@2 any")
    );
    // Of several refusals the first is reported: the request as a whole comes before its descriptors.
    assert_eq!(
        ask(&[exact, held]),
        expected("!held@1", "held@1 any exact@0")
    );
}

#[test]
fn joined_policies_replace_limits_only_within_themselves() {
    let one = all(vec![limit("a")]);
    let two = Policy::new(
        "q".to_owned(),
        Evaluate::All,
        vec![limit("b"), replacing(&[0], limit("c"))],
    );
    let joined = Policy::joined(&[&one, &two]).unwrap();
    assert_eq!(met(&joined, &Request::new()), "a c");
}

#[test]
fn a_limit_of_a_descriptor_replaces_the_configured_tree() {
    let told = LimitOverride {
        amount: 3,
        period_us: 1_000_000,
    };
    let with_limit = Descriptor {
        limit: Some(told),
        ..described(&[("a", "x/y"), ("b", "")])
    };
    let policy = all(vec![
        on("tree", &[("a", ""), ("b", "")]),
        holds("map", &[("a", "")]),
        limit("whole"),
    ]);
    let descriptors = [with_limit, described(&[("a", "1"), ("b", "2")])];
    let request = Request::new().descriptors(&descriptors);
    assert_eq!(met(&policy, &request), "map@0 whole override@0 tree@1");
    assert_eq!(
        buckets(&policy, &descriptors[..1])[2],
        "p/override/descriptor:a=x%2Fy&b="
    );
    assert_eq!(policy.limit(3).unwrap().name, Policy::override_name());
    assert!(policy.limit(4).is_none());

    let other = LimitOverride { amount: 4, ..told };
    let (band, other) = (
        policy.override_band(told).unwrap(),
        policy.override_band(other).unwrap(),
    );
    assert_ne!(band.quota.id(), other.quota.id(), "they are counted apart");
    assert_eq!(
        (band.quota.amount(), band.quota.period_us()),
        (3, 1_000_000)
    );
    assert_eq!(policy.override_header_names(&band).name(), "override");
    let endless = LimitOverride {
        period_us: u64::MAX,
        ..told
    };
    assert!(
        policy
            .override_band(endless)
            .unwrap_err()
            .contains("period")
    );
}

#[test]
fn the_key_of_an_entry_is_its_value() {
    let policy = all(vec![keyed(
        &[entry("to", None)],
        on("l", &[("kind", "sms"), ("to", "")]),
    )]);
    let of = |to: &str| buckets(&policy, &[described(&[("kind", "sms"), ("to", to)])]);
    assert_eq!(of("1"), ["p/l/descriptor.to:1"]);
    assert_eq!(of("a,b:c~"), ["p/l/descriptor.to:a%2Cb%3Ac~"]);
    assert_eq!(of(""), ["p/l/descriptor.to~unknown"], "as good as absent");
    let long = "x".repeat(65);
    assert!(
        of(&long)[0].starts_with("p/l/descriptor.to:#"),
        "{:?}",
        of(&long)
    );
}

#[test]
fn duplicate_entry_names_match_only_by_position() {
    let descriptor = [described(&[("hop", "a"), ("hop", "b")])];
    let list = &[("hop", ""), ("hop", "")];
    let policy = all(vec![
        keyed(&[entry("hop", None)], on("none", list)),
        keyed(&[entry("hop", Some(1))], on("one", list)),
        keyed(&[entry("hop", Some(2))], on("two", list)),
    ]);
    assert_eq!(
        buckets(&policy, &descriptor),
        [
            "p/none/descriptor.hop~unknown",
            "p/one/descriptor.hop%231:a",
            "p/two/descriptor.hop%232:b",
        ]
    );
}

#[test]
fn no_two_descriptors_share_a_bucket() {
    let policy = all(vec![keyed(
        &[KeyPart::Descriptor],
        holds("l", &[("a", "")]),
    )]);
    let of = |entries: &[(&str, &str)]| buckets(&policy, &[described(entries)]).remove(0);
    assert_eq!(of(&[("a", "1"), ("b", "2")]), "p/l/descriptor:a=1&b=2");
    let descriptors: [&[(&str, &str)]; 6] = [
        &[("a", "1"), ("b", "2")],
        &[("a", "1&b=2")],
        &[("a", "1"), ("b", ""), ("2", "")],
        &[("b", "2"), ("a", "1")],
        &[("a", "1"), ("b", "2"), ("", "")],
        &[("a", "1"), ("b", "2,ip:1")],
    ];
    let mut names: Vec<String> = descriptors.iter().map(|it| of(it)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), descriptors.len(), "{names:?}");
}

#[test]
fn secret_and_long_descriptors_are_hashed() {
    let by = |limit: Limit| all(vec![keyed(&[KeyPart::Descriptor], limit)]);
    let list = by(on("l", &[("api_key", "")]));
    let map = by(holds("l", &[("user", "")]));
    for (policy, entries) in [
        (&list, &[("api_key", "hunter2")][..]),
        (&map, &[("user", "ann"), ("X-Auth-Token", "hunter2")]),
    ] {
        let name = buckets(policy, &[described(entries)]).remove(0);
        assert!(name.starts_with("p/l/descriptor:#"), "{name}");
        assert!(!name.contains("hunter2") && !name.contains("ann"), "{name}");
    }
    let long = "x".repeat(200);
    let name = buckets(&map, &[described(&[("user", &long)])]).remove(0);
    assert_eq!(name.len(), "p/l/descriptor:#".len() + 32);
    let secret = all(vec![keyed(
        &[entry("session", None)],
        on("l", &[("session", "")]),
    )]);
    let name = buckets(&secret, &[described(&[("session", "hunter2")])]).remove(0);
    assert!(name.starts_with("p/l/descriptor.session:#"), "{name}");
}

#[test]
fn huge_costs_and_counts_are_handled() {
    let policy = all(vec![on("l", &[("a", "")])]);
    let one = Descriptor {
        hits: DescriptorHits::Take(0),
        ..described(&[("a", "1")])
    };
    let many = vec![one; usize::from(u16::MAX) + 3];
    let mut scratch = Scratch::default();
    let request = Request::new().descriptors(&many);
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    assert_eq!(meeting.met.len(), usize::from(u16::MAX) + 1);
}

/// Entries made of the characters that keys use.
fn entries() -> impl Strategy<Value = Vec<(String, String)>> {
    let text = || {
        let pieces = ["a", "&", "=", ",", ":", "%26", "#", "~", "/", "é"];
        let pieces = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..4);
        pieces.prop_map(|pieces| pieces.concat())
    };
    prop::collection::vec((text(), text()), 1..4)
}

proptest! {
    #[test]
    fn descriptors_share_a_bucket_only_if_they_are_the_same(one in entries(), other in entries()) {
        let told = LimitOverride { amount: 1, period_us: 1_000_000 };
        let policy = all(Vec::new());
        let of = |entries: &[(String, String)]| {
            let entries = entries.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let entries: Vec<(&str, &str)> = entries.collect();
            let descriptor = Descriptor { limit: Some(told), ..described(&entries) };
            buckets(&policy, &[descriptor])
        };
        prop_assert_eq!(of(&one) == of(&other), one == other);
    }
}
