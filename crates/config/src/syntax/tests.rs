//! Anchors, aliases and merge keys: a text that uses them means the same as its expanded form.

use super::{NodeKind, YamlNode, read};
use proptest::prelude::*;
use std::fmt::Write;
use tidegate_policy::text::ConfigFault;

/// Formats a tree on one line, without positions.
fn show(node: &YamlNode) -> String {
    match &node.kind {
        NodeKind::Text(text) => text.clone(),
        NodeKind::Null => "~".to_owned(),
        NodeKind::Broken => "!".to_owned(),
        NodeKind::List(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        NodeKind::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|it| format!("{}: {}", it.key.text, show(&it.value)));
            let entries: Vec<String> = entries.collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Reads and formats a text, or returns its first error.
fn shown(text: &str) -> Result<String, String> {
    let (tree, faults) = read(text, ConfigFault::new("nothing"));
    match (tree, faults.into_iter().next()) {
        (Some(tree), None) => Ok(show(&tree)),
        (_, fault) => Err(fault.map_or_else(String::new, |(_, fault)| fault.message)),
    }
}

#[test]
fn aliases_and_merges_expand_to_the_nodes_they_repeat() {
    for (text, expected) in [
        ("[&a x, *a, *a]", "[x, x, x]"),
        ("[&a ~, *a]", "[~, ~]"),
        ("[&a [1, &b 2], *a, *b]", "[[1, 2], [1, 2], 2]"),
        ("[&a 1, &a 2, *a]", "[1, 2, 2]"),
        ("{ a: &a { x: 1 }, b: *a }", "{a: {x: 1}, b: {x: 1}}"),
        ("{ &a k: v, l: *a }", "{k: v, l: k}"),
        ("{ a: &a k, *a : v }", "{a: k, k: v}"),
        // Keys that are written win, before and after the merge.
        (
            "[&a { x: 1, y: 2 }, { <<: *a, x: 3 }]",
            "[{x: 1, y: 2}, {x: 3, y: 2}]",
        ),
        (
            "[&a { x: 1, y: 2 }, { x: 3, <<: *a }]",
            "[{x: 1, y: 2}, {x: 3, y: 2}]",
        ),
        // Of several merges the first wins.
        (
            "[&a { x: 1 }, &b { x: 2, y: 2 }, { <<: [*a, *b], z: 3 }]",
            "[{x: 1}, {x: 2, y: 2}, {z: 3, x: 1, y: 2}]",
        ),
        // Merges are not deep.
        (
            "[&a { x: { p: 1 } }, { <<: *a, x: { q: 2 } }]",
            "[{x: {p: 1}}, {x: {q: 2}}]",
        ),
        // A merge of a merge.
        (
            "[&a { x: 1 }, &b { <<: *a, y: 2 }, { <<: *b }]",
            "[{x: 1}, {y: 2, x: 1}, {y: 2, x: 1}]",
        ),
        ("[{ <<: { x: 1 }, y: 2 }]", "[{y: 2, x: 1}]"),
        ("[&l [{ x: 1 }], { <<: *l }]", "[[{x: 1}], {x: 1}]"),
        ("{ <<: [], x: 1 }", "{x: 1}"),
        // In quotes, and as a value, it is ordinary text.
        ("{ '<<': 1 }", "{<<: 1}"),
        ("[<<]", "[<<]"),
    ] {
        assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn undefined_aliases_are_errors() {
    for (text, expected) in [
        ("[*a, &a x]", "no anchor above has this name"),
        ("&a [*a]", "is inside the value that it repeats"),
        ("&a { x: { y: *a } }", "is inside the value that it repeats"),
        ("&a { <<: *a }", "is inside the value that it repeats"),
        (
            "[&a x, { <<: *a }]",
            "merges maps, but this is a single value",
        ),
        ("[&a ~, { <<: *a }]", "merges maps, but this is nothing"),
        ("[&a [[]], { <<: *a }]", "merges maps, but this is a list"),
        ("[&a { x: 1 }, { <<: *a, <<: *a }]", "duplicate key"),
        ("[&a [], { *a : 1 }]", "a key must be a single word"),
    ] {
        let said = shown(text).expect_err(text);
        assert!(said.contains(expected), "{text}: {said}");
    }
}

/// Returns a list in which each item repeats the previous one `width` times.
fn bomb(seed: &str, levels: usize, width: usize) -> String {
    let mut text = format!("- &a0 {seed}\n");
    for level in 1..=levels {
        let below = format!("*a{}, ", level - 1).repeat(width);
        writeln!(text, "- &a{level} [{below}]").unwrap();
    }
    text
}

#[test]
fn a_small_text_cannot_expand_to_a_large_one() {
    let long = "x".repeat(1 << 20);
    let anchored: Vec<String> = (0..60).map(|level| format!("&a{level} [")).collect();
    let anchored = anchored.concat();
    for (text, expected) in [
        (bomb("x", 9, 10), "copy more than 200000 values"),
        (bomb("{ a: b }", 30, 2), "copy more than 200000 values"),
        (bomb(&long, 1, 5), "4 MiB of text"),
        (bomb("x", 65, 1), "nested more than 64 levels"),
        // Nested anchors, each of which would be kept.
        (
            format!("{anchored}{}{}", "x, ".repeat(4_000), "]".repeat(60)),
            "copy more than 200000 values",
        ),
        // Merges of merges.
        (
            (1..30).fold("- &a0 { k0: v }\n".to_owned(), |text, level| {
                let last = level - 1;
                text + &format!("- &a{level} {{ k{level}: [*a{last}, *a{last}], <<: *a{last} }}\n")
            }),
            "copy more than 200000 values",
        ),
    ] {
        let said = shown(&text).expect_err("too large");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_alias_copy_keeps_its_source_position_and_alias_line() {
    let (tree, _) = read("- &a\n  x: 1\n- *a\n", ConfigFault::new("nothing"));
    let tree = tree.expect("a tree");
    let NodeKind::List(items) = &tree.kind else {
        panic!("a list");
    };
    let places = items.iter().map(|item| item.get("x").expect("x").place);
    let places: Vec<_> = places.map(|it| (it.written(), it.alias())).collect();
    assert_eq!(places[0], (places[1].0, None));
    assert_eq!(places[1].1, Some(3));
}

/// Returns an anchor name that no value within this one has.
fn anchor(text: &str) -> String {
    format!("a{}", text.len())
}

/// Generates a tree as two texts: with aliases, and expanded.
fn pair() -> impl Strategy<Value = (String, String)> {
    let leaf = "[a-z]{1,3}".prop_map(|text| (text.clone(), text));
    leaf.prop_recursive(4, 64, 5, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        let list = list.prop_map(|items| {
            let (with, without): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            (
                format!("[{}]", with.join(", ")),
                format!("[{}]", without.join(", ")),
            )
        });
        let repeated = inner.clone().prop_map(|(with, without)| {
            let name = anchor(&with);
            let with = format!("[&{name} {with}, *{name}, {{ k: *{name} }}]");
            let out = format!("[{without}, {without}, {{ k: {without} }}]");
            (with, out)
        });
        let merged = (inner.clone(), inner).prop_map(|((one, one_out), (two, two_out))| {
            let base = format!("{{ x: {one}, y: {two} }}");
            let base_out = format!("{{ x: {one_out}, y: {two_out} }}");
            let name = anchor(&base);
            (
                format!("[&{name} {base}, {{ y: z, <<: *{name} }}]"),
                format!("[{base_out}, {{ y: z, x: {one_out} }}]"),
            )
        });
        prop_oneof![list, repeated, merged]
    })
}

proptest! {
    #[test]
    fn a_text_with_aliases_equals_its_expansion((with, without) in pair()) {
        prop_assert_eq!(shown(&with), shown(&without), "{}", with);
    }
}
