//! Chunked bodies are read as they were written, at any cut.

use crate::http1::whole::read;
use crate::http1::write::{announced, chunk_size, last_chunk};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::collection::vec;
use proptest::prelude::*;

/// Cuts `bytes` into pieces of these lengths, repeated in a cycle.
fn cut<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn trailers(values: &[String]) -> HeaderMap {
    let named = |(nth, value): (usize, &String)| {
        let name = HeaderName::try_from(format!("x-{nth}")).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    values.iter().enumerate().map(named).collect()
}

proptest! {
    #[test]
    fn a_chunked_body_round_trips(
        pieces in vec(vec(any::<u8>(), 1..300), 0..8),
        values in vec("[!-~]{0,20}", 0..4),
        lengths in vec(1_usize..40, 1..6),
    ) {
        let trailers = trailers(&values);
        let names: Vec<_> = trailers.keys().cloned().collect();
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for piece in &pieces {
            chunk_size(&mut bytes, piece.len());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        last_chunk(&mut bytes, Some(&trailers), &names);
        let whole = read(&Method::GET, cut(&bytes, &lengths)).unwrap();
        prop_assert_eq!(whole.body, pieces.concat());
        prop_assert_eq!(whole.trailers.unwrap_or_default(), trailers);
        prop_assert_eq!(whole.stray, 0);
    }

    /// Any input is read or rejected, with the same result at any cut.
    #[test]
    fn any_chunked_input_has_one_reading(
        body in "[0-9a-f;: \r\nx]{0,40}",
        head in prop_oneof![
            Just("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            Just("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"),
            Just("HTTP/1.1 200 OK\r\n"),
        ],
        lengths in vec(1_usize..20, 1..6),
    ) {
        let bytes = format!("{head}{body}");
        let whole = read(&Method::GET, [bytes.as_bytes()]);
        prop_assert_eq!(read(&Method::GET, cut(bytes.as_bytes(), &lengths)), whole);
    }
}

#[test]
fn chunk_sizes_have_no_leading_zeros() {
    let written = |bytes| {
        let mut text = Vec::new();
        chunk_size(&mut text, bytes);
        String::from_utf8(text).unwrap()
    };
    for bytes in [1, 9, 10, 15, 16, 255, 256, 65_536, usize::MAX] {
        assert_eq!(written(bytes), format!("{bytes:x}\r\n"));
    }
}

#[test]
fn unannounced_trailers_are_not_sent() {
    let mut head = HeaderMap::new();
    head.append("trailer", HeaderValue::from_static("X-Sum, x-other"));
    head.append("trailer", HeaderValue::from_static("x-last"));
    let announced = announced(&head);
    assert_eq!(announced, ["x-sum", "x-other", "x-last"]);
    let mut trailers = HeaderMap::new();
    for name in ["x-sum", "x-hidden", "x-last"] {
        trailers.insert(name, HeaderValue::from_static("1"));
    }
    let mut text = Vec::new();
    last_chunk(&mut text, Some(&trailers), &announced);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text, "0\r\nx-sum: 1\r\nx-last: 1\r\n\r\n");
}
