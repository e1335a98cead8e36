//! HTTP/2 that becomes HTTP/1.1: fields that would become lengths or lines.

use super::Stage;
use crate::kit::{get, in_time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` and `:status: 400` in HPACK.
const OK: u8 = 0x88;
const BAD: u8 = 0x8c;

const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: shop.example\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()];
    [&head.concat(), payload].concat()
}

/// Encodes fields as HPACK literals.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // Longer texts need more than a byte for their length.
            match u8::try_from(text.len()).unwrap() {
                short @ ..127 => block.push(short),
                long => block.extend([127, long - 127]),
            }
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestOutcome {
    Passed,
    Refused,
}

/// Sends one request of these fields and this body, by hand.
async fn ask(stage: &Stage, list: &[(&str, &str)], body: Option<&str>) -> RequestOutcome {
    let mut stream = TcpStream::connect(stage.gate.address).await.unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    let end = if body.is_none() { END_STREAM } else { 0 };
    bytes.extend(frame(HEADERS, END_HEADERS | end, 1, &fields(list)));
    if let Some(body) = body {
        bytes.extend(frame(DATA, END_STREAM, 1, body.as_bytes()));
    }
    stream.write_all(&bytes).await.unwrap();
    in_time("an answer", answer(&mut stream)).await
}

async fn answer(stream: &mut TcpStream) -> RequestOutcome {
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return RequestOutcome::Refused;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).await.unwrap();
        match (head[3], payload.first()) {
            (RESET | GO_AWAY, _) | (HEADERS, Some(&BAD)) => return RequestOutcome::Refused,
            (HEADERS, Some(&OK)) => return RequestOutcome::Passed,
            (HEADERS, other) => panic!("another answer: {other:?}"),
            _ => {}
        }
    }
}

const PATH: (&str, &str) = (":path", "/");
const METHOD: (&str, &str) = (":method", "POST");
const SCHEME: (&str, &str) = (":scheme", "http");
const AUTHORITY: (&str, &str) = (":authority", "shop.example");

/// Returns a POST with one more field.
fn with<'a>(name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![METHOD, SCHEME, AUTHORITY, PATH, (name, value)]
}

#[tokio::test]
async fn a_valid_handwritten_request_passes() {
    let stage = Stage::set().await;
    for good in [
        with("x-a", "1"),
        with("content-length", "44"),
        with("te", "trailers"),
    ] {
        assert_eq!(
            ask(&stage, &good, Some(HIDDEN)).await,
            RequestOutcome::Passed,
            "{good:?}"
        );
        assert_eq!(stage.upstream.saw().content.bytes, HIDDEN.as_bytes());
    }
}

#[tokio::test]
async fn http1_framing_headers_have_no_effect_in_http2() {
    let crlf = format!("/ HTTP/1.1\r\nhost: a\r\n\r\n{HIDDEN}");
    let bad = [
        with("transfer-encoding", "chunked"),
        with("connection", "keep-alive"),
        with("connection", "x-mine"),
        with("keep-alive", "timeout=5"),
        with("proxy-connection", "keep-alive"),
        with("upgrade", "websocket"),
        with("te", "chunked"),
        with("content-length", "4"),
        with("content-length", "4400"),
        with("content-length", "+44"),
        with("content-length", "44, 44"),
        [with("content-length", "44"), vec![("content-length", "4")]].concat(),
        with("x-a", "b\r\ntransfer-encoding: chunked"),
        with("x-a", "b\nc: d"),
        with("x-a", "b\rc: d"),
        with("x-a", "b\0c"),
        with("x-a: b\r\nx-c", "d"),
        with("x a", "b"),
        with("x-a:", "b"),
        with("X-A", "b"),
        with("", "b"),
        with(":x", "b"),
        with(":path", "/hidden"),
        with("host", "bank.example"),
        vec![METHOD, SCHEME, AUTHORITY],
        vec![METHOD, AUTHORITY, PATH],
        vec![SCHEME, AUTHORITY, PATH],
        vec![("x-a", "1"), METHOD, SCHEME, AUTHORITY, PATH],
        vec![METHOD, SCHEME, AUTHORITY, (":path", &crlf)],
        vec![METHOD, SCHEME, AUTHORITY, (":path", "/ /hidden")],
        vec![METHOD, SCHEME, AUTHORITY, (":path", "")],
        vec![METHOD, SCHEME, AUTHORITY, (":path", "hidden")],
        vec![METHOD, SCHEME, AUTHORITY, (":path", "/../hidden")],
        vec![
            (":method", "GET /hidden HTTP/1.1\r\nx: "),
            SCHEME,
            AUTHORITY,
            PATH,
        ],
        vec![(":method", "GET "), SCHEME, AUTHORITY, PATH],
        vec![METHOD, SCHEME, (":authority", "a\r\nx: y"), PATH],
        vec![METHOD, SCHEME, (":authority", "a b"), PATH],
        vec![METHOD, SCHEME, (":authority", "u@a"), PATH],
        vec![METHOD, SCHEME, (":authority", "a/b"), PATH],
        // Some programs stop reading at the comma.
        vec![METHOD, SCHEME, (":authority", "a,b"), PATH],
        vec![METHOD, (":scheme", "http://x/?"), AUTHORITY, PATH],
    ];
    let stage = Stage::set().await;
    let mut complaints = Vec::new();
    for list in bad {
        let answered = ask(&stage, &list, Some(HIDDEN)).await;
        assert_eq!(
            get(stage.gate.address, "/after", &[]).await.text(),
            "GET /after"
        );
        let begun = stage.upstream.begun();
        let seen = stage.upstream.seen();
        let is_hidden = begun.iter().any(|head| head.line.contains("hidden"));
        if answered == RequestOutcome::Passed || seen.len() != 1 || is_hidden {
            complaints.push(format!(
                "{list:?}: {answered:?}, the upstream saw {seen:#?}"
            ));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Such a request is forwarded before the error shows; but nothing more of it follows.
#[tokio::test]
async fn bytes_after_a_body_without_length_are_no_request() {
    let stage = Stage::set().await;
    let answered = ask(&stage, &with("content-length", "0"), Some(HIDDEN)).await;
    assert_eq!(answered, RequestOutcome::Refused);
    assert_eq!(
        get(stage.gate.address, "/after", &[]).await.text(),
        "GET /after"
    );
    let seen = stage.upstream.seen();
    let lines: Vec<_> = seen.iter().map(|seen| seen.head.line.as_str()).collect();
    assert!(
        !lines.iter().any(|line| line.contains("hidden")),
        "{lines:?}"
    );
    assert!(
        seen.iter().all(|seen| seen.content.bytes.is_empty()),
        "{seen:#?}"
    );
}
