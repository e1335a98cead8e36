//! The search for a descriptor's limits: the rules of Envoy's own rate limit service, one by one and against
//! an oracle that follows them literally.

use super::fixtures::{all, limit};
use crate::matching::{DescriptorPattern, EntryPattern, KeyRules, Wildcard};
use crate::{Condition, Descriptor, DescriptorHits, Limit, Policy, Request, Scratch};
use proptest::prelude::*;

/// Returns a condition with these entries as a list in `match`.
pub(super) fn exactly(entries: &[(&str, &str)]) -> Condition {
    let entries = entries.iter().map(|(k, v)| EntryPattern::new(*k, v));
    Condition {
        descriptor: Some(DescriptorPattern::Exactly(entries.collect())),
        ..Condition::default()
    }
}

/// A limit for descriptors of exactly these entries.
pub(super) fn on(name: &str, entries: &[(&str, &str)]) -> Limit {
    Limit {
        conditions: vec![exactly(entries)],
        ..limit(name)
    }
}

pub(super) fn described<'a>(entries: &'a [(&'a str, &'a str)]) -> Descriptor<'a> {
    Descriptor {
        entries,
        hits: DescriptorHits::AsRequest,
        limit: None,
    }
}

/// Returns the names of the limits that one descriptor matches.
fn found(policy: &Policy, entries: &[(&str, &str)]) -> String {
    let descriptors = [described(entries)];
    let request = Request::new().descriptors(&descriptors);
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    let names = meeting.met.iter().map(|met| {
        assert_eq!(met.descriptor, Some(0));
        policy.limits[met.limit].name.as_str()
    });
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_value_comes_before_a_pattern_and_a_pattern_before_the_key() {
    let policy = all(vec![
        on("key", &[("path", "")]),
        on("pattern", &[("path", "a*")]),
        on("value", &[("path", "ab")]),
    ]);
    assert_eq!(found(&policy, &[("path", "ab")]), "value");
    assert_eq!(found(&policy, &[("path", "ac")]), "pattern");
    assert_eq!(found(&policy, &[("path", "b")]), "key");
    assert_eq!(found(&policy, &[("Path", "b")]), "");
    assert_eq!(found(&policy, &[]), "");
}

#[test]
fn the_first_written_pattern_wins_and_not_the_longest() {
    let policy = all(vec![
        on("short", &[("f", "a*")]),
        on("long", &[("f", "abc*")]),
    ]);
    assert_eq!(found(&policy, &[("f", "abcd")]), "short");
    // A client that sends the text of a pattern matches it exactly.
    assert_eq!(found(&policy, &[("f", "abc*")]), "long");
}

#[test]
fn a_chosen_branch_is_never_reconsidered() {
    let policy = all(vec![
        on("deep", &[("a", "x"), ("b", "")]),
        on("any", &[("a", "")]),
        on("any-c", &[("a", ""), ("c", "")]),
    ]);
    // The value `x` leads only to `b`, regardless of the children of the key.
    assert_eq!(found(&policy, &[("a", "x")]), "");
    assert_eq!(found(&policy, &[("a", "x"), ("c", "1")]), "");
    assert_eq!(found(&policy, &[("a", "x"), ("b", "1")]), "deep");
    assert_eq!(found(&policy, &[("a", "y")]), "any");
    assert_eq!(found(&policy, &[("a", "y"), ("c", "1")]), "any-c");
}

#[test]
fn a_limit_applies_only_at_the_last_entry() {
    let policy = all(vec![
        on("one", &[("a", "")]),
        on("three", &[("a", ""), ("b", ""), ("c", "")]),
    ]);
    assert_eq!(found(&policy, &[("a", "1")]), "one");
    assert_eq!(found(&policy, &[("a", "1"), ("b", "2")]), "");
    assert_eq!(
        found(&policy, &[("a", "1"), ("b", "2"), ("c", "3")]),
        "three"
    );
    assert_eq!(
        found(&policy, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]),
        ""
    );
    assert_eq!(
        found(&policy, &[("b", "2"), ("a", "1")]),
        "",
        "order counts"
    );
}

#[test]
fn several_limits_may_share_one_node() {
    let policy = all(vec![
        on("second", &[("a", "")]),
        on("day", &[("a", "")]),
        Limit {
            enabled: false,
            ..on("off", &[("a", "")])
        },
    ]);
    assert_eq!(found(&policy, &[("a", "1")]), "second day");
}

#[test]
fn a_disabled_limit_is_not_in_the_tree() {
    let policy = all(vec![
        Limit {
            enabled: false,
            ..on("off", &[("a", "x")])
        },
        on("any", &[("a", "")]),
    ]);
    assert_eq!(found(&policy, &[("a", "x")]), "any");
}

#[test]
fn an_empty_value_matches_only_wildcards_and_bare_keys() {
    let policy = all(vec![on("some", &[("a", "x*")]), on("key", &[("a", "")])]);
    assert_eq!(found(&policy, &[("a", "")]), "key");
    let policy = all(vec![on("star", &[("a", "*")]), on("key", &[("a", "")])]);
    assert_eq!(found(&policy, &[("a", "")]), "star");
}

#[test]
fn keys_and_values_are_not_joined_into_one_text() {
    let policy = all(vec![on("l", &[("a", "b_c")])]);
    assert_eq!(found(&policy, &[("a_b", "c")]), "");
    let policy = all(vec![on("l", &[("a_b", "")])]);
    assert_eq!(found(&policy, &[("a", "b")]), "");
}

#[test]
fn wildcards_match_any_text() {
    for (pattern, yes, no) in [
        ("*", &["", "a", "*"][..], &[][..]),
        ("a*", &["a", "ab"], &["", "ba"]),
        ("*a", &["a", "ba"], &["", "ab"]),
        ("a*a", &["aa", "aba", "abba"], &["a", "ab", "ba"]),
        ("a*b*c", &["abc", "aXbYc", "abbc"], &["ac", "acb", "abcd"]),
        ("a**c", &["ac", "abc"], &["a", "c"]),
        (
            "*/files/*.txt",
            &["/files/a.txt", "x/files/.txt"],
            &["files/a.txt", "/files/a.txtx"],
        ),
        ("é*ü", &["éü", "éxü"], &["é", "eü"]),
    ] {
        let wildcard = Wildcard::new(pattern);
        for value in yes {
            assert!(wildcard.matches(value), "{pattern} {value}");
        }
        for value in no {
            assert!(!wildcard.matches(value), "{pattern} {value}");
        }
    }
}

/// The oracle: a tree with all its children in one list, searched from one end to the other.
#[derive(Default)]
struct Place {
    children: Vec<(String, Option<String>, Place)>,
    limits: Vec<usize>,
}

impl Place {
    fn add(&mut self, entries: &[(String, String)], limit: usize) {
        let Some(((key, value), rest)) = entries.split_first() else {
            self.limits.push(limit);
            return;
        };
        let value = Some(value.clone()).filter(|value| !value.is_empty());
        let is_same = |(k, v, _): &(String, Option<String>, Self)| k == key && *v == value;
        let at = self.children.iter().position(is_same).unwrap_or_else(|| {
            self.children
                .push((key.clone(), value.clone(), Self::default()));
            self.children.len() - 1
        });
        self.children[at].2.add(rest, limit);
    }

    fn find(&self, entries: &[(String, String)]) -> &[usize] {
        let Some(((key, value), rest)) = entries.split_first() else {
            return &[];
        };
        let named = || self.children.iter().filter(|(k, ..)| k == key);
        let exact = named().find(|(_, v, _)| v.as_ref() == Some(value));
        let like = || {
            named().find(|(_, v, _)| {
                let pattern = v.as_deref().filter(|v| v.contains('*'));
                pattern.is_some_and(|it| looks_like(it.as_bytes(), value.as_bytes()))
            })
        };
        let any = || named().find(|(_, v, _)| v.is_none());
        match exact.or_else(like).or_else(any) {
            None => &[],
            Some((.., next)) if rest.is_empty() => &next.limits,
            Some((.., next)) => next.find(rest),
        }
    }
}

/// Returns true if a text matches a pattern, by trying everything.
fn looks_like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|n| looks_like(rest, &text[n..])),
        ([p, pattern @ ..], [t, text @ ..]) => p == t && looks_like(pattern, text),
        _ => false,
    }
}

fn entries(values: &'static [&'static str]) -> impl Strategy<Value = Vec<(String, String)>> {
    let key = prop::sample::select(&["a", "b"][..]).prop_map(str::to_owned);
    let value = prop::sample::select(values).prop_map(str::to_owned);
    prop::collection::vec((key, value), 1..=3)
}

fn borrowed(entries: &[(String, String)]) -> Vec<(&str, &str)> {
    let entries = entries.iter();
    entries.map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

const WRITTEN: &[&str] = &["", "x", "xy", "*", "x*", "*y", "x*y", "xy*", "*x*y*"];
const SENT: &[&str] = &["", "x", "y", "xy", "xxy", "yx", "x*", "*", "xzy", "z"];

proptest! {
    #[test]
    fn the_tree_equals_a_search_by_the_rules(
        written in prop::collection::vec(entries(WRITTEN), 0..12),
        sent in prop::collection::vec(entries(SENT), 1..12),
    ) {
        let mut oracle = Place::default();
        let mut limits = Vec::new();
        for (number, entries) in written.iter().enumerate() {
            oracle.add(entries, number);
            limits.push(on(&number.to_string(), &borrowed(entries)));
        }
        let policy = all(limits);
        for entries in &sent {
            let expected = oracle.find(entries).iter().map(ToString::to_string);
            let expected = expected.collect::<Vec<_>>().join(" ");
            prop_assert_eq!(found(&policy, &borrowed(entries)), expected, "{:?}", entries);
        }
    }

    #[test]
    fn patterns_match_like_an_exhaustive_search(pattern in "[ab*]{1,6}", text in "[ab*]{0,8}") {
        let expected = looks_like(pattern.as_bytes(), text.as_bytes());
        prop_assume!(pattern.contains('*'));
        prop_assert_eq!(Wildcard::new(&pattern).matches(&text), expected);
    }
}
