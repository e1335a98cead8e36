//! Requests within requests: bytes that two programs could read in two ways.
//!
//! Each is refused with 400, and nothing else is heard on its connection. The upstream sees nothing of
//! one that is refused for its head; of one that is refused for its body it may see the beginning, but
//! never the end. And it never sees what is hidden in it.
//!
//! | module | what is read in two ways |
//! |---|---|
//! | `lengths` | how long a body is |
//! | `heads` | where a head or a line of it ends, and whom it is for |
//! | `bodies` | where chunks end, and what a body is |
//! | `paths` | which route a path takes |
//! | `downgrade` | HTTP/2 that becomes HTTP/1.1 on its way |

mod bodies;
mod downgrade;
mod heads;
mod lengths;
mod paths;

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
        self.complaint_of([bytes.to_vec()], of).await
    }

    /// The same, of bytes that are sent one piece after the other.
    async fn complaint_of(
        &self,
        pieces: impl IntoIterator<Item = Vec<u8>>,
        of: Part,
    ) -> Result<(), String> {
        self.upstream.seen();
        let mut client = Client::connect(self.gate.address).await;
        client.messages.stream.set_nodelay(true).unwrap();
        for piece in pieces {
            // It may have heard enough before it has heard everything.
            client.try_send(piece).await.ok();
        }
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
            complaints.push(format!("{name:?}: {complaint}"));
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
async fn however_they_are_cut_into_pieces() {
    let stage = Stage::set().await;
    for (of, bytes) in [
        (
            Part::Head,
            both("content-length: 5\r\ntransfer-encoding: chunked"),
        ),
        (Part::Head, both("content-length: 5\r\ncontent-length: 6")),
        (Part::Head, both("transfer-encoding:\r\n chunked")),
        (Part::Head, raw("GET / HTTP/1.1\r\nhost: a\n\r\n")),
        (
            Part::Head,
            raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\rz\r\n\r\n"),
        ),
        (Part::Body, chunks("5\r\nhello\n0\r\n\r\n")),
        (Part::Body, chunks("5\r\nhello\r\n0\r\nx : y\r\n\r\n")),
    ] {
        let pieces = bytes.iter().map(|byte| vec![*byte]);
        let complaint = stage.complaint_of(pieces, of).await;
        assert_eq!(complaint, Ok(()), "{:?}", text(&bytes));
    }
}
