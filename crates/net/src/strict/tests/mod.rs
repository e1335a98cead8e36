//! The corpus, and properties of all other input.

mod corpus;
mod properties;

use super::{ReadStop, StrictReader, StrictReason};

pub(crate) use corpus::{BAD, GOOD};
pub(crate) use properties::anything;

/// Reads `bytes`. Returns the position and reason if they are rejected.
fn verdict(bytes: &[u8]) -> Result<StrictReader, (usize, ReadStop)> {
    in_pieces([bytes])
}

/// Does the same with the bytes in these pieces.
fn in_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<StrictReader, (usize, ReadStop)> {
    let mut reader = StrictReader::default();
    let mut before = 0;
    for piece in pieces {
        reader
            .read(piece)
            .map_err(|(at, stop)| (before + at, stop))?;
        before += piece.len();
    }
    Ok(reader)
}

#[test]
fn ambiguous_requests_are_rejected_with_their_reason() {
    for (name, bytes, reason) in BAD {
        let refused = verdict(bytes.as_bytes()).map_err(|(_, stop)| stop);
        assert_eq!(refused.err(), Some(ReadStop::Refused(*reason)), "{name}");
    }
}

#[test]
fn unusual_but_unambiguous_requests_pass_completely() {
    for (name, bytes, requests) in GOOD {
        let reader = verdict(bytes.as_bytes());
        let reader = reader.unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
        assert!(reader.is_between(), "{name}");
        assert_eq!(reader.heads(), *requests, "{name}");
    }
}

#[test]
fn every_invalid_byte_in_a_header_name_is_rejected() {
    for byte in 0..=u8::MAX {
        let mut request = b"GET / HTTP/1.1\r\nHost: a\r\nX-".to_vec();
        request.push(byte);
        request.extend_from_slice(b"x: 1\r\n\r\n");
        let is_token =
            byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte) || byte == b':';
        assert_eq!(verdict(&request).is_ok(), is_token, "{byte:#x}");
    }
}

#[test]
fn a_rejection_happens_at_the_first_invalid_byte() {
    let start = "GET / HTTP/1.1\r\nHost: a\r\nX: b";
    let refused = verdict(format!("{start}\nGET /").as_bytes()).err();
    assert_eq!(
        refused,
        Some((start.len(), ReadStop::Refused(StrictReason::BareLf)))
    );
    // The request before it is not affected.
    let first = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let refused = verdict(format!("{first}\0").as_bytes()).err();
    assert_eq!(
        refused,
        Some((first.len(), ReadStop::Refused(StrictReason::Garbage)))
    );
}

#[test]
fn an_overlong_chunk_extension_is_rejected() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;";
    let longest = format!("{head}{}", "a".repeat(256));
    let end = "\r\na\r\n0\r\n\r\n";
    assert!(verdict(format!("{longest}{end}").as_bytes()).is_ok());
    let refused = verdict(format!("{longest}a{end}").as_bytes()).err();
    let why = ReadStop::Refused(StrictReason::ChunkExtension);
    assert_eq!(refused, Some((longest.len(), why)));
}

#[test]
fn after_an_upgrade_request_parsing_pauses() {
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut reader = verdict(request.as_bytes()).unwrap();
        assert_eq!(reader.read(b"\x81"), Err((0, ReadStop::Turn)), "{request}");
        reader.go_on();
        let refused = Err((0, ReadStop::Refused(StrictReason::Garbage)));
        assert_eq!(reader.read(b"\x81"), refused, "{request}");
    }
    // Only the beginning of the method; and a longer method that begins with it.
    for method in ["CONN", "CONNECTED", "connect"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut reader = verdict(request.as_bytes()).unwrap();
        assert_eq!(reader.read(b"GET "), Ok(()), "{method}");
    }
}
