//! Heads that are read by the template of an earlier one, compared with the parser's reading.

use crate::http1::read::{ResponseHead, parse};
use crate::http1::template::HeadMemory;
use bytes::Bytes;
use proptest::prelude::*;
use std::fmt::Write;

/// A head as text, to compare.
fn read(memory: &mut HeadMemory, text: &[u8]) -> String {
    let mut head = ResponseHead::default();
    match parse(&Bytes::copy_from_slice(text), memory, &mut head) {
        Ok(Some(length)) => format!("{length} {head:?}"),
        Ok(None) => "more".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

/// Reads `second` after `first` on one connection. The result must be that of the parser alone.
fn after(first: &[u8], second: &[u8]) {
    let mut memory = HeadMemory::default();
    read(&mut memory, first);
    let alone = read(&mut HeadMemory::default(), second);
    let shown = String::from_utf8_lossy(second);
    assert_eq!(read(&mut memory, second), alone, "{shown:?}");
}

const USUAL: &str = "HTTP/1.1 200 OK\r\nServer: a\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\n\
                     X-Own: 1\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nx-a: b\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n";

#[test]
fn a_template_parses_a_head_with_other_values() {
    let mut memory = HeadMemory::default();
    let mut head = ResponseHead::default();
    for text in [USUAL, CHUNKED] {
        let first = Bytes::from_static(text.as_bytes());
        assert_eq!(memory.read(&first, &mut head), None);
        parse(&first, &mut memory, &mut head).unwrap();
        let second = Bytes::from(text.replace("2030", "2031").replace("12", "7"));
        assert_eq!(memory.read(&second, &mut head), Some(second.len()));
        after(text.as_bytes(), &second);
    }
}

/// Values that are those of the head before are taken from memory, and others are read.
#[test]
fn template_values_may_change_or_repeat() {
    let mut memory = HeadMemory::default();
    let long = "x".repeat(1_000);
    for value in [
        "1", "1", "2", "2", "1", "", "", &long, &long, "3", "4", "5", "5", "1",
    ] {
        for date in ["2030", "2030", "2031"] {
            let text = USUAL.replace("Own: 1", &format!("Own: {value}"));
            let text = text.replace("2030", date);
            let alone = read(&mut HeadMemory::default(), text.as_bytes());
            assert_eq!(read(&mut memory, text.as_bytes()), alone, "{value} {date}");
        }
    }
}

#[test]
fn a_head_that_differs_is_left_to_the_parser() {
    for (from, to) in [
        ("200 OK", "200 Fine"),
        ("200 OK", "404 Not Found"),
        ("HTTP/1.1", "HTTP/1.0"),
        ("X-Own", "x-own"),
        ("X-Own", "X_Own"),
        ("X-Own: 1", "X-Own:1"),
        ("X-Own: 1", "X-Own:  1"),
        ("X-Own: 1", "X-Own: 1 "),
        ("X-Own: 1", "X-Own: 1\t"),
        ("X-Own: 1", "X-Own: "),
        ("X-Own: 1", "X-Own: \r"),
        ("X-Own: 1", "X-Own: 1\r2"),
        ("X-Own: 1", "X-Own: 1\n2: 3"),
        ("X-Own: 1", "X-Own: 1\0"),
        ("X-Own: 1", "X-Own: 1\x7f"),
        ("X-Own: 1", "X-Own: \u{e9}"),
        ("X-Own: 1\r\n", "X-Own: 1\n"),
        ("X-Own: 1\r\n", ""),
        ("X-Own: 1\r\n", "X-Own: 1\r\nX-Own: 2\r\n"),
        ("X-Own: 1\r\n", "X-Own: 1\r\n folded\r\n"),
        ("Length: 12", "Length: 13"),
        ("Length: 12", "Length: 12, 12"),
        ("Length: 12", "Length: 12, 13"),
        ("Length: 12", "Length: +12"),
        ("Length: 12", "Length: "),
        ("keep-alive", "close"),
        ("keep-alive", "keep-alive, close"),
        ("keep-alive", "x-own"),
        ("keep-alive", "\x01"),
        ("keep-alive\r\n\r\n", "keep-alive\r\n"),
        ("keep-alive\r\n\r\n", "keep-alive\r\nX-More: 1\r\n\r\n"),
        ("keep-alive\r\n\r\n", "keep-alive\r\n\n"),
        (
            "keep-alive\r\n\r\n",
            "keep-alive\r\n\r\nHTTP/1.1 200 OK\r\n",
        ),
    ] {
        let second = USUAL.replace(from, to);
        assert_ne!(second, USUAL, "{from}");
        after(USUAL.as_bytes(), second.as_bytes());
    }
    for encoding in ["gzip", "Chunked", "chunked ", "chunked, gzip", ""] {
        let second = CHUNKED.replace("chunked", encoding);
        after(CHUNKED.as_bytes(), second.as_bytes());
    }
}

/// Names that are forwarded twice, names that `Connection` lists, and reason phrases belong to the parser.
#[test]
fn an_unusual_head_leaves_no_template() {
    for text in [
        "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: x-a\r\nX-A: b\r\n\r\n",
        "HTTP/1.1 200 Fine\r\nX-A: b\r\n\r\n",
        "HTTP/1.0 200 OK\r\nX-A: b\r\n\r\n",
        "HTTP/1.1 200 OK\nX-A: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A:b\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\nX-A: b\r\n\r\n",
    ] {
        let mut memory = HeadMemory::default();
        read(&mut memory, text.as_bytes());
        let all = Bytes::from_static(text.as_bytes());
        let known = memory.read(&all, &mut ResponseHead::default());
        assert_eq!(known, None, "{text:?}");
        after(text.as_bytes(), text.as_bytes());
    }
    let mut many = "HTTP/1.1 200 OK\r\n".to_owned();
    for name in 0..40 {
        write!(many, "x-{name}: {name}\r\n").unwrap();
    }
    many.push_str("\r\n");
    after(many.as_bytes(), many.as_bytes());
}

/// A server whose heads vary does not have one remembered each time.
#[test]
fn differing_heads_are_templated_less_often() {
    let mut memory = HeadMemory::default();
    let numbered = |number: u8| format!("HTTP/1.1 200 OK\r\nX-{number}: 1\r\n\r\n");
    let is_known = |memory: &mut HeadMemory, number: u8| {
        let all = Bytes::from(numbered(number));
        memory.read(&all, &mut ResponseHead::default()).is_some()
    };
    for number in 1..=67 {
        read(&mut memory, numbered(number).as_bytes());
    }
    assert!(!is_known(&mut memory, 67));
    assert!(is_known(&mut memory, 64));
    // From here on it counts from zero.
    for number in 1..=3 {
        read(&mut memory, numbered(number).as_bytes());
    }
    assert!(!is_known(&mut memory, 3));
    assert!(is_known(&mut memory, 2));
}

proptest! {
    /// A changed head is read exactly as by the parser alone.
    #[test]
    fn a_changed_head_is_read_as_the_parser_reads_it(
        is_chunked: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>(), any::<bool>()), 1..4),
    ) {
        let usual = if is_chunked { CHUNKED } else { USUAL };
        let mut second = usual.as_bytes().to_vec();
        for (at, what, byte, is_special) in changes {
            let special = b"\r\n: \t,\0\x7f";
            let byte = if is_special { special[usize::from(byte) % special.len()] } else { byte };
            let at = at.index(second.len());
            match what {
                0 => second[at] = byte,
                1 => second.insert(at, byte),
                _ => drop(second.remove(at)),
            }
        }
        after(usual.as_bytes(), &second);
    }
}
