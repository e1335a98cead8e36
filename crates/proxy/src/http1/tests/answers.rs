//! Valid responses.

use super::however_cut;
use crate::http1::whole::WholeResponse;
use http::Method;

fn get(bytes: &str) -> WholeResponse {
    however_cut(&Method::GET, bytes.as_bytes()).unwrap()
}

fn body(bytes: &str) -> String {
    String::from_utf8(get(bytes).body).unwrap()
}

#[test]
fn a_body_ends_at_its_content_length() {
    let whole = get("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(whole.body, b"hello");
    assert_eq!(whole.headers["content-length"], "5");
    assert!(whole.keeps);
    assert_eq!(whole.stray, 0);
}

#[test]
fn bytes_after_a_response_are_not_part_of_it() {
    let whole = get("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n");
    assert_eq!((whole.body, whole.stray), (b"ok".to_vec(), 17));
    let whole = get("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nx");
    assert_eq!((whole.body, whole.stray), (Vec::new(), 1));
    let whole = get("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nx");
    assert_eq!((whole.body, whole.stray), (Vec::new(), 1));
}

#[test]
fn a_body_in_chunks_ends_with_the_last_one() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
    for chunks in [
        "5\r\nhello\r\n0\r\n\r\n",
        "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
        "0005;name=value;\"x\"\r\nhello\r\n00\r\n\r\n",
        "5  \r\nhello\r\n0\r\n\r\n",
    ] {
        let whole = get(&format!("{head}{chunks}"));
        assert_eq!(whole.body, b"hello", "{chunks:?}");
        assert_eq!(whole.trailers, None);
        assert!(whole.keeps);
        assert!(!whole.headers.contains_key("transfer-encoding"));
    }
    assert_eq!(
        body(&format!("{head}A\r\n0123456789\r\n0\r\n\r\n")),
        "0123456789"
    );
}

#[test]
fn trailers_follow_the_last_chunk() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let whole = get(&format!(
        "{head}2\r\nok\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n"
    ));
    assert_eq!(whole.body, b"ok");
    let trailers = whole.trailers.unwrap();
    let sums: Vec<_> = trailers.get_all("x-sum").iter().collect();
    assert_eq!(sums, ["1", "2"]);
}

#[test]
fn a_body_without_framing_ends_with_the_connection() {
    let whole = get("HTTP/1.1 200 OK\r\n\r\nhello");
    assert_eq!(whole.body, b"hello");
    assert!(!whole.keeps);
    assert_eq!(body("HTTP/1.0 200 OK\r\n\r\n"), "");
}

#[test]
fn some_responses_never_have_a_body() {
    let head = "content-length: 5\r\n\r\n";
    for (method, status) in [
        (Method::HEAD, "200 OK"),
        (Method::GET, "204 No Content"),
        (Method::GET, "304 Not Modified"),
    ] {
        let bytes = format!("HTTP/1.1 {status}\r\n{head}");
        let whole = however_cut(&method, bytes.as_bytes()).unwrap();
        assert_eq!(whole.body, b"", "{status}");
        assert_eq!(whole.headers["content-length"], "5");
        assert!(whole.keeps);
    }
    // Nor is there a body without any framing fields.
    let whole = however_cut(&Method::HEAD, b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    assert!(whole.keeps);
}

#[test]
fn interim_responses_are_skipped() {
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let whole = get(&format!(
        "{interim}HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok"
    ));
    assert_eq!(whole.status, 201);
    assert!(!whole.headers.contains_key("link"));
    assert_eq!(whole.body, b"ok");
}

#[test]
fn a_connection_is_kept_if_both_sides_agree() {
    let keeps = |head: &str| get(&format!("{head}content-length: 0\r\n\r\n")).keeps;
    assert!(keeps("HTTP/1.1 200 OK\r\n"));
    assert!(keeps("HTTP/1.1 200 OK\r\nconnection: Keep-Alive\r\n"));
    assert!(keeps("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n"));
    assert!(!keeps("HTTP/1.0 200 OK\r\n"));
    assert!(!keeps("HTTP/1.1 200 OK\r\nconnection: Close\r\n"));
    assert!(!keeps("HTTP/1.1 200 OK\r\nconnection: x-mine, close\r\n"));
    // After `close`, nothing undoes it.
    assert!(!keeps(
        "HTTP/1.1 200 OK\r\nconnection: close\r\nconnection: keep-alive\r\n"
    ));
}

#[test]
fn fields_named_by_connection_are_still_recognized() {
    let whole =
        get("HTTP/1.1 200 OK\r\nconnection: x-mine\r\nx-mine: 1\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(whole.headers["connection"], "x-mine");
    let whole = get("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n");
    assert!(!whole.headers.contains_key("connection"));
}

#[test]
fn fields_keep_their_order_and_their_bytes() {
    let whole = get(
        "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nx-odd:  \u{e9}\t \r\nSet-Cookie: b=2\r\nx-none:\r\ncontent-length: 0\r\n\r\n",
    );
    let cookies: Vec<_> = whole.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(whole.headers["x-odd"].as_bytes(), "\u{e9}".as_bytes());
    assert_eq!(whole.headers["x-none"], "");
}
