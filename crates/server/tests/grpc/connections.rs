//! Stopping, resets, many calls at a time.

use crate::kit::{EDGE, PATH, Server, about, ask, codes, framed, in_time, metrics, post};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{FutureExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::convert::Infallible;
use std::time::Duration;
use tidegate_server::server::ServeEnd;
use tidegate_server::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tonic::Request;

#[tokio::test]
async fn exactly_as_many_pass_as_may_however_many_come_at_once() {
    let policies = "
policies:
  - name: shop
    domain: shop/http
    limits:
      - { name: per-user, match: { descriptor: [user] }, key: descriptor, rate: 300/day, algorithm: fixed-window }
";
    let server = Server::start(policies).await;
    let client = server.client().await;
    let calls = (0..1_000).map(|_| {
        let mut client = client.clone();
        async move { ask(&mut client, about(&[&[("user", "ann")]])).await }
    });
    let answers = in_time(join_all(calls)).await;
    let passed = answers.iter().filter(|it| codes(it)[0] == "OK").count();
    assert_eq!(passed, 300);
}

/// Envoy takes back what is not answered within some milliseconds, all at once when anything is slow.
#[tokio::test]
async fn calls_that_are_taken_back_in_a_burst_harm_no_other() {
    let server = Server::start(EDGE).await;
    let stream = TcpStream::connect(server.grpc).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = in_time(handshake).await.unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        connection.await.ok();
    });
    let body = framed(&about(&[&[("user", "root")]]).encode_to_vec());
    let request = || post(server.grpc, PATH, body.clone()).map(Full::<Bytes>::new);
    for _ in 0..20 {
        for _ in 0..200 {
            // Begun, and taken back before anything can have come.
            let call = sender.clone().send_request(request());
            assert!(call.now_or_never().is_none());
        }
        let answer = in_time(sender.clone().send_request(request()))
            .await
            .unwrap();
        let body = in_time(answer.into_body().collect()).await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    }
}

/// Some clients end a call with a frame of its own. What waits to be read is then many small pieces, and
/// whoever sends too many of them is taken for an attacker.
#[tokio::test]
async fn as_many_calls_as_a_connection_may_have_can_come_in_one_piece() {
    let server = Server::start(EDGE).await;
    let stream = TcpStream::connect(server.grpc).await.unwrap();
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.initial_connection_window_size(16 << 20);
    let handshake = http.handshake(TokioIo::new(stream));
    let (sender, connection) = in_time(handshake).await.unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        connection.await.ok();
    });
    let call = framed(&about(&[&[("user", "root")]]).encode_to_vec());
    let one = || {
        let piece = Frame::data(Bytes::from(call.clone()));
        let pieces = stream::iter([Ok::<_, Infallible>(piece)]);
        let body = StreamBody::new(pieces);
        let request = post(server.grpc, PATH, Bytes::new()).map(|_| body);
        let mut sender = sender.clone();
        async move {
            let answer = sender.send_request(request).await.unwrap();
            let body = answer.into_body().collect().await.unwrap();
            body.trailers().unwrap()["grpc-status"] == "0"
        }
    };
    // The first tells the client how many it may have.
    assert!(in_time(one()).await);
    let answered = in_time(join_all((0..1_024).map(|_| one()))).await;
    assert!(answered.iter().all(|is_well| *is_well));
}

#[tokio::test]
async fn a_deadline_that_is_met_changes_nothing() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    let mut request = Request::new(about(&[&[("user", "ann")]]));
    request.set_timeout(Duration::from_secs(20));
    let answer = in_time(client.should_rate_limit(request)).await.unwrap();
    assert_eq!(codes(&answer.into_inner())[0], "OK");
}

#[tokio::test]
async fn what_has_begun_is_answered_when_the_server_stops_and_then_it_ends() {
    let server = Server::start(EDGE).await;
    let stream = TcpStream::connect(server.grpc).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = in_time(handshake).await.unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        connection.await.ok();
    });
    // The head of a call, and its body only once the server is told to stop.
    let (more, mut pieces) = mpsc::channel::<Bytes>(1);
    let body = StreamBody::new(stream::poll_fn(move |context| {
        let piece = pieces.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok::<_, Infallible>(Frame::data(piece))))
    }));
    let request = post(server.grpc, PATH, Bytes::new()).map(|_| body);
    let answer = sender.send_request(request);
    let call = framed(&about(&[&[("user", "root")]]).encode_to_vec());
    let (first, rest) = call.split_at(7);
    more.send(first.to_vec().into()).await.unwrap();
    let answering = async {
        let stopping = server.stop();
        more.send(rest.to_vec().into()).await.unwrap();
        drop(more);
        stopping.ended().await
    };
    let (answer, end) = in_time(async { tokio::join!(answer, answering) }).await;
    let body = in_time(answer.unwrap().into_body().collect())
        .await
        .unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(end, ServeEnd::Drained);
}

#[tokio::test]
async fn idle_connections_are_no_reason_to_wait() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    ask(&mut client, about(&[&[("user", "ann")]])).await;
    assert_eq!(server.stop().ended().await, ServeEnd::Drained);
    assert!(in_time(client.should_rate_limit(about(&[]))).await.is_err());
}

/// PRIORITY means nothing any more, and nothing else bounds it.
#[tokio::test]
async fn a_flood_of_control_frames_is_cut() {
    let server = Server::start(EDGE).await;
    let stream = TcpStream::connect(server.grpc).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let priority = [0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 15];
    let many = priority.repeat(1_000);
    let sending = async {
        write
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        write.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        while write.write_all(&many).await.is_ok() {}
    };
    let mut replies = Vec::new();
    let receiving = read.read_to_end(&mut replies);
    // The server closes, and whatever it said before that may be lost.
    drop(in_time(async { tokio::join!(sending, receiving) }).await);
    let page = metrics(&server).await;
    let counted = "tidegate_connections_closed_total{door=\"grpc\",reason=\"flood\"} 1\n";
    assert!(page.contains(counted), "{page}");
}
