//! Responses that are not forwarded.

use super::{get, however_cut};
use http::Method;

fn refused(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let read = get(bytes);
    let Err(why) = read else {
        panic!("{:?} is {read:?}", String::from_utf8_lossy(bytes));
    };
    why
}

#[test]
fn invalid_http_is_rejected_at_any_split() {
    for bytes in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "\u{16}\u{3}\u{1}hello\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 9999 Odd\r\n\r\n",
        "HTTP/1.1 20 Odd\r\n\r\n",
        "HTTP/1.1 099 Odd\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname : value\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: value\r\n\r\n",
        "HTTP/1.1 200 OK\r\n name: value\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname: folded\r\n value\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname: a\rb\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname: a\u{0}b\r\n\r\n",
    ] {
        let read = however_cut(&Method::GET, bytes.as_bytes());
        assert!(read.is_err(), "{bytes:?} is {read:?}");
    }
}

#[test]
fn an_ambiguous_end_is_rejected() {
    for fields in [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: identity",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "content-length: 5\r\ncontent-length: 5",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 5",
        "content-length: 5,",
        "content-length:",
        "content-length: +5",
        "content-length: -5",
        "content-length: 0x5",
        "content-length: 5 5",
        "content-length: 18446744073709551616",
    ] {
        refused(format!(
            "HTTP/1.1 200 OK\r\n{fields}\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ));
    }
    refused("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n");
}

#[test]
fn chunks_with_a_wrong_size_are_rejected_at_any_split() {
    for chunks in [
        "\r\nhello\r\n0\r\n\r\n",
        "x\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nno colon\r\n\r\n",
        "5\r\nhello\r\n0\r\nx: 1\n\r\n",
        "5\r\nhello\r\n0\r\nx: 1\rx\r\n\r\n",
        "5\r\nhello\r\n0\r\n x: 1\r\n\r\n",
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        let read = however_cut(&Method::GET, bytes.as_bytes());
        assert!(read.is_err(), "{chunks:?} is {read:?}");
    }
}

#[test]
fn an_answer_that_ends_too_early_is_not_complete() {
    for whole in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ] {
        for at in 0..whole.len() {
            refused(&whole[..at]);
        }
        assert!(get(whole.as_bytes()).is_ok());
    }
}

#[test]
fn every_part_of_a_response_is_bounded() {
    let line = |bytes: usize| format!("x: {}\r\n", "x".repeat(bytes));
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n");
    assert!(get(head(&line(60 << 10)).as_bytes()).is_ok());
    refused(head(&line(70 << 10)));
    // Nor if it never ends.
    refused(format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(70 << 10)));
    assert!(get(head(&line(1).repeat(99)).as_bytes()).is_ok());
    refused(head(&line(1).repeat(100)));

    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let extended = |bytes| format!("{chunked}2;{}\r\nok\r\n0\r\n\r\n", "x".repeat(bytes));
    assert!(get(extended(200).as_bytes()).is_ok());
    refused(extended(300));
    let trailed = |fields: &str| format!("{chunked}2\r\nok\r\n0\r\n{fields}\r\n");
    assert!(get(trailed(&line(15 << 10)).as_bytes()).is_ok());
    refused(trailed(&line(17 << 10)));
    refused(trailed(&line(1).repeat(101)));
    // The largest size that fits, and one beyond.
    let size = |digits: &str| format!("{chunked}{digits}\r\nok");
    assert!(refused(size("ffffffffffffffff")).contains("closed"));
    assert!(refused(size("10000000000000000")).contains("size"));
}

/// Otherwise a head that comes byte by byte would be parsed a thousand times for each of its bytes.
#[test]
fn a_long_head_is_parsed_byte_by_byte_in_linear_time() {
    let fields = format!("x-more: {}\r\n", "x".repeat(500)).repeat(90);
    let bytes = format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\nok");
    let read = crate::http1::whole::read(&Method::GET, bytes.as_bytes().chunks(1));
    assert_eq!(read, get(bytes.as_bytes()));
    assert_eq!(read.unwrap().headers.len(), 91);
}
