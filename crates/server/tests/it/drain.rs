//! Shutdown without losing requests.

use crate::kit::{Client, PLENTY, Server, get, in_time};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tidegate_net::bounds::Bounds;
use tidegate_net::tasks::Tasks;
use tidegate_server::program::ServeEnd;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// A request head with `Expect: 100-continue`: the interim response shows that it was read.
const HEAD: &str = "POST /v1/check HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\n\
                    content-length: 2\r\n\r\n";

#[tokio::test]
async fn a_server_without_connections_stops_at_once() {
    let server = Server::start(PLENTY).await;
    assert_eq!(server.stop().ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn a_started_request_is_finished_and_is_the_last() {
    let server = Server::start(PLENTY).await;
    let (http, admin) = (server.http, server.admin);
    let mut client = Client::connect(http).await;
    assert!(client.post("{}").await.is_allowed());
    assert_eq!(client.ask(HEAD).await.status, 100);

    let stopping = server.stop();
    wait_until_draining(admin).await;
    let ready = get(admin, "/readyz").await;
    assert_eq!(
        (ready.status, ready.body.as_str()),
        (503, "{\"ready\":false,\"reasons\":[\"draining\"]}\n")
    );
    assert_eq!(get(admin, "/livez").await.status, 200);
    assert!(
        TcpStream::connect(http).await.is_err(),
        "no new connections"
    );

    let reply = client.ask("{}").await;
    assert!(reply.is_allowed());
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(client.is_closed().await);
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let server = Server::start(PLENTY).await;
    let mut used = Client::connect(server.http).await;
    assert!(used.post("{}").await.is_allowed());
    let mut fresh = Client::connect(server.http).await;
    let stopping = server.stop();
    assert!(used.is_closed().await);
    assert!(fresh.is_closed().await);
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn unfinished_requests_are_cut_after_the_drain() {
    let bounds = Bounds {
        drain_time: Duration::from_millis(50),
        farewell_time: Duration::from_millis(10),
        ..Bounds::default()
    };
    let server = Server::with(PLENTY, bounds).await;
    let mut stuck = Client::connect(server.http).await;
    assert!(stuck.post("{}").await.is_allowed());
    assert_eq!(stuck.ask(HEAD).await.status, 100);
    assert_eq!(server.stop().ended().await, ServeEnd::Cut(1));
    assert!(stuck.is_closed().await);
}

/// Clients without a pause, each with a kept connection: every request gets a response, until one
/// announces the close.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_no_request_is_lost() {
    const CLIENTS: u64 = 32;
    let server = Server::start(PLENTY).await;
    let http = server.http;
    let answered = Arc::new(AtomicU64::new(0));
    let content = Arc::new(AtomicU64::new(0));
    let is_warm = Arc::new(Notify::new());
    let clients = Tasks::new();
    for _ in 0..CLIENTS {
        let (answered, content) = (Arc::clone(&answered), Arc::clone(&content));
        let is_warm = Arc::clone(&is_warm);
        clients.spawn(async move {
            let mut client = Client::connect(http).await;
            loop {
                let reply = client.post("{}").await;
                assert!(reply.is_allowed());
                if answered.fetch_add(1, SeqCst) == 2_000 {
                    is_warm.notify_one();
                }
                if reply.header("connection") == Some("close") {
                    content.fetch_add(1, SeqCst);
                    return;
                }
            }
        });
    }
    in_time("2,000 answers", is_warm.notified()).await;
    let stopping = server.stop();
    in_time("the end of all clients", clients.finished()).await;
    assert_eq!(content.load(SeqCst), CLIENTS);
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

/// Connections that the kernel has accepted at the shutdown, and the server has not, with their
/// requests in them.
#[tokio::test]
async fn connections_in_the_accept_queue_are_answered() {
    let server = Server::start(PLENTY).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        // On the single thread of this test, the server has not run when the connect returns.
        let stream = std::net::TcpStream::connect(server.http).unwrap();
        stream.set_nonblocking(true).unwrap();
        clients.push(Client::over(TcpStream::from_std(stream).unwrap()));
    }
    let stopping = server.stop();
    for client in &mut clients {
        assert!(client.post("{}").await.is_allowed());
    }
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

async fn wait_until_draining(admin: SocketAddr) {
    in_time("/readyz fails", async {
        while get(admin, "/readyz").await.status != 503 {}
    })
    .await;
}
