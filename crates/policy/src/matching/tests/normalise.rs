use crate::matching::normalise;
use proptest::prelude::*;

fn normal(target: &str) -> Option<String> {
    normalise(target, &mut String::new()).map(str::to_owned)
}

#[test]
fn every_notation_is_normalized_alike() {
    let cases = [
        ("/", "/"),
        ("//", "/"),
        ("/a/b", "/a/b"),
        ("/a//b/", "/a/b"),
        ("/a/./b/.", "/a/b"),
        ("/a/x/../b", "/a/b"),
        ("/../../a", "/a"),
        ("/a/..", "/"),
        ("/a/...", "/a/..."),
        ("/.well-known/x", "/.well-known/x"),
        ("a/b", "/a/b"),
        ("*", "/*"),
    ];
    for (sent, expected) in cases {
        assert_eq!(normal(sent).as_deref(), Some(expected), "{sent}");
    }
}

#[test]
fn only_unreserved_escapes_are_decoded() {
    let cases = [
        ("/%41%7e%5F", "/A~_"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%20b", "/a%20b"),
        ("/a b", "/a%20b"),
        ("/caf\u{e9}", "/caf%C3%A9"),
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/%zz%4", "/%zz%4"),
        ("/%", "/%"),
        ("/%2541", "/%2541"),
    ];
    for (sent, expected) in cases {
        assert_eq!(normal(sent).as_deref(), Some(expected), "{sent}");
    }
}

#[test]
fn dots_are_handled_after_decoding() {
    assert_eq!(normal("/a/%2e%2E/b").as_deref(), Some("/b"));
    assert_eq!(normal("/a/.%2e/b/%2e").as_deref(), Some("/b"));
}

#[test]
fn an_escape_that_decoding_completes_is_decoded_too() {
    assert_eq!(normal("/%%34%31").as_deref(), Some("/A"));
    assert_eq!(normal("/a/%%32%65%%32e/b").as_deref(), Some("/b"));
}

#[test]
fn query_fragment_and_origin_are_dropped() {
    let cases = [
        ("/a?b=/../c", "/a"),
        ("/a#b?c", "/a"),
        ("http://example.com/a/b?c", "/a/b"),
        ("HTTPS://user@example.com:8443/a", "/a"),
        ("http://example.com", "/"),
        ("http://example.com?a", "/"),
        // Not an origin: the path comes first.
        ("/http://example.com/a", "/http:/example.com/a"),
        ("1http://a/b", "/1http:/a/b"),
        ("://a/b", "/:/a/b"),
    ];
    for (sent, expected) in cases {
        assert_eq!(normal(sent).as_deref(), Some(expected), "{sent}");
    }
}

#[test]
fn no_path_is_not_the_root() {
    assert_eq!(normal(""), None);
    assert_eq!(normal("?a=b"), None);
    assert_eq!(normal("#a"), None);
}

#[test]
fn normalized_text_is_not_copied() {
    let mut buffer = String::new();
    assert_eq!(
        normalise("/api/v2/users.json", &mut buffer),
        Some("/api/v2/users.json")
    );
    assert_eq!(buffer.capacity(), 0);
}

/// Paths made of pieces that are likely to cause mistakes.
fn target() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", ".", "..", "%", "%2", "%2e", "%2E", "%2f", "%41", "%25", "3", "4", "e", "a",
        "?", "#", "://", "http://", " ", "\u{e9}", "*", "~", "\\",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn normalizing_twice_changes_nothing(target in target()) {
        if let Some(once) = normal(&target) {
            prop_assert_eq!(normal(&once), Some(once));
        }
    }

    #[test]
    fn a_normal_path_has_no_empty_and_no_dot_segments(target in target()) {
        if let Some(path) = normal(&target) && path != "/" {
            let mut segments = path.split('/');
            prop_assert_eq!(segments.next(), Some(""));
            for segment in segments {
                prop_assert!(!matches!(segment, "" | "." | ".."), "{}", path);
            }
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
