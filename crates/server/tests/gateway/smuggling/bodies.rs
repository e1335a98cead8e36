//! The ends of chunks and bodies.

use super::{HIDDEN, Part, Stage, chunks, refuse};
use crate::kit::{Answer, Client, get};

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

/// A body stays a body, with any content and method.
#[tokio::test]
async fn a_request_within_a_body_is_never_executed() {
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

/// An unread body never becomes a request to the upstream.
#[tokio::test]
async fn a_request_within_an_unread_body_is_never_executed() {
    let stage = Stage::set().await;
    let early = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
    stage.upstream.answers(Answer::of(early).early());
    let mut client = Client::connect(stage.gate.address).await;
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n";
    client.send(head).await;
    assert_eq!(client.reply("POST").await.status(), 403);
    stage.upstream.answers(Answer::default());
    // Received or not, these bytes are the body.
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
