use super::fixtures::{first, limit_if, met, on_host, subject};
use crate::matching::HostPattern;
use crate::{KeyPart, Request};

fn check(pattern: &str, hosts: &[&str], others: &[&str]) {
    let policy = first(vec![limit_if("it", on_host(pattern))]);
    for host in hosts {
        assert_eq!(
            met(&policy, &Request::new().host(host)),
            "it",
            "{pattern} {host}"
        );
    }
    for host in others {
        assert_eq!(
            met(&policy, &Request::new().host(host)),
            "",
            "{pattern} {host}"
        );
    }
    assert_eq!(met(&policy, &Request::new()), "", "{pattern} without host");
}

#[test]
fn case_port_and_final_dot_do_not_count() {
    check(
        "Example.com",
        &[
            "example.com",
            "EXAMPLE.com:8080",
            "example.com.",
            "example.com.:443",
        ],
        &["a.example.com", "example.org", "", ":80"],
    );
    check("example.com.", &["example.com"], &[]);
}

#[test]
fn a_wildcard_is_one_label_or_more() {
    check(
        "*.example.com",
        &["a.example.com", "a.B.example.com:1"],
        &[
            "example.com",
            ".example.com",
            "aexample.com",
            "a.example.com.evil.org",
        ],
    );
}

#[test]
fn ipv6_hosts_keep_their_colons() {
    check(
        "[2001:DB8::1]",
        &["[2001:db8::1]", "[2001:db8::1]:80"],
        &["[2001:db8::2]:80"],
    );
}

#[test]
fn keys_have_exactly_one_encoding() {
    let key = |host| subject(&[KeyPart::Host], &Request::new().host(host));
    assert_eq!(key("Example.COM.:443"), "host:example.com");
    assert_eq!(key("example.com"), "host:example.com");
    assert_eq!(key(":443"), "host~unknown");
}

#[test]
fn invalid_hosts_are_rejected() {
    let cases = [
        ("", "names no host"),
        ("*.", "names no host"),
        ("..", "names no host"),
        (".example.com", "names no host"),
        ("*", "may use `*` only"),
        ("a.*.com", "may use `*` only"),
        ("*a.com", "may use `*` only"),
        ("example.com:80", "must not have a port"),
        ("[::1]:80", "must not have a port"),
        ("http://example.com", "without scheme"),
        ("example.com/a", "without scheme"),
        ("b\u{fc}cher.example", "ASCII"),
    ];
    for (text, why) in cases {
        let error = HostPattern::parse(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}
