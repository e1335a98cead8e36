use super::fixtures::{limit_for, pattern};
use crate::matching::normalise;
use crate::matching::trie::{Candidate, Trie, TrieWalk};
use crate::patterns::{PathExtent, PathPattern, Segment};
use proptest::prelude::*;

fn trie(patterns: &[PathPattern]) -> Trie {
    let mut trie = Trie::new();
    for (limit, pattern) in patterns.iter().enumerate() {
        trie.add(
            pattern,
            Candidate {
                limit,
                condition: 0,
            },
        );
    }
    trie
}

fn walk(trie: &Trie, path: Option<&str>, walk: &mut TrieWalk) -> Vec<usize> {
    let found = trie.walk(path, walk);
    found.iter().map(|candidate| candidate.limit).collect()
}

/// The reference for patterns: backtracking, slow and obvious.
pub(super) fn matches(pattern: &PathPattern, path: Option<&str>) -> bool {
    fn rest(pattern: &[Segment], path: &[&str], extent: PathExtent) -> bool {
        match pattern {
            [] => extent == PathExtent::Prefix || path.is_empty(),
            [Segment::Any, others @ ..] => {
                (0..=path.len()).any(|n| rest(others, &path[n..], extent))
            }
            [segment, others @ ..] => path.split_first().is_some_and(|(first, path)| {
                let is_same = match segment {
                    Segment::Literal(text) => text == first,
                    _ => true,
                };
                is_same && rest(others, path, extent)
            }),
        }
    }
    match path {
        Some(path) => {
            let path: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
            pattern.extent() != PathExtent::NoPath
                && rest(pattern.segments(), &path, pattern.extent())
        }
        None => pattern.extent() == PathExtent::NoPath,
    }
}

pub(super) fn any_pattern() -> impl Strategy<Value = PathPattern> {
    let segment = prop::sample::select(vec!["a", "b", "c", "*", "**", "%61"]);
    let written =
        (prop::collection::vec(segment, 0..7), any::<bool>()).prop_map(|(segments, whole)| {
            format!("/{}{}", segments.join("/"), if whole { "$" } else { "" })
        });
    prop_oneof![20 => written, 1 => Just("$".to_owned())].prop_map(|text| pattern(&text))
}

fn any_path() -> impl Strategy<Value = Option<String>> {
    let segment = prop::sample::select(vec!["a", "b", "c", "d", "", ".", ".."]);
    let path = prop::collection::vec(segment, 0..9).prop_map(|it| format!("/{}", it.join("/")));
    prop_oneof![20 => path.prop_map(Some), 1 => Just(None)]
}

proptest! {
    #[test]
    fn the_trie_matches_like_each_pattern(
        patterns in prop::collection::vec(any_pattern(), 0..12),
        paths in prop::collection::vec(any_path(), 1..8),
    ) {
        let trie = trie(&patterns);
        // One walk for all: the state of a walk must not affect the next.
        let mut steps = TrieWalk::default();
        for path in &paths {
            let mut buffer = String::new();
            let path = path.as_deref().and_then(|path| normalise(path, &mut buffer));
            let expected: Vec<usize> = (0..patterns.len())
                .filter(|i| matches(&patterns[*i], path))
                .collect();
            prop_assert_eq!(walk(&trie, path, &mut steps), expected);
        }
    }
}

#[test]
fn limits_for_other_paths_cost_nothing() {
    let states_entered = |others: usize| {
        let mut patterns = vec![
            pattern("/api/*/users$"),
            pattern("/api/**/raw"),
            pattern("/"),
        ];
        for i in 0..others {
            patterns.push(pattern(&format!("/other/{i}/*/users$")));
            patterns.push(pattern(&format!("/api/v2/users/{i}")));
            patterns.push(pattern(&format!("/tenant{i}/**/raw$")));
        }
        let mut steps = TrieWalk::default();
        assert_eq!(
            walk(&trie(&patterns), Some("/api/v2/users"), &mut steps),
            [0, 2]
        );
        steps.states_entered()
    };
    assert_eq!(states_entered(1), states_entered(10));
    assert_eq!(states_entered(1), states_entered(10_000));
}

#[test]
fn many_double_stars_stay_linear() {
    let hard = pattern(&format!("{}/b$", "/**/a".repeat(30)));
    let path = "/a".repeat(2_000);
    let mut steps = TrieWalk::default();
    // Backtracking would practically never end.
    assert!(walk(&trie(&[hard]), Some(&path), &mut steps).is_empty());
}

#[test]
fn a_walk_serves_several_tries() {
    let small = trie(&[pattern("/a")]);
    let large = trie(&[pattern("/a/b/c/d"), pattern("/a")]);
    let mut steps = TrieWalk::default();
    assert_eq!(walk(&small, Some("/a"), &mut steps), [0]);
    assert_eq!(walk(&large, Some("/a/b/c/d"), &mut steps), [0, 1]);
    assert_eq!(walk(&small, Some("/a/b"), &mut steps), [0]);
}

#[test]
fn an_empty_trie_matches_nothing() {
    let mut trie = Trie::new();
    assert!(trie.is_empty());
    let [condition] = &limit_for("l", &["/$"]).conditions[..] else {
        panic!("one path, one condition");
    };
    trie.add(
        condition.path.as_ref().unwrap(),
        Candidate {
            limit: 0,
            condition: 0,
        },
    );
    assert!(!trie.is_empty());
}
