//! Methods and request headers.

use super::difference::DifferenceReason;
use super::stage::{case, play, verdict};
use crate::kit::request;

#[tokio::test]
async fn methods_pass_as_they_are() {
    let mut cases = Vec::new();
    for method in [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "REPORT",
        "M-SEARCH", "PURGE", "QUERY", "X_ODD",
    ] {
        cases.push(case(method, request(method, "/thing", &[])));
        let lines = ["content-length: 0"];
        cases.push(case(method, request(method, "/empty", &lines)));
    }
    play(cases).await;
}

#[tokio::test]
async fn methods_that_are_not_for_proxies_are_refused() {
    play(vec![
        verdict("TRACE", request("TRACE", "/", &[])),
        verdict(
            "CONNECT",
            "CONNECT shop.example:443 HTTP/1.1\r\nhost: shop.example:443\r\n\r\n",
        )
        .differs(
            DifferenceReason::Connect,
            &["- refused with 400", "+ refused with 405"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn odd_but_legal_headers_pass_as_they_are() {
    let long = format!("x-long: {}", "a".repeat(12_000));
    let get = |lines: &[&str]| request("GET", "/", lines);
    let many: Vec<String> = (0..60).map(|nth| format!("x-{nth}: {nth}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    play(vec![
        case("an empty value", get(&["x-empty:", "x-spaces:   "])),
        case(
            "repeated, and others between",
            get(&["x-a: 1", "x-b: 2", "X-A: 3", "x-a:", "x-b: 4", "x-a: 5"]),
        ),
        case(
            "cookies in several lines",
            get(&["cookie: a=1", "cookie: b=2", "Cookie: c=3; d=4"]),
        ),
        case(
            "spaces around values",
            get(&["x-a:1", "x-b:\t 2 \t", "x-c: a  b\tc "]),
        ),
        case(
            "a comma list",
            get(&["accept: text/html, */*;q=0.1", "accept: image/png"]),
        ),
        case(
            "bytes beyond ASCII",
            [
                &b"GET / HTTP/1.1\r\nhost: shop.example\r\nx-name: "[..],
                &[0xe9, 0xff, 0x80, 0xc3, 0xbc],
                b"\r\n\r\n",
            ]
            .concat(),
        ),
        case("a long one", get(&[&long])),
        case("many", get(&many)),
        case(
            "every sign that a name may have",
            get(&["!#$%&'*+-.^`|~09aZ: odd"]),
        ),
        case("an underscore", get(&["x_under_score: 1"])).differs(
            DifferenceReason::Underscore,
            &["- upstream 1: x_under_score: 1"],
        ),
        case(
            "quotes and colons",
            get(&[
                "x-q: \"a:b\\\"c\"",
                "x-time: 12:00:00",
                "authorization: Basic YTpi",
            ]),
        ),
        case(
            "conditions and ranges",
            get(&[
                "if-none-match: W/\"a\", \"b\"",
                "range: bytes=0-5,7-",
                "if-range: \"a\"",
            ]),
        ),
        case(
            "a host with a port",
            "GET / HTTP/1.1\r\nHost: shop.example:8080\r\n\r\n",
        ),
        case(
            "a host in capitals",
            "GET / HTTP/1.1\r\nHost: SHOP.Example\r\n\r\n",
        ),
        case(
            "a host of IPv6",
            "GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n",
        ),
        case(
            "the host last",
            "GET / HTTP/1.1\r\nx-first: 1\r\nHost: shop.example\r\n\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn hop_by_hop_headers_are_not_forwarded() {
    let get = |lines: &[&str]| request("GET", "/", lines);
    play(vec![
        case(
            "keep-alive",
            get(&["connection: keep-alive", "keep-alive: timeout=5"]),
        ),
        case(
            "named by connection",
            get(&["connection: x-mine", "x-mine: 1", "x-theirs: 2"]),
        )
        .differs(DifferenceReason::HopByHop, &["- upstream 1: x-mine: 1"]),
        case("of old proxies", get(&["proxy-connection: keep-alive"])).differs(
            DifferenceReason::HopByHop,
            &["- upstream 1: proxy-connection: keep-alive"],
        ),
        case("trailers wanted", get(&["te: trailers"]))
            .differs(DifferenceReason::Trailers, &["+ upstream 1: te: trailers"]),
        case(
            "trailers wanted, and said so",
            get(&["te: trailers", "connection: te"]),
        )
        .differs(DifferenceReason::Trailers, &["+ upstream 1: te: trailers"]),
        case("codings wanted", get(&["te: gzip;q=0.5"])),
        case(
            "credentials for a proxy",
            get(&["proxy-authorization: Basic YTpi"]),
        ),
        case(
            "HTTP/2 offered",
            get(&[
                "connection: upgrade, http2-settings",
                "upgrade: h2c",
                "http2-settings: AAMAAABk",
            ]),
        )
        .differs(
            DifferenceReason::HopByHop,
            &[
                "- upstream 1: http2-settings: AAMAAABk",
                "- upstream 1: upgrade: h2c",
            ],
        ),
    ])
    .await;
}

#[tokio::test]
async fn forwarding_headers_of_untrusted_clients_are_replaced() {
    let forged = [
        "x-forwarded-for: 192.0.2.1",
        "x-forwarded-proto: https",
        "x-forwarded-host: bank.example",
        "x-real-ip: 192.0.2.1",
    ];
    let spoofed = request("GET", "/", &forged);
    play(vec![case("forged", spoofed)]).await;
}
