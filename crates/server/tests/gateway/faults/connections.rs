//! More requests than an upstream's connection limit.

use super::kit::{Link, OK, RawUpstream, TestGateway, assert_problem, stand};
use crate::kit::certificates::Certificates;
use crate::kit::message::Messages;
use crate::kit::modern::{H2, acceptor, body};
use crate::kit::{Client, gate, get, in_time, request};
use futures_util::future::join_all;
use http::{Request, Response};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};

const FULL: &str = "all connections to the upstream are in use, and none became free in time";

/// Starts an upstream that replies to one request per permit.
async fn holding(permits: usize) -> (RawUpstream, Arc<Semaphore>) {
    let answers = Arc::new(Semaphore::new(permits));
    let each = Arc::clone(&answers);
    let wild = RawUpstream::start(move |mut link: Link| {
        let answers = Arc::clone(&each);
        async move {
            while link.request().await?.is_some() {
                answers.acquire().await.unwrap().forget();
                link.say(OK).await?;
            }
            Ok(())
        }
    });
    (wild.await, answers)
}

/// Returns a client that has sent a request; `nth` requests are in flight then.
async fn asking(stand: &TestGateway, nth: u64) -> Client {
    let mut client = Client::connect(stand.address).await;
    client.send(request("GET", "/", &[])).await;
    stand
        .shows("a request in flight", |page| page.in_flight() == nth)
        .await;
    client
}

/// Regression: each request of an HTTP/2 client opened a connection to an HTTP/1 upstream.
#[tokio::test]
async fn a_client_by_http2_does_not_open_a_connection_with_each_request() {
    let (upstream, answers) = holding(0).await;
    let more = ", connections: { max: 4 }, timeouts: { connect: 30s }";
    let stand = stand(&[upstream.address], more).await;
    let client = H2::connect(stand.address).await;
    let requests = (0..100).map(|_| {
        let mut sender = client.sender();
        let request = Request::get("http://shop.example/").body(body("", &[]));
        async move {
            sender
                .send_request(request.unwrap())
                .await
                .unwrap()
                .status()
        }
    });
    let requests = async { join_all(requests).await };
    let release = async {
        let is_full = |page: &super::kit::Page| page.in_flight() == 100;
        stand.shows("all requests in flight", is_full).await;
        answers.add_permits(100);
    };
    let (statuses, ()) = in_time("all answers", async { tokio::join!(requests, release) }).await;
    assert!(statuses.iter().all(|it| *it == 200), "{statuses:?}");
    assert_eq!(upstream.accepted(), 4);
}

#[tokio::test]
async fn connections_are_used_again_by_hundreds_of_clients() {
    let (upstream, _) = holding(3_000).await;
    let stand = stand(&[upstream.address], "").await;
    let each = (0..300).map(|_| async {
        let mut client = Client::connect(stand.address).await;
        for _ in 0..10 {
            assert_eq!(client.get("/", &[]).await.status(), 200);
        }
    });
    join_all(each).await;
    assert!(upstream.accepted() <= 300, "{}", upstream.accepted());
}

#[tokio::test]
async fn a_request_waits_for_the_connection_of_another() {
    let (upstream, answers) = holding(0).await;
    let more = ", connections: { max: 1 }, timeouts: { connect: 30s }";
    let stand = stand(&[upstream.address], more).await;
    let mut first = asking(&stand, 1).await;
    let mut second = asking(&stand, 2).await;
    answers.add_permits(2);
    assert_eq!(first.reply("GET").await.status(), 200);
    assert_eq!(second.reply("GET").await.status(), 200);
    assert_eq!(upstream.accepted(), 1);
}

#[tokio::test]
async fn a_request_without_a_free_connection_is_503_and_counted() {
    for waiting in [
        "connections: { max: 1, max_waiting: 0 }, timeouts: { connect: 30s }",
        "connections: { max: 1 }, timeouts: { connect: 50ms }",
    ] {
        let (upstream, answers) = holding(0).await;
        let stand = stand(&[upstream.address], &format!(", {waiting}")).await;
        let mut first = asking(&stand, 1).await;
        let refused = stand.get("/").await;
        assert_problem(&refused, 503, FULL);
        assert_eq!(refused.head.get("retry-after"), Some("1"));
        assert_eq!(stand.page().await.outcomes("connections_full"), 1);
        answers.add_permits(2);
        assert_eq!(first.reply("GET").await.status(), 200);
        assert_eq!(stand.get("/").await.status(), 200, "{waiting}");
        assert_eq!(upstream.accepted(), 1, "{waiting}");
    }
}

#[tokio::test]
async fn a_waiting_client_that_leaves_frees_its_place_in_the_queue() {
    let (upstream, answers) = holding(0).await;
    let more = ", connections: { max: 1, max_waiting: 1 }, timeouts: { connect: 30s }";
    let stand = stand(&[upstream.address], more).await;
    let mut first = asking(&stand, 1).await;
    drop(asking(&stand, 2).await);
    stand
        .shows("one request in flight", |page| page.in_flight() == 1)
        .await;
    let mut third = asking(&stand, 2).await;
    assert_problem(&stand.get("/").await, 503, FULL);
    answers.add_permits(2);
    assert_eq!(first.reply("GET").await.status(), 200);
    assert_eq!(third.reply("GET").await.status(), 200);
}

#[tokio::test]
async fn a_client_that_leaves_releases_its_connection() {
    let (upstream, answers) = holding(0).await;
    let more = ", connections: { max: 1, max_waiting: 0 }";
    let stand = stand(&[upstream.address], more).await;
    for _ in 0..3 {
        drop(asking(&stand, 1).await);
        stand
            .shows("nothing in flight", |page| page.in_flight() == 0)
            .await;
    }
    answers.add_permits(4);
    assert_eq!(stand.get("/").await.status(), 200);
}

#[tokio::test]
async fn a_request_goes_to_another_upstream_if_one_is_at_its_bound() {
    let (busy, _answers) = holding(0).await;
    let (free, _) = holding(10).await;
    let more = ", connections: { max: 1, max_waiting: 0 }";
    let stand = stand(&[busy.address, free.address], more).await;
    let _first = asking(&stand, 1).await;
    for _ in 0..6 {
        assert_eq!(stand.get("/").await.status(), 200);
    }
    assert_eq!((busy.accepted(), free.accepted()), (1, 1));
}

/// A tunnel counts as a connection while it is open.
#[tokio::test]
async fn an_upgraded_connection_counts_until_it_ends() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        while let Some((head, _)) = link.request().await? {
            if head.get("upgrade").is_some() {
                let switch =
                    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade";
                link.say(format!("{switch}\r\n\r\n")).await?;
                return link.until_closed().await;
            }
            link.say(OK).await?;
        }
        Ok(())
    })
    .await;
    let more = ", upgrades: x, connections: { max: 1, max_waiting: 0 }";
    let stand = stand(&[upstream.address], more).await;
    let mut tunnel = Client::connect(stand.address).await;
    let upgrade = ["upgrade: x", "connection: upgrade"];
    tunnel.send(request("GET", "/", &upgrade)).await;
    assert_eq!(tunnel.head().await.status(), 101);
    assert_problem(&stand.get("/").await, 503, FULL);
    drop(tunnel);
    stand
        .shows("nothing in flight", |page| page.in_flight() == 0)
        .await;
    assert_eq!(stand.get("/").await.status(), 200);
    // An idle connection is closed for an upgrade.
    let mut tunnel = Client::connect(stand.address).await;
    tunnel.send(request("GET", "/", &upgrade)).await;
    assert_eq!(tunnel.head().await.status(), 101);
    upstream.has_open(1).await;
}

/// Replies to one request over HTTP/2, and closes.
async fn answer_by_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let answered = Arc::new(Notify::new());
    let by_each = Arc::clone(&answered);
    let service = service_fn(move |_| {
        by_each.notify_one();
        ready(Ok::<_, Infallible>(Response::new(body("", &[]))))
    });
    let http = http2::Builder::new(TokioExecutor::new());
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ended = connection.as_mut() => return,
        () = answered.notified() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.ok();
}

/// Regression: `connections.max` had no effect after the first HTTP/2 connection.
#[tokio::test]
async fn an_upstream_back_on_http1_keeps_its_connection_bound() {
    let certificates = Certificates::make();
    let http2 = acceptor(&certificates, &["h2"]);
    let http1 = acceptor(&certificates, &["http/1.1"]);
    let [arrived, answers] = [0, 1].map(|permits| Arc::new(Semaphore::new(permits)));
    let (each_arrived, each_answers) = (Arc::clone(&arrived), Arc::clone(&answers));
    let upstream = RawUpstream::start(move |link: Link| {
        let (arrived, answers) = (Arc::clone(&each_arrived), Arc::clone(&each_answers));
        let (http1, http2) = (http1.clone(), http2.clone());
        async move {
            let stream = link.messages.stream;
            if link.nth == 0 {
                answer_by_http2(http2.accept(stream).await?).await;
                return Ok::<_, io::Error>(());
            }
            let mut messages = Messages::new(http1.accept(stream).await?);
            while messages.head().await?.is_some() {
                arrived.add_permits(1);
                answers.acquire().await.unwrap().forget();
                messages.stream.write_all(OK.as_bytes()).await?;
            }
            Ok(())
        }
    })
    .await;
    let more = format!(
        ", tls: {{ ca: '{}' }}, connections: {{ max: 2, max_waiting: 0 }}",
        certificates.path("ca.pem")
    );
    let url = format!("https://localhost:{}", upstream.address.port());
    let gate = gate::open(url, &more).await;
    assert_eq!(get(gate.address, "/", &[]).await.status(), 200);
    upstream.has_open(0).await;
    // A request may still use the connection that has just closed.
    in_time("an answer by HTTP/1", async {
        while get(gate.address, "/", &[]).await.status() != 200 {}
    })
    .await;
    in_time("its request", arrived.acquire())
        .await
        .unwrap()
        .forget();

    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(gate.address).await;
        client.send(request("GET", "/", &[])).await;
        in_time("a request", arrived.acquire())
            .await
            .unwrap()
            .forget();
        clients.push(client);
    }
    assert_problem(&get(gate.address, "/", &[]).await, 503, FULL);
    answers.add_permits(2);
    for client in &mut clients {
        assert_eq!(client.reply("GET").await.status(), 200);
    }
    // One over HTTP/2, and two over HTTP/1.
    assert_eq!(upstream.accepted(), 3);
}

/// Requests that wait for a connection use up the window of their client's HTTP/2 connection.
/// Regression: an upload to another upstream then got 408, although its client was not allowed to
/// send it.
#[tokio::test]
async fn an_upload_blocked_by_other_streams_is_not_408() {
    let (busy, answers) = holding(0).await;
    let (free, _) = holding(1).await;
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - name: busy
    match: {{ path: /busy }}
    upstreams: ['http://{}']
    policy: none
    min_upload_rate: 0
    connections: {{ max: 1 }}
    timeouts: {{ connect: 30s }}
  - name: free
    upstreams: ['http://{}']
    policy: none
    min_upload_rate: 1MiB
    timeouts: {{ upload_grace: 1s }}
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        busy.address, free.address
    );
    let stand = TestGateway::start(&config).await;
    let client = H2::connect(stand.address).await;
    let ask = |path: &str, bytes: usize| {
        let mut sender = client.sender();
        let request = Request::post(format!("http://shop.example{path}"));
        let request = request.body(body(vec![7; bytes], &[])).unwrap();
        async move { sender.send_request(request).await.unwrap().status() }
    };
    let others = join_all((0..8).map(|_| ask("/busy", 256 << 10)));
    let upload = async {
        stand
            .shows("the others in flight", |page| page.in_flight() == 8)
            .await;
        ask("/free", 16 << 10).await
    };
    let release = async {
        stand
            .shows("the upload in flight", |page| page.in_flight() == 9)
            .await;
        // Longer than the timeout of a client that could send.
        let mut slow = Client::connect(stand.address).await;
        let begin = request("POST", "/free", &["content-length: 5"]);
        assert_eq!(slow.ask(begin).await.status(), 408);
        answers.add_permits(8);
    };
    let all = Box::pin(async { tokio::join!(others, upload, release) });
    let (others, upload, ()) = in_time("all answers", all).await;
    assert_eq!(upload, 200);
    assert!(others.iter().all(|it| *it == 200), "{others:?}");
}
