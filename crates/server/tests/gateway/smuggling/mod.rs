//! Request smuggling: bytes that two programs could read in two ways.
//!
//! Each request is refused with 400, and nothing else is read on its connection. The upstream sees
//! nothing of a request that is refused for its head. If it is refused for its body, the upstream
//! may see the beginning, but never the end. And it never sees the hidden request.
//!
//! | module | ambiguity |
//! |---|---|
//! | `lengths` | the length of a body |
//! | `heads` | the end of a head or of its lines, and its host |
//! | `bodies` | the ends of chunks and bodies |
//! | `paths` | the route of a path |
//! | `downgrade` | HTTP/2 that becomes HTTP/1.1 |

mod bodies;
mod downgrade;
mod heads;
mod lengths;
mod paths;

use crate::kit::message::text;
use crate::kit::{Client, Gate, Upstream, gate, get};

/// The request hidden behind each of them, unless the case has another.
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

    /// Returns an error if `bytes` were not refused correctly.
    async fn complaint(&self, bytes: &[u8], of: Part) -> Result<(), String> {
        self.complaint_of([bytes.to_vec()], of).await
    }

    /// Returns the same for bytes that are sent in several pieces.
    async fn complaint_of(
        &self,
        pieces: impl IntoIterator<Item = Vec<u8>>,
        of: Part,
    ) -> Result<(), String> {
        self.upstream.seen();
        let mut client = Client::connect(self.gate.address).await;
        client.messages.stream.set_nodelay(true).unwrap();
        for piece in pieces {
            // The gateway may close before it has received everything.
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
        // Bytes in flight to the upstream arrive before this request.
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

/// The invalid part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    Body,
}

/// Checks that all of these are refused, and fails with all errors.
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

/// Returns a POST with these lines and this rest.
fn post(lines: &str, rest: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nhost: shop.example\r\n{lines}\r\n\r\n{rest}").into_bytes()
}

/// Returns a request with a length of 5 bytes and a complete chunked body within it.
fn both(lines: &str) -> Vec<u8> {
    post(lines, &format!("0\r\n\r\n{HIDDEN}"))
}

/// Returns a request with a chunked body.
fn chunks(body: &str) -> Vec<u8> {
    post("transfer-encoding: chunked", &format!("{body}{HIDDEN}"))
}

/// Returns a request with another behind it.
fn raw(bytes: &str) -> Vec<u8> {
    format!("{bytes}{HIDDEN}").into_bytes()
}

/// The corpus must be refused for its invalid part only.
#[tokio::test]
async fn the_hidden_request_is_valid_on_its_own() {
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
async fn ambiguous_requests_are_rejected_at_any_split() {
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
