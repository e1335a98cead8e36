use crate::world::{
    Hello, ManualStore, ONE_EACH, RunningServer, get, get_with, header, limiter, whole,
};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use std::time::Duration;
use tidegate::Store;
use tidegate_tower::RateLimitLayer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tower::{Layer as _, service_fn};

async fn serve(layer: RateLimitLayer<ManualStore>, app: Hello) -> RunningServer {
    RunningServer::start(|listener| async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let service = layer.layer(app.clone()).peer(peer);
            let service = TowerToHyperService::new(service);
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            connections.spawn(async move { drop(connection.await) });
        }
    })
    .await
}

#[tokio::test]
async fn each_connection_provides_its_peer() {
    let app = Hello::default();
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH)), app.clone()).await;
    let behind = |client| get_with(&[("x-forwarded-for", client)]);
    assert_eq!(server.ask(behind("192.0.2.1")).await.status(), 200);
    assert_eq!(server.ask(behind("192.0.2.1")).await.status(), 429);
    assert_eq!(server.ask(behind("192.0.2.2")).await.status(), 200);
    assert_eq!(app.called(), 2);
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_as_it_was() {
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH)), Hello::default()).await;
    let stream = TcpStream::connect(server.address)
        .await
        .expect("a connection");
    let connecting = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.expect("a client");
    let exchange = async move {
        let mut statuses = Vec::new();
        for (method, client) in [
            (Method::POST, "192.0.2.1"),
            (Method::POST, "192.0.2.1"),
            (Method::HEAD, "192.0.2.1"),
            (Method::GET, "192.0.2.2"),
        ] {
            let request = Request::builder()
                .method(method.clone())
                .header("host", "a")
                .header("x-forwarded-for", client)
                .body(Full::<Bytes>::from("a body that nobody reads"));
            let answer = sender.send_request(request.expect("a request")).await;
            let answer = whole(answer.expect("an answer")).await;
            // A refused HEAD has the headers of the refusal, and no body.
            assert_eq!(answer.body().is_empty(), method == Method::HEAD);
            statuses.push(answer.status().as_u16());
        }
        statuses
    };
    let (statuses, _) = tokio::join!(exchange, connection);
    assert_eq!(statuses, [200, 429, 429, 200]);
}

#[tokio::test]
async fn a_refusal_contains_the_request_id() {
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH)), Hello::default()).await;
    let with_id = || get_with(&[("x-correlation-id", "abc-123")]);
    assert_eq!(
        header(&server.ask(with_id()).await, "x-correlation-id"),
        None
    );
    let refused = server.ask(with_id()).await;
    assert_eq!(header(&refused, "x-correlation-id"), Some("abc-123"));
    let body: serde_json::Value = serde_json::from_slice(refused.body()).expect("JSON");
    assert_eq!(body["correlationId"], "abc-123");
    assert_eq!(server.ask(get()).await.status(), 429);
}

#[tokio::test]
async fn a_refused_head_broke_a_connection_over_http_2() {
    let layer = RateLimitLayer::new(limiter(ONE_EACH));
    let closed = limiter(ONE_EACH);
    closed.close();
    for (layer, statuses) in [
        (layer, [200, 429, 429]),
        (RateLimitLayer::new(closed), [503; 3]),
    ] {
        let server = serve_http2(layer).await;
        let stream = TcpStream::connect(server.address).await.expect("it is up");
        let connecting =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = connecting.await.expect("a client");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { connection.await.expect("both ends follow the protocol") });
        let mut lengths = Vec::new();
        let methods = [Method::GET, Method::HEAD, Method::GET];
        for (method, status) in methods.into_iter().zip(statuses) {
            let request = Request::builder().method(method.clone()).uri("http://a/");
            let request = request.body(Full::<Bytes>::default()).expect("a request");
            let answer = sender.send_request(request).await.expect("an answer");
            let answer = whole(answer).await;
            assert_eq!(answer.status(), status);
            assert_eq!(answer.body().is_empty(), method == Method::HEAD);
            if status != 200 {
                lengths.push(
                    header(&answer, "content-length")
                        .expect("a length")
                        .to_owned(),
                );
            }
        }
        // `HEAD` contains the length that the body would have.
        lengths.dedup();
        assert_eq!(lengths.len(), 1, "{lengths:?}");
        drop(sender);
        tasks.join_next().await.expect("a task").expect("no panic");
    }
}

async fn serve_http2(layer: RateLimitLayer<ManualStore>) -> RunningServer {
    RunningServer::start(|listener| async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let service = TowerToHyperService::new(layer.layer(Hello::default()).peer(peer));
            let connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            connections.spawn(async move { drop(connection.await) });
        }
    })
    .await
}

async fn upgrade<S: Store + 'static>(layer: RateLimitLayer<S>) {
    let (sent, mut changing) = mpsc::channel(1);
    // An application that upgrades the connection and passes it to this test.
    let app = service_fn(move |mut request: Request<Incoming>| {
        let upgrading = hyper::upgrade::on(&mut request);
        sent.try_send(upgrading).expect("the receiver is alive");
        let answer = Response::builder()
            .status(101)
            .header("connection", "upgrade")
            .header("upgrade", "tide");
        std::future::ready(answer.body(Full::<Bytes>::default()))
    });
    let server = RunningServer::start(|listener| async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let service = TowerToHyperService::new(layer.layer(app.clone()).peer(peer));
            let connection = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            connections.spawn(async move { drop(connection.await) });
        }
    })
    .await;
    let (mut client, head) = ask_to_upgrade(&server).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: tide\r\n"), "{head}");
    assert!(head.contains("x-ratelimit-remaining: 0\r\n"), "{head}");
    let changing = tokio::time::timeout(Duration::from_secs(60), changing.recv()).await;
    let upgraded = changing.expect("in time").expect("a request arrived").await;
    let mut application = TokioIo::new(upgraded.expect("it changes"));
    let mut said = [0; 4];
    client.write_all(b"ebb?").await.expect("it is sent");
    application.read_exact(&mut said).await.expect("it comes");
    assert_eq!(&said, b"ebb?");
    application.write_all(b"flow").await.expect("it is sent");
    client.read_exact(&mut said).await.expect("it comes");
    assert_eq!(&said, b"flow");

    let (_, head) = ask_to_upgrade(&server).await;
    assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
}

/// Requests an upgrade; returns the connection and the head of the response.
async fn ask_to_upgrade(server: &RunningServer) -> (TcpStream, String) {
    let asked = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: tide\r\n\r\n";
    let stream = TcpStream::connect(server.address).await;
    let mut stream = stream.expect("a connection");
    stream
        .write_all(asked.as_bytes())
        .await
        .expect("it is sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    (stream, String::from_utf8(head).expect("text"))
}

#[tokio::test]
async fn a_connection_that_changes_its_protocol_passes_through() {
    upgrade(RateLimitLayer::new(limiter(ONE_EACH))).await;
    upgrade(RateLimitLayer::new(crate::slow::limiter(ONE_EACH))).await;
}
