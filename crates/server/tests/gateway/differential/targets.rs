//! Request targets.

use super::difference::DifferenceReason;
use super::stage::{case, play, verdict};
use crate::kit::request;

#[tokio::test]
async fn targets_pass_as_they_are() {
    let long = format!("/{}", "a".repeat(6_000));
    let query = format!("/?{}", "a=b&".repeat(1_000));
    let mut cases = Vec::new();
    for target in [
        "/",
        "/?",
        "/a?",
        "/a?b=c?d=e",
        "/a?b=%26&c=+&d=%2B",
        "/a%20b",
        "/a%2fb",
        "/a%2Fb",
        "/%41%42",
        "/%e2%82%ac",
        "/a//b",
        "//a",
        "/a;v=1/b;w",
        "/a:b@c!$&'()*+,;=-._~",
        "/a|b",
        "/a\"b",
        "/a{b}",
        "/a^b",
        "/a\\b",
        "/a?b={c}&d[]=1",
        "/a?b=|^`\\",
        "/a?/../b",
        &long,
        &query,
    ] {
        let name: &'static str = target.to_owned().leak();
        cases.push(case(name, request("GET", target, &[])));
    }
    play(cases).await;
}

#[tokio::test]
async fn targets_with_dot_segments_pass_as_decided() {
    let cases = [
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a"),
        ("/a/%2e%2e/b", "/b"),
        ("/a/.%2E/b", "/b"),
    ];
    let cases = cases.map(|(target, decided)| {
        let name: &'static str = target.to_owned().leak();
        let line = |sign: &str, path: &str| -> [&'static str; 2] {
            let bytes = "GET ".len() + path.len();
            [
                format!("{sign} upstream 1: GET {path} HTTP/1.1").leak(),
                format!("{sign} client 1: body by length, {bytes} bytes: GET {path}").leak(),
            ]
        };
        let lines = [line("-", target), line("+", decided)].concat();
        case(name, request("GET", target, &[])).differs(DifferenceReason::Steps, lines.leak())
    });
    play(cases.into()).await;
}

#[tokio::test]
async fn targets_of_other_forms() {
    let with_host = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    play(vec![
        case(
            "a whole URL",
            with_host("GET http://shop.example/a?b", "shop.example"),
        ),
        case(
            "a whole URL without a path",
            with_host("GET http://shop.example", "shop.example"),
        ),
        case(
            "a whole URL without a path, but a query",
            with_host("GET http://shop.example?a", "shop.example"),
        ),
        case(
            "a whole URL in capitals",
            with_host("GET HTTP://SHOP.example/a", "shop.example"),
        )
        .differs(
            DifferenceReason::TargetFirst,
            &[
                "- upstream 1: host: shop.example",
                "- upstream 1: x-forwarded-host: shop.example",
                "+ upstream 1: host: SHOP.example",
                "+ upstream 1: x-forwarded-host: SHOP.example",
            ],
        ),
        case(
            "a whole URL with a port",
            with_host("GET http://shop.example:80/a", "shop.example:80"),
        ),
        case(
            "a whole URL by TLS",
            with_host("GET https://shop.example/a", "shop.example"),
        ),
        verdict("everything", with_host("OPTIONS *", "shop.example")).differs(
            DifferenceReason::Asterisk,
            &["- refused with 400", "+ passed as OPTIONS * HTTP/1.1"],
        ),
        case(
            "bytes beyond ASCII",
            b"GET /\xc3\xbc HTTP/1.1\r\nhost: shop.example\r\n\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn targets_above_the_root_are_rejected() {
    let mut cases = Vec::new();
    for target in [
        "/..",
        "/../a",
        "/%2e%2e/a",
        "/a/../../b",
        "/a/.%2E/..",
        "//../a",
        "a",
        "a:80",
    ] {
        cases.push(verdict(target, request("GET", target, &[])));
    }
    play(cases).await;
}

#[tokio::test]
async fn targets_that_are_no_paths_of_a_uri() {
    let mut cases = Vec::new();
    for target in ["/a<b>", "/a`b", "/a?b=\"c\"", "/a?b=<c>"] {
        let passed = format!("- passed as GET {target} HTTP/1.1");
        let lines = [passed.as_str(), "+ refused with 400"];
        let case = verdict(target, request("GET", target, &[]));
        cases.push(case.differs(DifferenceReason::NoUri, &lines));
    }
    let bytes = b"GET /\xff HTTP/1.1\r\nhost: shop.example\r\n\r\n";
    let lines = ["- passed as GET /\u{ff} HTTP/1.1", "+ refused with 400"];
    cases.push(verdict("beyond UTF-8", bytes).differs(DifferenceReason::NoUri, &lines));
    for target in ["/a%2", "/a%zz", "/a%00b"] {
        let passed = format!("+ passed as GET {target} HTTP/1.1");
        let lines = ["- refused with 400", passed.as_str()];
        let case = verdict(target, request("GET", target, &[]));
        cases.push(case.differs(DifferenceReason::Escapes, &lines));
    }
    let lines = [
        "- passed as GET /a#b HTTP/1.1",
        "+ passed as GET /a HTTP/1.1",
    ];
    let case = verdict("a fragment", request("GET", "/a#b", &[]));
    cases.push(case.differs(DifferenceReason::Fragment, &lines));
    play(cases).await;
}
