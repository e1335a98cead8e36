//! What is asked for.

use super::stage::{case, play};
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
        "/a/./b",
        "/a/../b",
        "/a/b/..",
        "/a/%2e%2e/b",
        "/a/.%2E/b",
        "/a;v=1/b;w",
        "/a:b@c!$&'()*+,;=-._~",
        "/a|b",
        "/a\"b",
        "/a<b>",
        "/a{b}",
        "/a^b`c",
        "/a\\b",
        "/a?b={\"c\":[1]}",
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
async fn targets_of_other_forms() {
    let with_host = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    play(vec![
        case("a whole URL", with_host("GET http://shop.example/a?b", "shop.example")),
        case("a whole URL without a path", with_host("GET http://shop.example", "shop.example")),
        case("a whole URL without a path, but a query", with_host("GET http://shop.example?a", "shop.example")),
        case("a whole URL in capitals", with_host("GET HTTP://SHOP.example/a", "shop.example")),
        case("a whole URL with a port", with_host("GET http://shop.example:80/a", "shop.example:80")),
        case("a whole URL by TLS", with_host("GET https://shop.example/a", "shop.example")),
        case("everything", with_host("OPTIONS *", "shop.example")),
        case("bytes beyond ASCII", [&b"GET /\xc3\xbc HTTP/1.1\r\nhost: shop.example\r\n\r\n"[..]].concat()),
        case("bytes beyond UTF-8", [&b"GET /\xff HTTP/1.1\r\nhost: shop.example\r\n\r\n"[..]].concat()),
    ])
    .await;
}

#[tokio::test]
async fn targets_that_lead_nowhere_are_refused() {
    play(vec![
        case("above the root", request("GET", "/../a", &[])),
        case("above the root, in other words", request("GET", "/%2e%2e/a", &[])),
        case("half an escape", request("GET", "/a%2", &[])),
        case("no escape", request("GET", "/a%zz", &[])),
        case("a NUL, escaped", request("GET", "/a%00b", &[])),
        case("a fragment", request("GET", "/a#b", &[])),
        case("no slash", request("GET", "a", &[])),
    ])
    .await;
}
