//! A minimal reimplementation of envoyproxy/ratelimit's lookup, and random trees to compare with.
//!
//! The oracle shares only the trees with the translation: it walks them directly, and the
//! translation goes through text, reader and matcher.

use super::{imported, meant};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::Write;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::policy::Scratch;
use tidegate_policy::{Descriptor, DescriptorHits, Policy, Request};

/// A descriptor of a file, and its children.
#[derive(Clone, Debug)]
struct Tree {
    key: &'static str,
    value: Option<&'static str>,
    /// The amount per minute, if it has a limit; each has a different number.
    limit: Option<u32>,
    share: bool,
    below: Vec<Tree>,
}

/// The result for a descriptor: the number of the limit, and the name of its counter.
type CounterMatch = Option<(u32, String)>;

fn ask_oracle(trees: &[Tree], entries: &[(&str, &str)]) -> CounterMatch {
    let mut level = trees;
    let mut counter = String::new();
    for (at, (key, value)) in entries.iter().enumerate() {
        let same_key = || level.iter().filter(|tree| tree.key == *key);
        let exact = same_key().find(|tree| tree.value == Some(value));
        let is_like = |tree: &&Tree| tree.value.is_some_and(|pattern| like(pattern, value));
        let found = exact
            .or_else(|| same_key().find(is_like))
            .or_else(|| same_key().find(|tree| tree.value.is_none()))?;
        let shown = found.value.filter(|_| found.share).unwrap_or(value);
        write!(counter, "{key}={shown};").unwrap();
        if at + 1 == entries.len() {
            return found.limit.map(|limit| (limit, counter));
        }
        level = &found.below;
    }
    None
}

/// Returns true if a value matches a pattern: its prefix, its suffix, and the parts between them in
/// order, without overlap.
fn like(pattern: &str, value: &str) -> bool {
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return false;
    };
    let Some(rest) = value.strip_prefix(first) else {
        return false;
    };
    let Some(mut rest) = rest.strip_suffix(last) else {
        return false;
    };
    middle.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Returns the result of Tidegate's matcher after the translation.
fn ask_policy(policy: &Policy, entries: &[(&str, &str)]) -> CounterMatch {
    let descriptor = Descriptor {
        entries,
        hits: DescriptorHits::AsRequest,
        limit: None,
    };
    let descriptors = [descriptor];
    let mut request = Request::new();
    request.descriptors = &descriptors;
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    assert!(meeting.met.len() <= 1, "{entries:?} meets several limits");
    let met = meeting.met.first()?;
    // A limit without bands lets everything pass, like no limit.
    let band = policy.limits.get(met.limit)?.bands.first()?;
    let amount = u32::try_from(band.quota.capacity()).unwrap();
    let bucket = String::from_utf8_lossy(meeting.bucket(met));
    Some((amount, bucket.into_owned()))
}

fn write(trees: &[Tree], indent: usize, text: &mut String) {
    for tree in trees {
        let pad = " ".repeat(indent);
        writeln!(text, "{pad}- key: {}", tree.key).unwrap();
        if let Some(value) = tree.value {
            writeln!(text, "{pad}  value: \"{value}\"").unwrap();
        }
        if let Some(limit) = tree.limit {
            let rate = format!("{{ unit: minute, requests_per_unit: {limit} }}");
            writeln!(text, "{pad}  rate_limit: {rate}").unwrap();
        }
        if tree.share {
            writeln!(text, "{pad}  share_threshold: true").unwrap();
        }
        if !tree.below.is_empty() {
            writeln!(text, "{pad}  descriptors:").unwrap();
            write(&tree.below, indent + 4, text);
        }
    }
}

/// Removes what would be rejected: a repeated key and value in a list, and sharing without a
/// pattern. Numbers the limits.
fn settle(trees: &mut Vec<Tree>, number: &mut u32) {
    let mut seen = Vec::new();
    trees.retain(|tree| {
        let is_new = !seen.contains(&(tree.key, tree.value));
        seen.push((tree.key, tree.value));
        is_new
    });
    for tree in trees {
        tree.share &= tree.value.is_some_and(|value| value.contains('*'));
        if tree.limit.is_some() {
            *number += 1;
            tree.limit = Some(*number);
        }
        settle(&mut tree.below, number);
    }
}

const KEYS: [&str; 3] = ["a", "b", "c#1"];
const CONFIGURED: [&str; 10] = [
    "x", "y", "xy", "x*", "*x", "*", "x*x", "x*y", "*x*y*", "${X}",
];
const SENT: [&str; 11] = [
    "", "x", "y", "xy", "xx", "xxy", "yx", "xyxy", "x*", "z", "${X}",
];

fn tree() -> impl Strategy<Value = Tree> {
    let node = || {
        (
            select(&KEYS[..]),
            proptest::option::weighted(0.7, select(&CONFIGURED[..])),
            proptest::option::weighted(0.7, Just(0)),
            any::<bool>(),
        )
    };
    let of = |(key, value, limit, share), below| Tree {
        key,
        value,
        limit,
        share,
        below,
    };
    let leaf = node().prop_map(move |node| of(node, Vec::new()));
    leaf.prop_recursive(3, 40, 5, move |inner| {
        (node(), vec(inner, 0..5)).prop_map(move |(node, below)| of(node, below))
    })
}

fn entries() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    vec((select(&KEYS[..]), select(&SENT[..])), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_translation_matches_like_envoyproxy_ratelimit(
        mut trees in vec(tree(), 1..6),
        asked in vec(entries(), 1..60),
    ) {
        settle(&mut trees, &mut 0);
        let mut text = "domain: edge\ndescriptors:\n".to_owned();
        write(&trees, 2, &mut text);
        let yaml = imported(&text).to_yaml();
        let config = meant(&yaml);
        prop_assert!(config.warnings().is_empty(), "{:?}\n{}", config.warnings(), yaml);
        let mut counters: Vec<(CounterMatch, CounterMatch)> = Vec::new();
        for entries in &asked {
            let theirs = ask_oracle(&trees, entries);
            let ours = ask_policy(&config.policies[0], entries);
            let numbers = |found: &CounterMatch| found.as_ref().map(|(number, _)| *number);
            prop_assert_eq!(numbers(&theirs), numbers(&ours), "{:?}\n{}{}", entries, text, yaml);
            for (other_theirs, other_ours) in &counters {
                let same = (theirs == *other_theirs, ours == *other_ours);
                prop_assert_eq!(same.0, same.1, "{:?}\n{}{}", entries, text, yaml);
            }
            counters.push((theirs, ours));
        }
    }
}

#[test]
fn the_oracle_handles_the_well_known_wildcard_cases() {
    for (pattern, value, matches) in [
        ("*", "", true),
        ("a*", "a", true),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*b*", "abc", true),
        ("a*b*c", "acb", false),
        ("a*b*b", "ab", false),
    ] {
        assert_eq!(like(pattern, value), matches, "{pattern} {value}");
    }
}
