//! Invalid messages, and requests that are not gRPC.

use crate::kit::{EDGE, PATH, RawResponse, Server, about, framed, metrics, post, send};
use bytes::Bytes;
use http::Request;
use prost::Message;

async fn call(server: &Server, body: impl Into<Bytes>) -> RawResponse {
    send(server.grpc, post(server.grpc, PATH, body)).await
}

fn good() -> Vec<u8> {
    about(&[&[("user", "ann")]]).encode_to_vec()
}

#[tokio::test]
async fn unreadable_messages_get_a_reason_and_are_counted() {
    let server = Server::start(EDGE).await;
    let good = good();
    let empty_domain = framed(&{
        let mut call = about(&[&[("user", "ann")]]);
        call.domain.clear();
        call.encode_to_vec()
    });
    let mut cut = framed(&good);
    cut.pop();
    let mut two = framed(&good);
    two.extend(framed(&good));
    let many: Vec<&[(&str, &str)]> = vec![&[("user", "ann")]; 129];
    let cases: [(Vec<u8>, &str, &str); 8] = [
        (vec![], "3", "the message is missing or truncated"),
        (vec![0, 0, 0], "3", "the message is missing or truncated"),
        (cut, "3", "the message is truncated"),
        (two, "3", "there is more than one message"),
        (framed(&[0xff; 20]), "3", "a number has more than 64 bits"),
        (empty_domain, "3", "rate limit domain must not be empty"),
        (
            framed(&about(&[]).encode_to_vec()),
            "3",
            "rate limit descriptor list must not be empty",
        ),
        (
            framed(&about(&many).encode_to_vec()),
            "3",
            "a call may have at most 128 descriptors",
        ),
    ];
    let count = cases.len();
    for (body, status, words) in cases {
        let raw = call(&server, body).await;
        assert_eq!(
            (raw.status.as_u16(), raw.grpc_status()),
            (200, Some(status)),
            "{words}"
        );
        assert_eq!(raw.message(), words);
        assert!(raw.body.is_empty());
    }
    let page = metrics(&server).await;
    let line = format!("tidegate_error_responses_total{{listener=\"grpc\",status=\"3\"}} {count}");
    assert!(page.contains(&line), "{page}");
}

#[tokio::test]
async fn a_compressed_message_is_unimplemented_with_the_accepted_encodings() {
    let server = Server::start(EDGE).await;
    let mut body = framed(&good());
    body[0] = 1;
    let raw = call(&server, body).await;
    assert_eq!(raw.grpc_status(), Some("12"));
    assert_eq!(raw.headers["grpc-accept-encoding"], "identity");
}

#[tokio::test]
async fn only_messages_beyond_the_bound_are_rejected() {
    let server = Server::start(EDGE).await;
    let of = |length: usize| {
        let value = "x".repeat(length);
        framed(&about(&[&[("user", &value)]]).encode_to_vec())
    };
    assert_eq!(call(&server, of(65 << 10)).await.grpc_status(), Some("8"));
    assert_eq!(call(&server, of(63 << 10)).await.grpc_status(), Some("0"));
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let server = Server::start(EDGE).await;
    let mut message = good();
    // Unknown fields: a varint, a string, eight bytes, four bytes, and nested groups.
    message.extend([0xf8, 0x01, 1, 0xfa, 0x01, 2, b'h', b'i', 0xf9, 0x01]);
    message.extend([7; 8]);
    message.extend([0xfd, 0x01, 1, 2, 3, 4, 0xfb, 0x01, 0x0b, 0x0c, 0xfc, 0x01]);
    let raw = call(&server, framed(&message)).await;
    assert_eq!(raw.grpc_status(), Some("0"), "{raw:?}");
    assert_eq!(raw.headers["content-type"], "application/grpc");
    assert!(!raw.headers.contains_key("date") && !raw.headers.contains_key("content-length"));
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let server = Server::start(EDGE).await;
    let path = "/envoy.service.ratelimit.v3.RateLimitService/Reset";
    let raw = send(server.grpc, post(server.grpc, path, framed(&good()))).await;
    assert_eq!(raw.grpc_status(), Some("12"));
    assert!(raw.message().contains("unknown method"));
}

#[tokio::test]
async fn plain_http_requests_get_an_http_error() {
    let server = Server::start(EDGE).await;
    let request = |method: &str, kind: &str| {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{PATH}", server.grpc))
            .header("content-type", kind)
            .body(Bytes::new())
            .unwrap()
    };
    for (method, kind, status) in [
        ("POST", "application/json", 415),
        ("POST", "application/grpc-web", 415),
        ("GET", "application/grpc", 405),
    ] {
        let raw = send(server.grpc, request(method, kind)).await;
        assert_eq!((raw.status.as_u16(), raw.grpc_status()), (status, None));
    }
    let mut proto = request("POST", "application/grpc+proto");
    *proto.body_mut() = framed(&good()).into();
    assert_eq!(send(server.grpc, proto).await.grpc_status(), Some("0"));
}
