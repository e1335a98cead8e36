//! Any pattern and any path: nothing panics, a path has one normalized form, and a pattern matches
//! as documented.
//!
//! How: the first line of the input is the pattern, the rest the path. The matcher, which walks all
//! patterns at once, is compared with the simplest possible matcher.

use tidegate_core::Quota;
use tidegate_policy::matching::{KeyRules, PathPattern, normalise};
use tidegate_policy::policy::Scratch;
use tidegate_policy::{Band, Condition, Evaluate, KeyPart, Limit, Policy, Request};

fuzz_target!(|text: &str| {
    let (pattern_text, path) = text.split_once('\n').unwrap_or((text, "/"));
    let mut buffer = String::new();
    let normal = normalise(path, &mut buffer).map(str::to_owned);
    if let Some(normal) = &normal {
        check_normal(normal);
    }
    let Ok(pattern) = PathPattern::parse(pattern_text) else {
        return;
    };
    assert_eq!(pattern.as_str(), pattern_text);
    let expected = expected(pattern_text, normal.as_deref());
    let policy = policy(pattern);
    let mut scratch = Scratch::default();
    for spelling in [Some(path), normal.as_deref()] {
        let request = Request {
            path: spelling,
            ..Request::new()
        };
        let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
        assert_eq!(
            meeting.met.len(),
            usize::from(expected),
            "{pattern_text:?} on {spelling:?}"
        );
    }
});

fn check_normal(path: &str) {
    let mut buffer = String::new();
    assert_eq!(
        normalise(path, &mut buffer),
        Some(path),
        "normalised once, it changed again"
    );
    assert!(path.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(!path.contains(['?', '#']));
    let inside = path.strip_prefix('/').expect("a path starts with `/`");
    if !inside.is_empty() {
        for segment in inside.split('/') {
            assert!(!matches!(segment, "" | "." | ".."), "{path:?}");
        }
    }
}

/// The documented rules of `PathPattern`, implemented literally.
fn expected(pattern: &str, path: Option<&str>) -> bool {
    let Some(path) = path else {
        return pattern == "$";
    };
    if pattern == "$" {
        return false;
    }
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let pattern: Vec<String> = pattern.split('/').filter_map(literal).collect();
    let path: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    // The prefixes of the path that the pattern so far matches.
    let mut ends = vec![false; path.len() + 1];
    ends[0] = true;
    for segment in &pattern {
        let mut next = vec![false; ends.len()];
        for i in (0..ends.len()).filter(|i| ends[*i]) {
            match segment.as_str() {
                "**" => next[i..].fill(true),
                _ if i == path.len() => {}
                "*" => next[i + 1] = true,
                literal => next[i + 1] |= literal == path[i],
            }
        }
        ends = next;
    }
    if whole {
        ends[path.len()]
    } else {
        ends.contains(&true)
    }
}

/// Returns the normalized form of a pattern's segment; `None` if it has none.
fn literal(segment: &str) -> Option<String> {
    if matches!(segment, "*" | "**") {
        return Some(segment.to_owned());
    }
    let mut buffer = String::new();
    let path = format!("/{segment}");
    let normal = normalise(&path, &mut buffer)?.strip_prefix('/')?;
    (!normal.is_empty()).then(|| normal.to_owned())
}

fn policy(pattern: PathPattern) -> Policy {
    let limit = Limit {
        conditions: vec![Condition {
            path: Some(pattern),
            ..Condition::default()
        }],
        key: vec![KeyPart::Path],
        bands: vec![Band {
            text: "1/s".to_owned(),
            label: None,
            quota: Quota::new(1, 1_000_000).build().expect("a valid quota"),
        }],
        ..Limit::new("only")
    };
    Policy::new("fuzz".to_owned(), Evaluate::All, vec![limit])
}
