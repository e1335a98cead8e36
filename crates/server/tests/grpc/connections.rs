//! Shutdown, resets, and concurrent calls.

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
use tidegate_net::tasks::Tasks;
use tidegate_server::program::ServeEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tonic::Request;

#[tokio::test]
async fn concurrent_calls_pass_exactly_up_to_the_limit() {
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

/// Envoy cancels calls without a reply after some milliseconds, all at once if anything is slow.
#[tokio::test]
async fn a_burst_of_cancelled_calls_affects_no_other() {
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
            // Sent, and cancelled before any reply.
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

/// Some clients end a call with a separate frame, so the receive queue holds many small pieces. A
/// client with too many of them counts as an attacker.
#[tokio::test]
async fn the_maximum_of_concurrent_calls_may_arrive_in_one_write() {
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
    // During the first call the client receives the allowed number.
    assert!(in_time(one()).await);
    let answered = in_time(join_all((0..1_024).map(|_| one()))).await;
    assert!(answered.iter().all(|is_well| *is_well));
}

#[tokio::test]
async fn a_kept_deadline_changes_nothing() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    let mut request = Request::new(about(&[&[("user", "ann")]]));
    request.set_timeout(Duration::from_secs(20));
    let answer = in_time(client.should_rate_limit(request)).await.unwrap();
    assert_eq!(codes(&answer.into_inner())[0], "OK");
}

#[tokio::test]
async fn a_stopping_server_answers_started_calls_and_ends() {
    let server = Server::start(EDGE).await;
    let stream = TcpStream::connect(server.grpc).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = in_time(handshake).await.unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        connection.await.ok();
    });
    // The headers of a call, and its body after the shutdown has begun.
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
async fn idle_connections_do_not_delay_shutdown() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    ask(&mut client, about(&[&[("user", "ann")]])).await;
    assert_eq!(server.stop().ended().await, ServeEnd::Drained);
    assert!(in_time(client.should_rate_limit(about(&[]))).await.is_err());
}

/// PRIORITY has no effect any more, so nothing else bounds it.
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
    // The server closes; what it sent before may be lost.
    drop(in_time(async { tokio::join!(sending, receiving) }).await);
    let page = metrics(&server).await;
    let counted = "tidegate_connections_closed_total{listener=\"grpc\",reason=\"flood\"} 1\n";
    assert!(page.contains(counted), "{page}");
}
