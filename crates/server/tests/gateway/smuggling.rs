//! Requests within requests: bytes that two programs could read in two ways.
//!
//! Each is refused with 400, and nothing else is heard on its connection. The upstream sees nothing of
//! one that is refused for its head; of one that is refused for its body it may see the beginning, but
//! never the end. And it never sees what is hidden in it.

use crate::kit::message::text;
use crate::kit::{Client, Gate, Upstream, gate, get};

/// What is hidden behind each of them, unless it has something of its own.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: shop.example\r\n\r\n";

struct Stage {
    upstream: Upstream,
    gate: Gate,
}

impl Stage {
    async fn set() -> Self {
        let upstream = Upstream::start().await;
        let gate = gate::open(format!("http://{}", upstream.address), "").await;
        Self { upstream, gate }
    }

    /// What there is to say against what became of `bytes`.
    async fn complaint(&self, bytes: &[u8], of: Part) -> Result<(), String> {
        self.upstream.seen();
        let mut client = Client::connect(self.gate.address).await;
        // It may have heard enough before it has heard everything.
        client.try_send(bytes).await.ok();
        let reply = match client.try_reply("POST").await {
            Ok(Some(reply)) => reply,
            other => return Err(format!("no answer: {other:?}")),
        };
        if reply.status() != 400 {
            return Err(format!("answered with {}", reply.head.line));
        }
        if !client.is_closed().await {
            return Err(format!("goes on: {:?}", text(&client.messages.ahead)));
        }
        // What was on its way to the upstream has come there before this has.
        assert_eq!(
            get(self.gate.address, "/after", &[]).await.text(),
            "GET /after"
        );
        let begun = self.upstream.begun();
        let seen = self.upstream.seen();
        if seen.len() != 1 {
            return Err(format!("the upstream saw {seen:#?}"));
        }
        let hidden = |line: &str| line.contains("hidden");
        let is_too_many = match of {
            Part::Head => begun.len() != 1,
            Part::Body => begun.iter().any(|head| hidden(&head.line)),
        };
        if is_too_many {
            return Err(format!("the upstream saw the beginning of {begun:#?}"));
        }
        Ok(())
    }
}

/// What of a request is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    Body,
}

/// Has all of these refused, and fails with everything that is to be said against it.
async fn refuse(of: Part, corpus: &[(&str, Vec<u8>)]) {
    let stage = Stage::set().await;
    let mut complaints = Vec::new();
    for (name, bytes) in corpus {
        if let Err(complaint) = stage.complaint(bytes, of).await {
            complaints.push(format!("{name}: {complaint}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A POST with these lines, and what comes after its head.
fn post(lines: &str, rest: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nhost: shop.example\r\n{lines}\r\n\r\n{rest}").into_bytes()
}

/// A body of 5 bytes by length, and a whole one in chunks within it; and so on.
fn both(lines: &str) -> Vec<u8> {
    post(lines, &format!("0\r\n\r\n{HIDDEN}"))
}

/// A body in chunks.
fn chunks(body: &str) -> Vec<u8> {
    post("transfer-encoding: chunked", &format!("{body}{HIDDEN}"))
}

/// A whole request as it is, with another behind it.
fn raw(bytes: &str) -> Vec<u8> {
    format!("{bytes}{HIDDEN}").into_bytes()
}

/// That the corpus is refused for what is wrong with it, and not for what is right.
#[tokio::test]
async fn what_is_hidden_is_a_request_where_it_is_not_hidden() {
    let stage = Stage::set().await;
    let mut client = Client::connect(stage.gate.address).await;
    for good in [
        post("content-length: 0", HIDDEN),
        chunks("5\r\nhello\r\n0\r\n\r\n"),
        chunks("0\r\nx-sum: 1\r\n\r\n"),
        raw("GET / HTTP/1.1\r\nhost: shop.example\r\n\r\n"),
    ] {
        client.send(good).await;
        assert_eq!(client.reply("POST").await.status(), 200);
        assert_eq!(client.reply("GET").await.text(), "GET /hidden");
    }
    assert_eq!(stage.upstream.seen().len(), 8);
}

#[tokio::test]
async fn a_length_and_chunks_together() {
    refuse(
        Part::Head,
        &[
            ("CL.TE", both("content-length: 5\r\ntransfer-encoding: chunked")),
            ("TE.CL", both("transfer-encoding: chunked\r\ncontent-length: 5")),
            ("CL.TE, no length", both("content-length: 0\r\ntransfer-encoding: chunked")),
            ("CL.TE in capitals", both("Content-LENGTH: 5\r\nTRANSFER-Encoding: Chunked")),
            ("TE.CL far apart", both("transfer-encoding: chunked\r\nx-a: 1\r\nx-b: 2\r\ncontent-length: 5")),
            (
                "TE.CL in a GET",
                raw("GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn chunks_that_only_some_can_see() {
    let lines = [
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: gzip",
        "transfer-encoding: identity",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunkedx",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: 'chunked'",
        "transfer-encoding: chunked;q=1",
        "transfer-encoding: chunked,",
        "transfer-encoding: ,chunked",
        "transfer-encoding:",
        "transfer-encoding: \u{b}chunked",
        "transfer-encoding: chunked\u{c}",
        "transfer-encoding : chunked",
        "transfer-encoding\t: chunked",
        " transfer-encoding: chunked",
        "x: y\r\n transfer-encoding: chunked",
        "transfer-encoding:\r\n chunked",
        "transfer-encoding: chunked\r\n , identity",
        "transfer_encoding: chunked",
        "transfer-encoding\0: chunked",
        "transfer-encoding: chunked\0",
        "transfer-encoding\r: chunked",
        "transfer-encoding: chunked\r",
        "x: y\ntransfer-encoding: chunked",
        "x: y\rtransfer-encoding: chunked",
        "transfer-encoding; chunked",
        "transfer encoding: chunked",
        "transfer-encoding",
    ];
    let corpus: Vec<_> = lines.iter().map(|line| (*line, both(line))).collect();
    refuse(Part::Head, &corpus).await;
    let with_length = |line: &&str| both(&format!("content-length: 5\r\n{line}"));
    let corpus: Vec<_> = lines
        .iter()
        .map(|line| (*line, with_length(line)))
        .collect();
    refuse(Part::Head, &corpus).await;
}

#[tokio::test]
async fn chunks_of_old_clients() {
    let old = "POST / HTTP/1.0\r\nhost: shop.example\r\ntransfer-encoding: chunked\r\n";
    refuse(
        Part::Head,
        &[
            ("alone", raw(&format!("{old}\r\n0\r\n\r\n"))),
            (
                "kept",
                raw(&format!("{old}connection: keep-alive\r\n\r\n0\r\n\r\n")),
            ),
            (
                "with a length",
                raw(&format!("{old}content-length: 5\r\n\r\n0\r\n\r\n")),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn lengths_that_are_not_one_number_said_once() {
    let lines = [
        "content-length: 5\r\ncontent-length: 5",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 0\r\nContent-Length: 44",
        "content-length: 5, 5",
        "content-length: 5, 6",
        "content-length: 5,",
        "content-length: +5",
        "content-length: -5",
        "content-length: 0x5",
        "content-length: 5.0",
        "content-length: 5e0",
        "content-length: 5 5",
        "content-length: 5;",
        "content-length: \"5\"",
        "content-length: five",
        "content-length:",
        "content-length: 99999999999999999999",
        "content-length: 18446744073709551616",
        "content-length: 5\u{b}",
        "content-length : 5",
        "content-length\t: 5",
        " content-length: 5",
        "content-length:\r\n 5",
        "content-length: 5\r\n 0",
        "content_length: 5",
        "content-length\0: 5",
        "content-length: 5\0",
        "content-length: 5\r",
        "x: y\ncontent-length: 5",
        "x: y\rcontent-length: 5",
    ];
    let corpus: Vec<_> = lines.iter().map(|line| (*line, both(line))).collect();
    refuse(Part::Head, &corpus).await;
}

#[tokio::test]
async fn heads_that_end_in_two_places() {
    refuse(
        Part::Head,
        &[
            ("bare LF throughout", raw("GET / HTTP/1.1\nhost: a\n\n")),
            (
                "bare LF after the first line",
                raw("GET / HTTP/1.1\nhost: a\r\n\r\n"),
            ),
            (
                "bare LF after a header",
                raw("GET / HTTP/1.1\r\nhost: a\nx: y\r\n\r\n"),
            ),
            ("bare LF at the end", raw("GET / HTTP/1.1\r\nhost: a\r\n\n")),
            (
                "bare LF before CRLF",
                raw("GET / HTTP/1.1\r\nhost: a\n\r\n"),
            ),
            ("bare CR throughout", raw("GET / HTTP/1.1\rhost: a\r\r")),
            (
                "bare CR in a value",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\rz\r\n\r\n"),
            ),
            (
                "bare CR in a name",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx\ry: z\r\n\r\n"),
            ),
            (
                "bare CR at the end",
                raw("GET / HTTP/1.1\r\nhost: a\r\n\rx\r\n\r\n"),
            ),
            ("two CR", raw("GET / HTTP/1.1\r\nhost: a\r\r\n\r\n")),
            (
                "a fold",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n z\r\n\r\n"),
            ),
            (
                "a fold by a tab",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n\tz\r\n\r\n"),
            ),
            (
                "a fold of nothing",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n \r\n\r\n"),
            ),
            (
                "a fold of the first line",
                raw("GET / HTTP/1.1\r\n host: a\r\nhost: a\r\n\r\n"),
            ),
            (
                "a space before the colon",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx : y\r\n\r\n"),
            ),
            (
                "a space within a name",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx y: z\r\n\r\n"),
            ),
            ("no colon", raw("GET / HTTP/1.1\r\nhost: a\r\nx\r\n\r\n")),
            ("no name", raw("GET / HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n")),
            (
                "a name beyond ASCII",
                raw("GET / HTTP/1.1\r\nhost: a\r\n\u{fc}: x\r\n\r\n"),
            ),
            (
                "a NUL in a value",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\0z\r\n\r\n"),
            ),
            (
                "a NUL in a name",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx\0: y\r\n\r\n"),
            ),
            (
                "a NUL in the target",
                raw("GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn first_lines_that_are_not_one_method_one_target_one_version() {
    let corpus = [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET / a HTTP/1.1",
        "GET / HTTP/1.1 HTTP/1.1",
        "GET /",
        "GET",
        "GET / HTTP/1.2",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET / HTTP/1.10",
        "GET / HTTP/01.1",
        "GET / http/1.1",
        "GET / HTTP/1,1",
        "GET / HTTP",
        "G(ET / HTTP/1.1",
        "G\u{fc}T / HTTP/1.1",
        "\r\n\r\nGET / HTTP/1.1",
        "\nGET / HTTP/1.1",
    ]
    .map(|line| (line, raw(&format!("{line}\r\nhost: a\r\n\r\n"))));
    refuse(Part::Head, &corpus).await;
}

#[tokio::test]
async fn hosts_that_are_not_one() {
    refuse(
        Part::Head,
        &[
            ("two", raw("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")),
            (
                "the same twice",
                raw("GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n"),
            ),
            ("none", raw("GET / HTTP/1.1\r\n\r\n")),
            (
                "two, one of them before a colon",
                raw("GET / HTTP/1.1\r\nhost: a\r\nhost : b\r\n\r\n"),
            ),
            ("a list", raw("GET / HTTP/1.1\r\nhost: a, b\r\n\r\n")),
            ("a path", raw("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n")),
            ("a space", raw("GET / HTTP/1.1\r\nhost: a b\r\n\r\n")),
            ("a user", raw("GET / HTTP/1.1\r\nhost: a@b\r\n\r\n")),
            (
                "another in the target",
                raw("GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n"),
            ),
            (
                "a user in the target",
                raw("GET http://a@b/ HTTP/1.1\r\nhost: b\r\n\r\n"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn chunks_that_end_in_two_places() {
    let bodies = [
        "5 \r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "\t5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5x\r\nhello\r\n0\r\n\r\n",
        "5,\r\nhello\r\n0\r\n\r\n",
        "5_0\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        ";a=b\r\nhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "ffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "5;a\0b\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhelloXX0\r\n\r\n",
        "5\r\nhello world\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\r\rX\r\n\r\n",
        "5\r\nhello\r\n0\r\nx: y\nz: a\r\n\r\n",
        "5\r\nhello\r\n0\r\nx: y\r\n z\r\n\r\n",
        "5\r\nhello\r\n0\r\nx : y\r\n\r\n",
        "5\r\nhello\r\n0\r\nx\r\n\r\n",
        "5\r\nhello\r\n0\r\nx: \0\r\n\r\n",
        "5\r\nhello\r\n0\r\ncontent-length: 5\r\n\r\n",
        "5\r\nhello\r\n0\r\ntransfer-encoding: chunked\r\n\r\n",
        "5\r\nhello\r\n0\r\nhost: b\r\n\r\n",
    ];
    let mut corpus: Vec<_> = bodies.iter().map(|body| (*body, chunks(body))).collect();
    let extension = format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(100_000));
    corpus.push(("a very long extension", chunks(&extension)));
    refuse(Part::Body, &corpus).await;
}

#[tokio::test]
async fn what_stands_between_two_requests_is_one() {
    let stage = Stage::set().await;
    for between in ["X\r\n", "\n", "\r\n\r\n", "\0", " ", "{}", "0\r\n\r\n"] {
        let mut client = Client::connect(stage.gate.address).await;
        client.send(post("content-length: 5", "hello")).await;
        assert_eq!(client.reply("POST").await.text(), "POST /");
        client.send(raw(between)).await;
        assert_eq!(client.reply("GET").await.status(), 400, "{between:?}");
        assert!(client.is_closed().await, "{between:?}");
        assert_eq!(stage.upstream.seen().len(), 1, "{between:?}");
    }
}

/// A body is a body, whatever it looks like, and whatever the method.
#[tokio::test]
async fn a_request_within_a_body_stays_there() {
    let stage = Stage::set().await;
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "POST", "PROPFIND"] {
        let mut client = Client::connect(stage.gate.address).await;
        let length = HIDDEN.len();
        let head = format!("{method} / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        client.send(format!("{head}{HIDDEN}")).await;
        assert_eq!(client.reply(method).await.status(), 200);
        assert_eq!(client.get("/next", &[]).await.text(), "GET /next");
        let seen = stage.upstream.seen();
        assert_eq!(seen.len(), 2, "{seen:#?}");
        assert_eq!(seen[0].content.bytes, HIDDEN.as_bytes());
    }
}

/// Nor does what an upstream leaves unread of a body become a request to it.
#[tokio::test]
async fn a_request_within_a_body_that_nobody_read_stays_there() {
    let stage = Stage::set().await;
    let early = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
    stage
        .upstream
        .answers(crate::kit::Answer::of(early).early());
    let mut client = Client::connect(stage.gate.address).await;
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n";
    client.send(head).await;
    assert_eq!(client.reply("POST").await.status(), 403);
    stage.upstream.answers(crate::kit::Answer::default());
    // Whether it is still heard or not, it is the body.
    client.try_send(HIDDEN).await.ok();
    assert_eq!(
        get(stage.gate.address, "/after", &[]).await.text(),
        "GET /after"
    );
    let seen = stage.upstream.seen();
    assert!(
        seen.iter().all(|seen| !seen.head.line.contains("hidden")),
        "{seen:#?}"
    );
}

/// What a client says ahead, before it knows whether its connection becomes something else, is a
/// request if it does not.
#[tokio::test]
async fn what_follows_an_upgrade_that_was_not_agreed_is_read_as_strictly() {
    let stage = Stage::set().await;
    let wanted = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let mut client = Client::connect(stage.gate.address).await;
    client
        .send(format!("{wanted}GET /hidden HTTP/1.1\nhost: a\n\n"))
        .await;
    assert_eq!(client.reply("GET").await.status(), 200);
    assert_eq!(client.reply("GET").await.status(), 400);
    assert!(client.is_closed().await);
    assert_eq!(stage.upstream.seen().len(), 1);
    let mut client = Client::connect(stage.gate.address).await;
    client.send(raw(wanted)).await;
    assert_eq!(client.reply("GET").await.status(), 200);
    assert_eq!(client.reply("GET").await.text(), "GET /hidden");
}
