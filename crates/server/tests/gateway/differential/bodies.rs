//! Request bodies.

use super::difference::DifferenceReason;
use super::stage::{Case, case, play, steps};
use crate::kit::{Answer, request};

/// Returns a request with a body.
pub(super) fn with_body(lines: &[&str], body: &[u8]) -> Vec<u8> {
    [request("POST", "/upload", lines).as_bytes(), body].concat()
}

/// Returns a request with a chunked body.
pub(super) fn chunked(body: &str) -> Vec<u8> {
    with_body(&["transfer-encoding: chunked"], body.as_bytes())
}

/// Returns a case with a chunked body, which nginx sends with a length.
fn counted(name: &'static str, bytes: Vec<u8>, body: &str) -> Case {
    let bodied = |sign, by| {
        format!(
            "{sign} upstream 1: body by {by}, {} bytes: {body}",
            body.len()
        )
    };
    let lines = [bodied("-", "length"), bodied("+", "chunks")];
    let lines = lines.each_ref().map(String::as_str);
    case(name, bytes).differs(DifferenceReason::Counted, &lines)
}

/// Returns these bytes, chunked.
pub(super) fn in_chunks(bytes: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for chunk in bytes.chunks(100_000) {
        chunks.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunks.extend([chunk, b"\r\n"].concat());
    }
    chunks.extend(b"0\r\n\r\n");
    chunks
}

/// Returns bytes without repetition.
pub(super) fn large(length: usize) -> Vec<u8> {
    (0..length)
        .map(|nth| u8::try_from(nth * nth % 251).unwrap())
        .collect()
}

#[tokio::test]
async fn bodies_pass_as_they_are() {
    let typed = [
        "content-length: 5",
        "content-encoding: gzip",
        "content-type: text/plain; charset=\"utf-8\"",
    ];
    play(vec![
        case("by length", with_body(&["content-length: 5"], b"hello")),
        case(
            "of zeros and all",
            with_body(&["content-length: 4"], &[0, 255, 13, 10]),
        ),
        case("encoded", with_body(&typed, b"hello")),
        counted(
            "in chunks",
            chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
            "hello world",
        ),
        counted("in chunks, of nothing", chunked("0\r\n\r\n"), ""),
        counted(
            "in chunks with zeros and capitals",
            chunked("00A\r\n0123456789\r\n000\r\n\r\n"),
            "0123456789",
        ),
        counted(
            "in chunks with extensions",
            chunked("5;a=b;c=\"d e\"\r\nhello\r\n0;last\r\n\r\n"),
            "hello",
        ),
    ])
    .await;
}

#[tokio::test]
async fn large_bodies_pass_as_they_are() {
    let big = large(5 << 20);
    let length = format!("content-length: {}", big.len());
    let in_chunks = [chunked(""), in_chunks(&big)].concat();
    play(vec![
        case("by length", with_body(&[&length], &big)),
        case("in chunks", in_chunks),
    ])
    .await;
}

#[tokio::test]
async fn bodies_pass_with_methods_that_seldom_have_one() {
    let mut cases = Vec::new();
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "PROPFIND"] {
        let by_length = request(method, "/", &["content-length: 2"]) + "ab";
        cases.push(case(method, by_length));
        let head = request(method, "/", &["transfer-encoding: chunked"]);
        let in_chunks = head + "2\r\nab\r\n0\r\n\r\n";
        cases.push(counted(method, in_chunks.into_bytes(), "ab"));
    }
    play(cases).await;
}

#[tokio::test]
async fn trailers_of_requests() {
    let with =
        |lines: &[&str]| with_body(lines, b"5\r\nhello\r\n0\r\nX-Sum: 1\r\nx-other: 2\r\n\r\n");
    let announced = with(&["transfer-encoding: chunked", "trailer: x-sum, x-other"]);
    play(vec![
        counted("announced", announced, "hello").differs(
            DifferenceReason::Trailers,
            &[
                "+ upstream 1: trailer x-sum: 1",
                "+ upstream 1: trailer x-other: 2",
            ],
        ),
        counted(
            "not announced",
            with(&["transfer-encoding: chunked"]),
            "hello",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_client_expecting_100_continue_gets_it() {
    let expect = ["expect: 100-continue", "content-length: 5"];
    let head = request("POST", "/upload", &expect);
    let in_chunks = request(
        "POST",
        "/upload",
        &["expect: 100-continue", "transfer-encoding: chunked"],
    );
    play(vec![
        steps("and sends then")
            .sends(&head)
            .hears(100)
            .sends("hello")
            .reads("POST"),
        steps("and sends chunks")
            .sends(in_chunks)
            .hears(100)
            .sends("5\r\nhello\r\n0\r\n\r\n")
            .reads("POST"),
        case("and does not wait", with_body(&expect, b"hello")),
        case(
            "and has nothing to send",
            request("GET", "/", &["expect: 100-continue"]),
        )
        .differs(DifferenceReason::Continue, &["- client 1: before it 100"]),
    ])
    .await;
}

#[tokio::test]
async fn a_response_may_precede_the_end_of_the_request_body() {
    let early =
        Answer::of("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
            .early();
    let begun = request("POST", "/upload", &["content-length: 1000000"]);
    let early = steps("while there is none")
        .sends(&begun)
        .reads("POST")
        .answered(early);
    play(vec![early.unfinished()]).await;
}
