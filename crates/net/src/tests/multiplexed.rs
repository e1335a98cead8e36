//! HTTP/2.

use super::floods::{DATA, HEADERS, PREFACE, SETTINGS, frame, next};
use super::kit::{IDLE, SocketlessServer};
use crate::idle_clock::Pulse;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

pub(super) type Sender = SendRequest<UnsyncBoxBody<Bytes, Infallible>>;

pub(super) async fn connect(house: &SocketlessServer) -> Sender {
    let io = TokioIo::new(house.connect());
    let (sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    // Not a task of the server: it ends with the client.
    house.clients.spawn(async move {
        connection.await.ok();
    });
    sender
}

pub(super) fn send(
    sender: &mut Sender,
    path: &str,
    body: &'static str,
) -> impl Future<Output = hyper::Result<Response<Incoming>>> + use<> {
    let request = Request::post(format!("http://a{path}"));
    sender.send_request(request.body(Full::from(body).boxed_unsync()).unwrap())
}

pub(super) async fn text(answer: Response<Incoming>) -> String {
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_while_others_wait() {
    let house = SocketlessServer::new();
    let mut client = connect(&house).await;
    let never = send(&mut client, "/never", "");
    let quiet = send(&mut client, "/quiet", "").await.unwrap();
    assert_eq!(quiet.version(), Version::HTTP_2);
    for _ in 0..300 {
        let answer = send(&mut client, "/echo", "hello").await.unwrap();
        assert_eq!(text(answer).await, "hello");
    }
    drop((never, quiet));
    assert_eq!(house.tasks.count(), 1, "all in the connection's own task");
}

#[tokio::test(start_paused = true)]
async fn http2_is_detected_by_its_preface_at_any_split() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    // The preface, and settings that change nothing.
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0" {
        client.write_all(&[*byte]).await.unwrap();
        yield_now().await;
    }
    let mut frame = [0; 9];
    client.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "settings");
    // Bytes that only begin like the preface are not HTTP/2.
    let mut client = house.connect();
    client
        .write_all(b"PRI * HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let mut status = [0; 12];
    client.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

#[tokio::test(start_paused = true)]
async fn only_a_stream_that_is_not_read_is_cut() {
    let house = SocketlessServer::new();
    let mut client = connect(&house).await;
    let quiet = send(&mut client, "/quiet", "").await.unwrap();
    let stuck = send(&mut client, "/endless", "").await.unwrap();
    let mut stuck = stuck.into_body();
    sleep(IDLE * 3).await;
    // The data in transit arrives, and then the stream breaks off.
    let mut pieces = 0;
    while let Some(Ok(_)) = stuck.frame().await {
        pieces += 1;
        assert!(pieces < 1_000, "it was not cut");
    }
    let mut quiet = quiet.into_body();
    assert!(timeout(IDLE, quiet.frame()).await.is_err(), "it was not");
    let answer = send(&mut client, "/echo", "hello").await.unwrap();
    assert_eq!(text(answer).await, "hello");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_is_closed() {
    let house = SocketlessServer::new();
    let mut client = connect(&house).await;
    let answer = send(&mut client, "/echo", "").await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    drop(answer);
    let closed = timeout(IDLE * 2, house.tasks.finished());
    assert!(closed.await.is_ok(), "it was kept");
}

#[tokio::test(start_paused = true)]
async fn an_idle_http2_connection_makes_room_at_once_with_a_goaway() {
    let house = SocketlessServer::new();
    let pulse = Arc::<Pulse>::default();
    let mut client = house.connect_with(Arc::clone(&pulse));
    // The preface, and settings that change nothing.
    let begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    client.write_all(begin).await.unwrap();
    client.read_exact(&mut [0; 9]).await.unwrap();
    pulse.evict();
    let mut rest = Vec::new();
    let closed = timeout(IDLE / 10, client.read_to_end(&mut rest));
    closed.await.unwrap().unwrap();
    assert!(
        rest.windows(2).any(|two| two == [7, 0]),
        "no GOAWAY: {rest:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_response_still_being_read_is_not_cut_by_eviction() {
    const END_STREAM: u8 = 1;
    let house = SocketlessServer::new();
    let pulse = Arc::<Pulse>::default();
    let mut client = house.connect_with(Arc::clone(&pulse));
    // POST, http, a literal path, and an authority.
    let head = [&[0x83, 0x86, 0x04, 5], &b"/echo"[..], &[0x41, 1, b'a']].concat();
    let begin = [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[]),
        &frame(HEADERS, 4, 1, &head),
    ];
    client.write_all(&begin.concat()).await.unwrap();
    // Several times as much as fits into the buffers.
    for _ in 0..100 {
        let piece = frame(DATA, 0, 1, &[b'x'; 200]);
        client.write_all(&piece).await.unwrap();
    }
    let last = frame(DATA, END_STREAM, 1, &[]);
    client.write_all(&last).await.unwrap();
    while house.seen().is_empty() || pulse.is_busy() {
        yield_now().await;
    }
    pulse.evict();
    let mut got = 0;
    loop {
        let received = timeout(IDLE / 10, next(&mut client)).await.unwrap();
        let (kind, flags, payload) = received.expect("the answer was cut");
        if kind == DATA {
            got += payload.len();
            if flags & END_STREAM != 0 {
                break;
            }
        }
    }
    assert_eq!(got, 100 * 200);
    drop(client);
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn draining_finishes_started_requests_and_accepts_no_new_ones() {
    let house = SocketlessServer::new();
    let mut client = connect(&house).await;
    let (more, rest) = oneshot::channel();
    let body = StreamBody::new(stream::once(async {
        let rest: &'static str = rest.await.unwrap();
        Ok::<_, Infallible>(Frame::data(Bytes::from(rest)))
    }));
    let request = Request::post("http://a/echo").body(body.boxed_unsync());
    let begun = client.send_request(request.unwrap());
    // Ensures that the first request has begun.
    let first = send(&mut client, "/echo", "").await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    house.drain();
    sleep(IDLE / 10).await;
    assert!(send(&mut client, "/echo", "").await.is_err());
    more.send("late").unwrap();
    let answer = begun.await.unwrap();
    assert_eq!(text(answer).await, "late");
    house.finished().await;
}
