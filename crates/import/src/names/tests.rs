use super::{NameRequest, all, made_up, short_hash};
use std::collections::BTreeSet;
use tidegate_policy::text::scalar::name as parse_name;

fn given(texts: &[&str]) -> Vec<String> {
    let wanted: Vec<NameRequest> = texts.iter().map(|text| NameRequest::given(text)).collect();
    all(&wanted, &["none"])
}

fn hashed(stem: &str, of: &str) -> String {
    format!("{stem}-{}", short_hash(of))
}

#[test]
fn a_valid_name_is_unchanged() {
    let names = ["bkthomps", "per_client.v2", "A-1", "0", "trailing-"];
    assert_eq!(given(&names), names);
}

#[test]
fn invalid_characters_become_a_dash() {
    for (text, stem) in [
        ("default/eg/http", "default-eg-http"),
        ("files/*", "files"),
        ("/api/v1*end", "api-v1-end"),
        ("a  b", "a-b"),
        (":path", "path"),
        ("_x", "x"),
        ("日本", "limit"),
        ("", "limit"),
        ("--", "limit"),
        ("none", "none"),
    ] {
        assert_eq!(given(&[text]), [hashed(stem, text)], "{text}");
    }
}

#[test]
fn a_path_becomes_a_readable_name() {
    for (path, name) in [
        (vec![("kind", Some("sms")), ("to", None)], "kind-sms.to"),
        (
            vec![("route", Some("api/*")), ("method", None)],
            "route-api.method",
        ),
        (vec![("path", Some("*"))], "path-any"),
        (vec![("path", Some("*.png"))], "path-png"),
    ] {
        assert_eq!(made_up(path.into_iter()), name);
    }
}

#[test]
fn a_name_contained_the_value_of_a_secret_header() {
    for key in ["authorization", "X-Api-Key", "cookie", "session", "token"] {
        let name = |value: &str| made_up([("path", Some("a")), (key, Some(value))].into_iter());
        let shown = name("Bearer S3cret");
        let stem = format!("path-a.{key}-");
        let hash = shown.strip_prefix(&stem).expect("the key is told");
        assert!(hash.bytes().all(|it| it.is_ascii_hexdigit()), "{shown}");
        assert_ne!(shown, name("Bearer other"));
        // A wildcard is not a secret.
        assert_eq!(name("*"), format!("{stem}any"));
    }
}

#[test]
fn a_name_was_taken_by_an_earlier_item() {
    for text in ["api v1", "_api-v1", "api:v1", "日本"] {
        let alone = given(&[text]);
        let beside = given(&[text, "api-v1", "中国", "limit"]);
        assert_eq!(beside.first(), alone.first());
        assert_eq!(beside.get(1).unwrap(), "api-v1");
        assert_eq!(beside.get(3).unwrap(), "limit");
        let after = given(&["api-v1", "中国", "limit", text]);
        assert_eq!(after.last(), alone.first());
    }
    // Not even one that equals the generated name.
    let guessed = hashed("api-v1", "api v1");
    let names = given(&["api v1", &guessed]);
    assert_eq!(names.last(), Some(&guessed));
    assert_ne!(names.first(), Some(&guessed));
}

#[test]
fn items_with_the_same_name_get_distinct_names() {
    let a = || NameRequest::given_to("same", "one".to_owned());
    let b = || NameRequest::given_to("same", "other".to_owned());
    let (one, other) = (hashed("same", "one"), hashed("same", "other"));
    assert_eq!(all(&[a(), b()], &[]), [one.clone(), other.clone()]);
    assert_eq!(all(&[b(), a()], &[]), [other, one]);
    // Neither do items that are identical in everything.
    let names = all(&[a(), a(), a()], &[]);
    assert_eq!(names.into_iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn a_generated_name_is_kept_unless_it_collides() {
    let made_up = |text: &str, of: &str| NameRequest::made_up(text.to_owned(), of.to_owned());
    let names = all(
        &[
            made_up("api-v1", "/api/v1"),
            made_up("pay", "/pay"),
            made_up("api-v1", "/api-v1"),
            made_up("given", "/given"),
            NameRequest::given("given"),
            made_up("kind-", "kind-日本"),
            made_up("override", "/override"),
        ],
        &["override"],
    );
    let expected = [
        hashed("api-v1", "/api/v1"),
        "pay".to_owned(),
        hashed("api-v1", "/api-v1"),
        hashed("given", "/given"),
        "given".to_owned(),
        hashed("kind", "kind-日本"),
        hashed("override", "/override"),
    ];
    assert_eq!(names, expected);
}

#[test]
fn naming_many_items_took_quadratic_time() {
    // 10,000 names used to take half a minute, and 100,000 an hour; now both take a negligible time.
    let texts: Vec<String> = (0..100_000).map(|nth| format!("한국{nth}어")).collect();
    let wanted: Vec<NameRequest> = texts.iter().map(|text| NameRequest::given(text)).collect();
    let names = all(&wanted, &[]);
    let alike: Vec<NameRequest> = texts.iter().map(|_| NameRequest::given("한국")).collect();
    for names in [names, all(&alike, &[])] {
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), texts.len());
    }
}

#[test]
fn a_long_name_is_cut_to_a_valid_one() {
    let long = ["x".repeat(100), "x".repeat(54) + "-._y" + &"z".repeat(40)];
    for text in &long {
        for name in given(&[text, text]) {
            assert!(parse_name(&name).is_ok(), "{name}");
        }
    }
}
