//! Requests that are being sent, with bodies as hyper reads them from clients.

use crate::forwarding_headers::FieldLines;
use crate::http1::sending::{RequestSender, SendStop};
use crate::outgoing::OutgoingRequest;
use crate::pace::Pace;
use crate::upload::Upload;
use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt, duplex};
use tokio::sync::mpsc;

/// A writer that takes `at_once` bytes at a time, and none every other time.
#[derive(Debug)]
struct SlowWriter {
    taken: Vec<u8>,
    at_once: usize,
    is_tired: bool,
}

impl AsyncWrite for SlowWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_tired = !self.is_tired;
        if self.is_tired {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let taken = bytes.len().min(self.at_once);
        self.taken.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A writer whose connection is broken.
#[derive(Debug)]
struct BrokenWriter;

impl AsyncWrite for BrokenWriter {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn send<W: AsyncWrite + Unpin>(
    sending: &mut RequestSender,
    to: &mut W,
) -> Result<(), SendStop> {
    poll_fn(|context| sending.poll_send(context, to)).await
}

/// Calls `then` with the request that a client sends in these bytes.
async fn with_request<T>(bytes: &[u8], then: impl AsyncFnOnce(OutgoingRequest) -> T) -> T {
    let (near, mut far) = duplex(1 << 20);
    let (found, mut requests) = mpsc::channel(1);
    let service = service_fn(async |request: Request<Incoming>| {
        found.send(request).await.unwrap();
        pending::<Result<http::Response<String>, Infallible>>().await
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(near), service);
    far.write_all(bytes).await.unwrap();
    let sent = async {
        let request = requests.recv().await.unwrap();
        let upload = |body| {
            let pace = Pace::new(Duration::from_mins(1), None, None);
            Upload::new(body, u64::MAX, pace).unwrap()
        };
        let request = request.map(upload);
        let lines = FieldLines {
            text: Bytes::from_static(b"via: 1.1 here\r\n"),
            has_host: false,
        };
        then(OutgoingRequest::new(request, lines)).await
    };
    tokio::select! {
        ended = connection => panic!("{ended:?}"),
        sent = sent => sent,
    }
}

/// Requests of a client, and the expected bytes for the upstream.
fn cases() -> Vec<(String, String)> {
    let large = "x".repeat(10_000);
    let put = "PUT /a?b HTTP/1.1\r\n";
    vec![
        (
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nhost: a\r\nvia: 1.1 here\r\n\r\n".to_owned(),
        ),
        (
            format!("{put}content-length: 5\r\n\r\nhello"),
            format!("{put}content-length: 5\r\nvia: 1.1 here\r\n\r\nhello"),
        ),
        (
            format!("{put}content-length: 10000\r\n\r\n{large}"),
            format!("{put}content-length: 10000\r\nvia: 1.1 here\r\n\r\n{large}"),
        ),
        (
            format!("{put}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            format!(
                "{put}transfer-encoding: chunked\r\nvia: 1.1 here\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            ),
        ),
        (
            format!("{put}transfer-encoding: chunked\r\n\r\n2710\r\n{large}\r\n0\r\n\r\n"),
            format!(
                "{put}transfer-encoding: chunked\r\nvia: 1.1 here\r\n\r\n2710\r\n{large}\r\n0\r\n\r\n"
            ),
        ),
    ]
}

/// Joins the chunks: they may be cut elsewhere, but their content is the same.
fn unchunked(text: &str) -> String {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    if !head.contains("chunked") {
        return text.to_owned();
    }
    let lines = body.split("\r\n").skip(1).step_by(2);
    format!("{head}\r\n\r\n{}", lines.collect::<String>())
}

#[tokio::test]
async fn a_slow_reader_gets_the_same_bytes() {
    for (came, goes) in cases() {
        for at_once in [1, 7, 100, usize::MAX] {
            let mut to = SlowWriter {
                taken: Vec::new(),
                at_once,
                is_tired: false,
            };
            with_request(came.as_bytes(), async |mut request| {
                let mut sending = RequestSender::default();
                sending.begin(&mut request);
                send(&mut sending, &mut to).await.unwrap();
                assert!(sending.is_done() && sending.has_begun());
            })
            .await;
            let taken = String::from_utf8(to.taken).unwrap();
            assert_eq!(unchunked(&taken), unchunked(&goes), "{at_once}");
        }
    }
}

#[tokio::test]
async fn an_unsent_request_is_sent_to_another_upstream() {
    for (came, goes) in cases() {
        let mut to = SlowWriter {
            taken: Vec::new(),
            at_once: usize::MAX,
            is_tired: false,
        };
        with_request(came.as_bytes(), async |mut request| {
            let mut sending = RequestSender::default();
            sending.begin(&mut request);
            let stopped = send(&mut sending, &mut BrokenWriter).await;
            assert!(matches!(stopped, Err(SendStop::Io(_))), "{stopped:?}");
            assert!(!sending.has_begun());
            if let Some(body) = sending.take_back() {
                *request.body_mut() = body;
            }
            let mut sending = RequestSender::default();
            sending.begin(&mut request);
            send(&mut sending, &mut to).await.unwrap();
        })
        .await;
        let taken = String::from_utf8(to.taken).unwrap();
        assert_eq!(unchunked(&taken), unchunked(&goes));
    }
}
