use super::fixtures::{first, limit_for, met, pattern};
use crate::Request;
use crate::matching::PathPattern;

fn check(text: &str, paths: &[&str], others: &[&str]) {
    let policy = first(vec![limit_for("it", &[text])]);
    for path in paths {
        assert_eq!(
            met(&policy, &Request::new().path(path)),
            "it",
            "{text} {path}"
        );
    }
    for path in others {
        assert_eq!(
            met(&policy, &Request::new().path(path)),
            "",
            "{text} {path}"
        );
    }
}

#[test]
fn a_pattern_is_a_prefix_of_whole_segments() {
    check(
        "/static",
        &["/static", "/static/", "/static/a/b"],
        &["/", "/statics", "/Static", "/a/static"],
    );
    check("/static/$", &["/static", "//static//"], &["/static/a", "/"]);
}

#[test]
fn a_star_is_exactly_one_segment() {
    check("/a/*", &["/a/b", "/a/b/c"], &["/a", "/a/", "/b/c"]);
    check("/*/b$", &["/a/b", "/*/b"], &["/b", "/a/b/c", "/a/a/b"]);
}

#[test]
fn two_stars_are_any_number_of_segments() {
    check(
        "/a/**/b$",
        &["/a/b", "/a/x/b", "/a/b/b", "/a/x/y/b"],
        &["/a", "/a/b/c", "/b"],
    );
    check("/**/b", &["/b", "/a/b", "/a/b/c"], &["/", "/a/bb"]);
    check("/a/**", &["/a", "/a/b/c"], &["/b"]);
    check("/a/**/**/*/**$", &["/a/b", "/a/b/c"], &["/a"]);
    check("/**$", &["/", "/a/b"], &[]);
}

#[test]
fn the_root_pattern_matches_every_path_and_only_itself_with_a_dollar() {
    check("/", &["/", "/a", "a"], &["", "?a"]);
    check(
        "/$",
        &["/", "//", "/a/..", "/?x", "http://host"],
        &["/a", ""],
    );
}

#[test]
fn a_lone_dollar_matches_no_path() {
    check("$", &["", "?a"], &["/", "/a"]);
    assert_eq!(
        met(&first(vec![limit_for("it", &["$"])]), &Request::new()),
        "it"
    );
    assert_eq!(
        met(&first(vec![limit_for("it", &["/"])]), &Request::new()),
        ""
    );
}

#[test]
fn patterns_are_normalised_like_paths() {
    check("/%61//./b%2fc", &["/a/b%2Fc", "/a/b%2fc/d"], &["/a/b/c"]);
    check("/caf\u{e9}", &["/caf%C3%A9", "/caf\u{e9}"], &["/cafe"]);
}

#[test]
fn meaningless_patterns_are_rejected() {
    let cases = [
        ("", "must start with `/`"),
        ("a/b", "must start with `/`"),
        ("a$", "must start with `/`"),
        ("/a?b=c", "query"),
        ("/a#b", "fragment"),
        ("/a$/b", "only at its end"),
        ("/a$$", "only at its end"),
        ("/a*", "whole segments"),
        ("/***", "whole segments"),
        ("/a/../b", "must not contain"),
        ("/a/%2e./b", "must not contain"),
    ];
    for (text, why) in cases {
        let error = PathPattern::parse(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn a_pattern_can_be_explained() {
    let words = |text| {
        let pattern = pattern(text);
        (pattern.is_exact(), pattern.matches_only_empty())
    };
    assert_eq!(pattern("//a/$").as_str(), "//a/$");
    assert_eq!(words("/a"), (false, false));
    assert_eq!(words("/a$"), (true, false));
    assert_eq!(words("$"), (true, true));
}
