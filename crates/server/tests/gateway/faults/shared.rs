//! The HTTP/2 connection that all requests to an upstream share, and their fate when it ends.

use super::kit::{Link, OK, RawUpstream, TestGateway, post, stand};
use crate::kit::{Client, in_time};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tidegate_net::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// How an upstream ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// With GOAWAY, after replying to all earlier requests.
    Well,
    /// Without notice.
    Badly,
}

/// Starts an upstream that ends each connection after this many requests; returns its count of
/// executed requests.
async fn mortal(ends: Ends, after: usize) -> (TestGateway, Arc<AtomicUsize>, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let (tasks, count) = (Tasks::new(), Arc::clone(&ran));
    tasks.spawn(async move {
        let connections = Tasks::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(live(stream, ends, after, Arc::clone(&count)));
        }
    });
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ name: all, upstreams: ['h2c://{address}'], policy: none, eject: off }}]
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
"
    );
    (TestGateway::start(&config).await, ran, tasks)
}

async fn live(stream: TcpStream, ends: Ends, after: usize, ran: Arc<AtomicUsize>) {
    let enough = Arc::new(Notify::new());
    let told = Arc::clone(&enough);
    let here = Arc::new(AtomicUsize::new(0));
    let service = service_fn(move |_| {
        ran.fetch_add(1, SeqCst);
        if here.fetch_add(1, SeqCst) + 1 == after {
            told.notify_one();
        }
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("ok")))) }
    });
    let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = enough.notified() => {}
    }
    if ends == Ends::Well {
        connection.as_mut().graceful_shutdown();
        connection.await.ok();
    }
}

#[tokio::test]
async fn requests_that_may_be_repeated_never_fail_because_their_connection_ends() {
    for after in [1, 3] {
        let (stand, ran, _upstream) = mortal(Ends::Well, after).await;
        let clients = (0..4).map(|_| async {
            let mut client = Client::connect(stand.address).await;
            for nth in 0..100 {
                let reply = client.get("/", &[]).await;
                assert_eq!((reply.status(), reply.text()), (200, "ok"), "{nth}");
            }
        });
        join_all(clients).await;
        assert!(ran.load(SeqCst) >= 400);
        stand.is_at_rest().await;
    }
}

/// One after the other, so that each but the first finds a connection that has just ended.
#[tokio::test]
async fn a_silently_closed_connection_is_replaced() {
    let (stand, _, _upstream) = mortal(Ends::Badly, 2).await;
    let mut client = Client::connect(stand.address).await;
    for nth in 0..100 {
        // The request on the ending connection may get a response or not, and is repeated.
        let reply = client.get("/", &[]).await;
        assert_eq!(reply.status(), 200, "{nth}");
    }
}

#[tokio::test]
async fn a_post_is_not_run_twice_because_its_connection_ends() {
    for ends in [Ends::Well, Ends::Badly] {
        let (stand, ran, _upstream) = mortal(ends, 2).await;
        let mut client = Client::connect(stand.address).await;
        let mut answered = 0;
        for _ in 0..100 {
            let reply = client.ask(post("/", "hello")).await;
            match reply.status() {
                200 => answered += 1,
                502 => {}
                status => panic!("{status}"),
            }
        }
        let ran = ran.load(SeqCst);
        assert!(
            (answered..=100).contains(&ran),
            "{ends:?}: {answered} of {ran}"
        );
    }
}

/// An HTTP/2 client gets a stream reset; its other streams are unaffected.
#[tokio::test]
async fn a_cut_response_resets_only_its_own_stream() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        while let Some((head, _)) = link.request().await? {
            if head.line.starts_with("GET /cut ") {
                return link
                    .say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")
                    .await;
            }
            link.say(OK).await?;
        }
        Ok(())
    })
    .await;
    let stand = stand(&[upstream.address], "").await;
    let stream = TokioIo::new(TcpStream::connect(stand.address).await.unwrap());
    let hands = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await;
    let (mut sender, connection) = hands.unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        connection.await.ok();
    });
    for (path, is_whole) in [("/a", true), ("/cut", false), ("/b", true)] {
        let get = Request::get(format!("http://shop.example{path}"));
        let get = get.body(Empty::<Bytes>::new()).unwrap();
        let whole = async { sender.send_request(get).await?.into_body().collect().await };
        let whole = in_time("an answer, or its end", whole).await;
        assert_eq!(whole.is_ok(), is_whole, "{path}: {whole:?}");
    }
    assert_eq!(stand.page().await.outcomes("cut_short"), 1);
}
