//! A minimal reimplementation of nginx's choice of a location, and random servers to compare with.

use super::{file, meant};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;
use tidegate_import::nginx;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::policy::Scratch;
use tidegate_policy::{Policy, Request};

/// The limit of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocationLimit {
    Inherited,
    /// `return` replies before limits apply.
    Free,
    Limit(u64),
}

/// A location: its words, and its limit.
type Location = (&'static str, LocationLimit);

/// Prefixes end with a slash and regular expressions are whole segments, so that nothing depends on characters
/// and segments being compared differently.
const LOCATIONS: [&str; 12] = [
    "/",
    "/a/",
    "/a/b/",
    "/a/b/c/",
    "^~ /a/",
    "^~ /a/b/",
    "^~ /b/",
    "= /a/x",
    "= /a/b/x",
    "~ ^/a/[^/]+$",
    "~ /x$",
    "~ ^/(a|b)/",
];

const PATHS: [&str; 12] = [
    "/x", "/y", "/a/x", "/a/y", "/a/b/x", "/a/b/y", "/a/b/c/x", "/a/b/c/y", "/b/x", "/b/y",
    "/b/a/x", "/c/b/x",
];

/// Returns true if one of the regular expressions above matches a path.
fn matches(regex: &str, path: &str) -> bool {
    match regex {
        "^/a/[^/]+$" => path.strip_prefix("/a/").is_some_and(|it| !it.contains('/')),
        "/x$" => path.ends_with("/x"),
        _ => path.starts_with("/a/") || path.starts_with("/b/"),
    }
}

/// Returns nginx's choice.
fn ask_oracle(server: Option<u64>, locations: &[Location], path: &str) -> Option<u64> {
    let own = |own: LocationLimit| match own {
        LocationLimit::Inherited => server,
        LocationLimit::Free => None,
        LocationLimit::Limit(limit) => Some(limit),
    };
    let exact = locations
        .iter()
        .find(|(words, _)| words.strip_prefix("= ") == Some(path));
    if let Some((_, limit)) = exact {
        return own(*limit);
    }
    let prefixes = locations.iter().filter_map(|(words, limit)| {
        let prefix = words.strip_prefix("^~ ").unwrap_or(words);
        path.starts_with(prefix)
            .then_some((prefix, words.starts_with('^'), *limit))
    });
    let longest = prefixes.max_by_key(|(prefix, ..)| prefix.len());
    if let Some((_, true, limit)) = longest {
        return own(limit);
    }
    let mut regexes = locations
        .iter()
        .filter_map(|(words, limit)| Some((words.strip_prefix("~ ")?, *limit)));
    let regex = regexes.find(|(regex, _)| matches(regex, path));
    own(regex
        .map(|it| it.1)
        .or(longest.map(|it| it.2))
        .unwrap_or(LocationLimit::Inherited))
}

/// Returns the capacity of the limit that applies after the translation.
fn ask_policy(policy: &Policy, path: &str) -> Option<u64> {
    let mut request = Request::new();
    request.path = Some(path);
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    let limits = meeting
        .met
        .iter()
        .filter_map(|met| policy.limits.get(met.limit));
    let bands: Vec<u64> = limits
        .filter_map(|it| it.bands.first())
        .map(|it| it.quota.capacity())
        .collect();
    assert!(bands.len() <= 1, "{path} meets several limits");
    bands.first().copied()
}

/// Returns false for prefixes that are equal except for `^~`, which nginx rejects, and for
/// ambiguous orders of locations, about which the translation warns.
fn is_supported(locations: &[Location]) -> bool {
    let prefixes: Vec<&str> = locations
        .iter()
        .map(|(words, _)| words.trim_start_matches("^~ "))
        .collect();
    let unique: BTreeSet<&&str> = prefixes.iter().collect();
    let finals = locations
        .iter()
        .filter_map(|(words, _)| words.strip_prefix("^~ "));
    let has_inner = |outer: &str| {
        let mut plain = locations.iter().filter(|(words, _)| words.starts_with('/'));
        plain.any(|(words, _)| words.len() > outer.len() && words.starts_with(outer))
    };
    let has_regex = locations.iter().any(|(words, _)| words.starts_with('~'));
    unique.len() == prefixes.len() && !(has_regex && finals.into_iter().any(has_inner))
}

fn own() -> impl Strategy<Value = LocationLimit> {
    let limit = (1_u64..4).prop_map(LocationLimit::Limit);
    prop_oneof![2 => Just(LocationLimit::Inherited), 1 => Just(LocationLimit::Free), 4 => limit]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_translation_limits_like_the_location_chosen_by_nginx(
        server in prop::option::of(1_u64..4),
        locations in vec((select(&LOCATIONS[..]), own()), 0..7),
    ) {
        prop_assume!(is_supported(&locations));
        let limit = |number: u64| format!("limit_req zone=z{number} burst={number} nodelay;");
        let zones = [1, 2, 3].map(|it| format!("limit_req_zone $binary_remote_addr zone=z{it}:1m rate=1r/s;\n"));
        let inside = locations.iter().map(|(words, own)| match own {
            LocationLimit::Inherited => format!("location {words} {{ }}\n"),
            LocationLimit::Free => format!("location {words} {{ return 204; }}\n"),
            LocationLimit::Limit(number) => format!("location {words} {{ {} }}\n", limit(*number)),
        });
        let text = format!(
            "{}server {{\n{}\n{}}}\n",
            zones.concat(),
            server.map_or(String::new(), limit),
            inside.collect::<String>()
        );
        let imported = nginx(&file(&text), &mut |_| Ok(Vec::new()));
        let yaml = imported.unwrap_or_else(|errors| panic!("{text}{errors}")).to_yaml();
        let config = meant(&yaml);
        let policy = &config.policies[0];
        for path in PATHS {
            let expected = ask_oracle(server, &locations, path).map(|it| it + 1);
            prop_assert_eq!(ask_policy(policy, path), expected, "{} in\n{}\n{}", path, text, yaml);
        }
    }
}
