//! The length of a body: by a length, by chunks, or by both.

use super::{Part, both, raw, refuse};

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
async fn content_lengths_other_than_one_number_are_rejected() {
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
