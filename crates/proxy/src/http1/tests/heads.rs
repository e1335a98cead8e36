//! Request heads, as bytes.

use crate::http1::write::{Framing, head};
use http::Request;

fn written(request: &Request<()>, framing: Framing) -> String {
    let mut text = Vec::new();
    head(&mut text, request, framing, b"");
    String::from_utf8(text).unwrap()
}

#[test]
fn a_request_head_is_written_unchanged() {
    let request = Request::builder()
        .method("PURGE")
        .uri("/a%20b?c=d&e")
        .header("Host", "shop.example")
        .header("cookie", "a=1")
        .header("x-more", "1")
        .header("x-more", "2")
        .body(())
        .unwrap();
    assert_eq!(
        written(&request, Framing::None),
        "PURGE /a%20b?c=d&e HTTP/1.1\r\nhost: shop.example\r\ncookie: a=1\r\nx-more: 1\r\nx-more: 2\r\n\r\n"
    );
    let star = Request::options("*").body(()).unwrap();
    assert_eq!(written(&star, Framing::None), "OPTIONS * HTTP/1.1\r\n\r\n");
}

/// The end of a request must not depend on the client's header fields.
#[test]
fn a_body_is_framed_by_its_kind_and_not_by_client_headers() {
    let request = Request::post("/")
        .header("content-length", "7")
        .header("content-length", "8")
        .header("transfer-encoding", "gzip")
        .body(())
        .unwrap();
    let begin = "POST / HTTP/1.1\r\n";
    for (framing, field) in [
        (Framing::None, "content-length: 0"),
        (Framing::Length(5), "content-length: 5"),
        (
            Framing::Length(u64::MAX),
            "content-length: 18446744073709551615",
        ),
        (Framing::Chunked, "transfer-encoding: chunked"),
    ] {
        assert_eq!(
            written(&request, framing),
            format!("{begin}{field}\r\n\r\n")
        );
    }
    // Without a body and a `Content-Length`, none needs to be sent.
    let request = Request::post("/").body(()).unwrap();
    assert_eq!(written(&request, Framing::None), format!("{begin}\r\n"));
}
