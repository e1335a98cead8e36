//! Responses.

use super::bodies::{in_chunks, large};
use super::difference::DifferenceReason;
use super::stage::{Case, case, play};
use super::view::DATE;
use crate::kit::{Answer, request};

fn get(name: &'static str, answer: impl AsRef<[u8]>) -> Case {
    by("GET", name, answer)
}

fn by(method: &str, name: &'static str, answer: impl AsRef<[u8]>) -> Case {
    case(name, request(method, "/", &[])).answered(Answer::of(answer))
}

#[tokio::test]
async fn answers_pass_as_they_are() {
    let ok = |lines: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}");
    let five = "Content-Length: 5\r\n";
    let long = "a".repeat(12_000);
    let mut bytes = ok(five, "hello").into_bytes();
    let at = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    bytes.splice(at..at, *b"\r\nX-Name: \xe9\xff\x80");
    play(vec![
        get("by length", ok(five, "hello")),
        get("of nothing", ok("Content-Length: 0\r\n", "")),
        get("in chunks", ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n")),
        get("in chunks, of nothing", ok("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        get("repeated headers", ok("Set-Cookie: a=1; Path=/\r\nX-A: 1\r\nSet-Cookie: b=2\r\nX-A: 2\r\nContent-Length: 0\r\n", "")),
        get("an empty value", ok("X-Empty:\r\nContent-Length: 0\r\n", "")),
        get("spaces and tabs", ok("X-A:1\r\nX-B: \t a  b\tc \r\nContent-Length: 0\r\n", "")),
        get("bytes beyond ASCII", bytes),
        get("a long header", ok(&format!("X-Long: {long}\r\n{five}"), "hello")),
        get("its own Server and Date", ok(&format!("Server: mine/1.0\r\nDate: {DATE}\r\nContent-Length: 0\r\n"), "")),
        get("a place", "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/a?b\r\nContent-Length: 0\r\n\r\n"),
        get("credentials wanted", "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n"),
        get("for caches", ok("Cache-Control: no-cache\r\nETag: W/\"a\"\r\nVary: *\r\nAge: 1\r\nExpires: 0\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nAccept-Ranges: bytes\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n", "")),
        get("for other proxies", ok("X-Accel-Custom: 1\r\nAlt-Svc: h3=\":443\"\r\nContent-Length: 0\r\n", "")),
        get("a part", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello"),
    ])
    .await;
}

#[tokio::test]
async fn statuses_pass_as_they_are() {
    let mut cases = Vec::new();
    for line in [
        "201 Created",
        "202 Accepted",
        "203 Non-Authoritative Information",
        "205 Reset Content",
        "207 Multi-Status",
        "226 IM Used",
        "299 Odd But Legal",
        "300 Multiple Choices",
        "404 Not Found",
        "404 Nothing Here",
        "418 I'm a teapot",
        "429 Too Many Requests",
        "451 Unavailable For Legal Reasons",
        "499 Client",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
        "599 Beyond",
        "999 Far Beyond",
    ] {
        let answer = format!("HTTP/1.1 {line}\r\nContent-Length: 2\r\n\r\nok");
        cases.push(get(line, answer));
    }
    cases.push(get(
        "without a phrase",
        "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok",
    ));
    let foreign = get(
        "with a phrase beyond ASCII",
        b"HTTP/1.1 200 \xe9t\xe9\r\nContent-Length: 2\r\n\r\nok",
    );
    let lines = [
        "- client 1: HTTP/1.1 200 \u{e9}t\u{e9}",
        "+ client 1: HTTP/1.1 200 ",
    ];
    cases.push(foreign.differs(DifferenceReason::Phrase, &lines));
    play(cases).await;
}

#[tokio::test]
async fn responses_without_a_body() {
    play(vec![
        get("204", "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"),
        get("304", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
        get(
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n",
        )
        .differs(DifferenceReason::Length304, &["- client 1: length 5"]),
        by(
            "HEAD",
            "HEAD with a length",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        ),
        by(
            "HEAD",
            "HEAD with length zero",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ),
        by(
            "HEAD",
            "HEAD without a length",
            "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n",
        ),
        by(
            "HEAD",
            "HEAD in chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        by(
            "HEAD",
            "HEAD of what is not there",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n",
        ),
        by(
            "OPTIONS",
            "OPTIONS",
            "HTTP/1.1 200 OK\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\n\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn large_answers() {
    let big = large(5 << 20);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", big.len());
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let in_chunks = [&chunked[..], &in_chunks(&big)].concat();
    let to_the_end = [b"HTTP/1.1 200 OK\r\n\r\n", &big[..]].concat();
    play(vec![
        get("by length", [head.as_bytes(), &big].concat()),
        get("in chunks", in_chunks),
        case("up to the end", request("GET", "/", &[])).answered(Answer::of(to_the_end).closing()),
    ])
    .await;
}

#[tokio::test]
async fn connection_headers_of_upstreams_are_not_forwarded() {
    let closing = |text: &str| Answer::of(text).closing();
    let asked = |name| case(name, request("GET", "/", &[]));
    play(vec![
        asked("closed").answered(closing("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")),
        asked("up to the end").answered(closing("HTTP/1.1 200 OK\r\n\r\nhello")),
        asked("up to the end, of nothing").answered(closing("HTTP/1.1 200 OK\r\n\r\n")),
        asked("of old").answered(closing("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")),
        asked("of old, up to the end").answered(closing("HTTP/1.0 200 OK\r\n\r\nhello")),
        get("kept", "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok"),
        get("with headers of its own", "HTTP/1.1 200 OK\r\nConnection: x-mine\r\nX-Mine: 1\r\nX-Theirs: 2\r\nContent-Length: 2\r\n\r\nok")
            .differs(DifferenceReason::HopByHop, &["- client 1: x-mine: 1"]),
        get("offering an upgrade", "HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nok")
            .differs(DifferenceReason::HopByHop, &["- client 1: upgrade: h2c"]),
    ])
    .await;
}

#[tokio::test]
async fn trailers_of_answers() {
    let answer = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
    play(vec![
        get("not asked for", answer),
        case("asked for", request("GET", "/", &["te: trailers"]))
            .answered(Answer::of(answer))
            .differs(
                DifferenceReason::Trailers,
                &["+ upstream 1: te: trailers", "+ client 1: trailer x-sum: 1"],
            ),
    ])
    .await;
}
