//! Limits of requests in flight: from the decision to the end of the response, or until the client has gone.

use crate::kit::message::Messages;
use crate::kit::modern::body;
use crate::kit::{Client, Gate, gate, in_time, request};
use crate::websocket::{Echo, talk, try_connect};
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Error;

/// An upstream that answers when the test does.
struct SlowUpstream {
    listener: TcpListener,
    gate: Gate,
}

/// The head of a response, and one piece of its body.
const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\
    transfer-encoding: chunked\r\n\r\n3\r\none\r\n";

impl SlowUpstream {
    async fn start(limit: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let gate = gate::limited(url, limit).await;
        Self { listener, gate }
    }

    /// Begins a request. Returns its client, and the upstream's end after the head was read.
    async fn begin(&self) -> (Client, Messages<TcpStream>) {
        let mut client = Client::connect(self.gate.address).await;
        client.send(request("GET", "/", &[])).await;
        (client, self.accept().await)
    }

    async fn accept(&self) -> Messages<TcpStream> {
        let (stream, _) = in_time("a connection", self.listener.accept())
            .await
            .unwrap();
        let mut upstream = Messages::new(stream);
        let head = in_time("a request", upstream.head()).await.unwrap();
        assert!(head.is_some());
        upstream
    }

    /// Sends a request, and returns true if it passes.
    async fn passes(&self) -> bool {
        let mut client = Client::connect(self.gate.address).await;
        client.send(request("GET", "/", &[])).await;
        tokio::select! {
            reply = client.reply("GET") => {
                assert_eq!(reply.status(), 429);
                return false;
            }
            mut upstream = self.accept() => {
                let whole = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
                upstream.stream.write_all(whole).await.unwrap();
            }
        }
        assert_eq!(client.reply("GET").await.status(), 204);
        true
    }

    /// Waits until a request passes: a client's going is noticed a moment later.
    async fn frees(&self) {
        let free = async { while !self.passes().await {} };
        in_time("a free permit", free).await;
    }
}

#[tokio::test]
async fn a_request_is_in_flight_until_its_response_has_ended() {
    let slow = SlowUpstream::start("concurrent: 1").await;
    let (mut client, mut upstream) = slow.begin().await;
    assert!(!slow.passes().await, "the upstream has the request");
    upstream.stream.write_all(BEGINNING).await.unwrap();
    assert_eq!(client.head().await.status(), 200);
    assert!(!slow.passes().await, "the response has begun");
    upstream.stream.write_all(b"0\r\n\r\n").await.unwrap();
    while client.messages.chunk().await.unwrap().is_some() {}
    slow.frees().await;
    assert!(slow.passes().await, "it was released once");
}

#[tokio::test]
async fn a_client_that_goes_takes_its_permit_with_it() {
    let slow = SlowUpstream::start("concurrent: 1").await;
    let (mut client, mut upstream) = slow.begin().await;
    upstream.stream.write_all(BEGINNING).await.unwrap();
    client.head().await;
    drop(client);
    slow.frees().await;

    let (client, _waiting) = slow.begin().await;
    drop(client);
    slow.frees().await;
}

#[tokio::test]
async fn a_refusal_says_what_is_limited_and_when_to_ask_again() {
    let slow = SlowUpstream::start("concurrent: 1").await;
    let _held = slow.begin().await;
    let mut client = Client::connect(slow.gate.address).await;
    let refused = client.get("/", &[]).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.head.get("retry-after"), Some("1"));
    let policy = refused.head.get("ratelimit-policy").unwrap();
    assert_eq!(policy, "\"per-client\";q=1;qu=\"concurrent-requests\"");
    assert!(refused.text().contains("per-client"), "{}", refused.text());
}

/// Nothing leaks, and nothing is released twice, wherever a client stops.
#[tokio::test]
async fn aborted_requests_leave_no_permit_behind() {
    let slow = SlowUpstream::start("concurrent: 3").await;
    for nth in 0..60 {
        let (mut client, mut upstream) = slow.begin().await;
        if nth % 4 > 0 {
            upstream.stream.write_all(BEGINNING).await.unwrap();
        }
        if nth % 4 > 1 {
            client.head().await;
        }
        if nth % 4 > 2 {
            drop(upstream);
        }
        drop(client);
        slow.frees().await;
    }
    let mut held = Vec::new();
    for _ in 0..3 {
        // The last ones that were dropped may need a moment.
        slow.frees().await;
        held.push(slow.begin().await);
    }
    assert!(!slow.passes().await, "three are in flight");
}

#[tokio::test]
async fn a_stream_of_http2_that_is_reset_releases_its_permit() {
    let slow = SlowUpstream::start("concurrent: 1").await;
    let stream = TcpStream::connect(slow.gate.address).await.unwrap();
    let connecting = handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.unwrap();
    let exchange = async {
        for _ in 0..3 {
            let uri = format!("http://{}/", slow.gate.address);
            let request = Request::get(uri).body(body(Bytes::new(), &[])).unwrap();
            let asking = sender.send_request(request);
            let answering = async {
                let mut upstream = slow.accept().await;
                upstream.stream.write_all(BEGINNING).await.unwrap();
                upstream
            };
            let (answer, _upstream) = tokio::join!(asking, answering);
            let mut answer = answer.unwrap();
            assert!(answer.frame().await.is_some(), "a piece of the body");
            assert!(!slow.passes().await, "its stream is open");
            drop(answer);
            slow.frees().await;
        }
    };
    tokio::select! {
        ended = connection => panic!("{ended:?}"),
        () = exchange => {}
    }
}

#[tokio::test]
async fn a_websocket_is_in_flight_until_it_closes() {
    let echo = Echo::start().await;
    let gate = gate::limited(echo.url(), "concurrent: 1").await;
    for _ in 0..3 {
        let mut socket = in_time("a free permit", async {
            loop {
                match try_connect(&gate).await {
                    Ok(socket) => return socket,
                    Err(Error::Http(refused)) => assert_eq!(refused.status(), 429),
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        talk(&mut socket, "hello").await;
        assert!(try_connect(&gate).await.is_err());
        talk(&mut socket, "still here").await;
        drop(socket);
    }
}
