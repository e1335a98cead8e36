use super::super::ForwardedRequest;
use super::headers;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

fn forwarded(pairs: &[(&'static str, &[u8])]) -> Result<[Option<String>; 3], String> {
    let headers = headers(pairs);
    let told = ForwardedRequest::by(&headers).map_err(|error| error.to_string())?;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok([told.method, told.host, told.uri].map(owned))
}

#[test]
fn a_proxy_supplies_method_target_and_host() {
    for (sent, method, host, uri) in [
        (
            &[
                ("x-forwarded-method", b"POST" as &[u8]),
                ("x-forwarded-uri", b"/a?b=c"),
                ("x-forwarded-host", b"a.example:8443"),
                ("host", b"tidegate.internal"),
            ][..],
            Some("POST"),
            Some("a.example:8443"),
            Some("/a?b=c"),
        ),
        (
            &[
                ("x-original-method", b"PUT"),
                ("x-original-uri", b"/b"),
                ("host", b"tidegate.internal"),
            ],
            Some("PUT"),
            None,
            Some("/b"),
        ),
        (
            &[("x-original-url", b"https://a.example/c?d")],
            None,
            Some("a.example"),
            Some("/c?d"),
        ),
        (
            &[
                ("x-original-url", b"https://A.example:443/c"),
                ("x-original-uri", b"/c"),
                ("x-forwarded-host", b"a.example"),
            ],
            None,
            Some("a.example"),
            Some("/c"),
        ),
        (
            &[
                ("x-forwarded-uri", b"http://evil.example/d"),
                ("x-forwarded-host", b"a.example"),
            ],
            None,
            Some("a.example"),
            Some("/d"),
        ),
        (
            &[("x-forwarded-uri", b"http://a.example?d")],
            None,
            Some("a.example"),
            Some("http://a.example?d"),
        ),
        (
            &[("x-forwarded-uri", b""), ("x-original-uri", b"/e")],
            None,
            None,
            Some("/e"),
        ),
        (&[("host", b"tidegate.internal")], None, None, None),
    ] {
        let seen = forwarded(sent).expect("it agrees with itself");
        let seen = seen.each_ref().map(Option::as_deref);
        assert_eq!(seen, [method, host, uri], "{sent:?}");
    }
}

#[test]
fn contradictory_proxy_headers_are_rejected() {
    for (sent, message) in [
        (
            &[
                ("x-forwarded-uri", b"/a" as &[u8]),
                ("x-forwarded-uri", b"/a"),
            ][..],
            "duplicate X-Forwarded-Uri",
        ),
        (
            &[("x-original-uri", b"/a"), ("x-original-uri", b"/b")],
            "duplicate X-Original-URI",
        ),
        (
            &[("x-forwarded-host", b"a"), ("x-forwarded-host", b"b")],
            "duplicate X-Forwarded-Host",
        ),
        (
            &[("x-forwarded-uri", b"/a"), ("x-original-uri", b"/b")],
            "X-Forwarded-Uri and X-Original-URI differ",
        ),
        (
            &[
                ("x-forwarded-uri", b"/a"),
                ("x-original-url", b"http://h/b"),
            ],
            "X-Forwarded-Uri and X-Original-URL differ",
        ),
        (
            &[("x-original-uri", b"/a"), ("x-original-url", b"http://h/b")],
            "X-Original-URI and X-Original-URL differ",
        ),
        (
            &[
                ("x-forwarded-method", b"GET"),
                ("x-original-method", b"POST"),
            ],
            "X-Forwarded-Method and X-Original-Method differ",
        ),
        (
            &[("x-forwarded-host", b"a"), ("x-original-url", b"http://b/")],
            "X-Forwarded-Host and X-Original-URL differ",
        ),
        (
            &[("x-forwarded-method", b"GET, POST")],
            "X-Forwarded-Method is not a method",
        ),
        (
            &[("x-forwarded-host", b"a, b")],
            "X-Forwarded-Host is not one host",
        ),
        (
            &[("x-forwarded-uri", b"/a\xff")],
            "X-Forwarded-Uri is not text",
        ),
        (
            &[("x-original-uri", b"/free#/../login")],
            "X-Original-URI is not a target",
        ),
    ] {
        assert_eq!(forwarded(sent).expect_err("one of them is forged"), message);
    }
}

#[test]
fn the_query_of_a_forwarded_uri_is_extracted() {
    for (uri, query) in [
        ("/a", None),
        ("/a?", Some("")),
        ("/a?b=c&d", Some("b=c&d")),
        ("/a?b?c", Some("b?c")),
        ("http://h?x", Some("x")),
    ] {
        let told = ForwardedRequest {
            uri: Some(uri),
            ..ForwardedRequest::default()
        };
        assert_eq!(told.query(), query, "{uri}");
    }
}

/// Returns a header that may carry a target, or not, with a value from a client.
fn forgery() -> impl Strategy<Value = (&'static str, String)> {
    let names = [
        "x-forwarded-uri",
        "x-original-uri",
        "x-original-url",
        "x-forwarded-host",
        "x-forwarded-method",
        "x-rewrite-url",
        "host",
    ];
    let values = prop_oneof![
        Just("/a?b".to_owned()),
        Just("http://shop.test/a?b".to_owned()),
        Just(String::new()),
        "[ -~]{0,12}",
        "/[a-z/?#.%]{0,8}",
        "https?://[a-z@:.]{0,6}[/?#]?[a-z]{0,3}",
    ];
    (proptest::sample::select(names.to_vec()), values)
}

proptest! {
    /// A header added by a client never changes the proxy's values; it can only cause an error.
    #[test]
    fn client_headers_never_change_the_values_of_the_proxy(
        by in proptest::sample::select(&["x-forwarded-uri", "x-original-uri"][..]),
        added in proptest::collection::vec(forgery(), 0..4),
    ) {
        let mut headers = headers(&[(by, b"/a?b")]);
        for (name, value) in &added {
            let value = HeaderValue::from_str(value).expect("visible characters");
            headers.append(HeaderName::from_static(name), value);
        }
        if let Ok(told) = ForwardedRequest::by(&headers) {
            prop_assert_eq!(told.uri, Some("/a?b"));
            prop_assert_eq!(told.query(), Some("b"));
        }
    }
}
