//! The same responses, read by hyper's client: both read alike the responses that both accept.

use crate::http1::whole::{WholeResponse, read};
use bytes::Bytes;
use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// Returns hyper's reading of the response to a request with this method.
async fn theirs(method: &Method, bytes: &[u8]) -> Option<WholeResponse> {
    let (near, mut far) = duplex(256 << 10);
    let (mut sender, connection) = http1::handshake(TokioIo::new(near)).await.unwrap();
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = method.clone();
    let ask = async move {
        let answer = sender.send_request(request).await.ok()?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.ok()?;
        let trailers = body.trailers().cloned();
        Some(WholeResponse {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes().to_vec(),
            trailers,
            keeps: false,
            stray: 0,
        })
    };
    let answer = async move {
        // The request comes first: bytes before it are no response.
        far.read_u8().await.unwrap();
        far.write_all(bytes).await.unwrap();
    };
    let (whole, (), _ended) = tokio::join!(ask, answer, connection);
    whole
}

/// Removes the fields that only the gateway needs.
fn comparable(whole: WholeResponse) -> WholeResponse {
    let mut headers: HeaderMap = whole.headers;
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
    WholeResponse {
        headers,
        keeps: false,
        stray: 0,
        ..whole
    }
}

const HEADS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "HTTP/1.1 304 Not Modified\r\n",
    "HTTP/1.1 500 \r\n",
    "HTTP/1.1 599\r\n",
    "HTTP/1.1 200 OK\nx-lf: 1\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Nope\r\n",
    "HTTP/1.1 200 OK\r\nserver: x\r\nset-cookie: a\r\nset-cookie: b\r\nconnection: close\r\n",
    "HTTP/1.1 200 OK\r\nx: a\r\n b\r\n",
    "HTTP/1.1 200 OK\r\nx : a\r\n",
    "HTTP/1.1 200 OK\r\nx: a\rb\r\n",
    "HTTP/1.1 OK\r\n",
    "HTTP/3 200 OK\r\n",
];

const BODIES: &[&str] = &[
    "\r\n",
    "\r\nhello",
    "content-length: 0\r\n\r\n",
    "content-length: 5\r\n\r\nhello",
    "content-length: 5\r\n\r\nhell",
    "content-length: five\r\n\r\nhello",
    "transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n003;x=y\r\nllo\r\n0\r\nx-sum: 1\r\n\r\n",
    "transfer-encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "transfer-encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
    "transfer-encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
];

/// Returns true if hyper accepts a response that is ambiguous or not allowed.
fn is_taken_by_them_alone(head: &str, body: &str) -> bool {
    let is_odd = body.starts_with("content-length: five");
    is_odd || (head.starts_with("HTTP/1.0") && body.starts_with("transfer-encoding"))
}

#[tokio::test]
async fn responses_are_accepted_and_rejected_as_by_hyper() {
    for method in [Method::GET, Method::HEAD] {
        for head in HEADS {
            for body in BODIES {
                let bytes = format!("{head}{body}");
                let ours = read(&method, [bytes.as_bytes()]).ok().map(comparable);
                let theirs = theirs(&method, bytes.as_bytes()).await.map(comparable);
                if is_taken_by_them_alone(head, body) {
                    assert_eq!(ours, None, "{method} {bytes:?}");
                    continue;
                }
                assert_eq!(ours, theirs, "{method} {bytes:?}");
            }
        }
    }
}
