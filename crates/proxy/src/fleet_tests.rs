//! Requests are sent to a listener that answers or does not, and the events of the observer are checked.

use super::balance::Balancer;
use super::connection_kind::ConnectionKind;
use super::error::UpstreamError;
use super::fleet::{AttemptObserver, Fleet};
use super::outgoing::OutgoingRequest;
use super::target::UpstreamTarget;
use super::upload::Upload;
use super::upstream_health::{UpstreamHealth, UpstreamLease};
use http::{Request, Uri};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<&'static str>>);

impl AttemptObserver for Heard {
    fn answered(&self, _turn: &UpstreamLease) {
        self.0.lock().push("answered");
    }

    fn failed(&self, _turn: &UpstreamLease, _trouble: &UpstreamError) {
        self.0.lock().push("failed");
    }

    fn abandoned(&self, upstream: usize) {
        assert_eq!(upstream, 0);
        self.0.lock().push("abandoned");
    }

    fn tries_again(&self) {
        self.0.lock().push("tries again");
    }
}

/// Creates the fleet of a route with this one upstream.
fn fleet(upstream: SocketAddr) -> Fleet {
    fleet_of(&[upstream])
}

/// Creates the fleet of a route with these upstreams.
fn fleet_of(upstreams: &[SocketAddr]) -> Fleet {
    let urls: Vec<String> = upstreams
        .iter()
        .map(|it| format!("'http://{it}'"))
        .collect();
    let text = format!(
        "
routes: [{{ name: all, upstreams: [{}] }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
",
        urls.join(", ")
    );
    let config = Config::from_yaml(&text).unwrap();
    let route = config.routes.get(0).unwrap();
    let tasks = Arc::new(Tasks::new());
    let (mut targets, mut standings) = (Vec::new(), Vec::new());
    for (upstream, name) in route.upstreams.iter().zip(["a", "b"]) {
        let standing = Arc::new(UpstreamHealth::new("all", name, route.eject));
        let tasks = Arc::clone(&tasks);
        let target = UpstreamTarget::new(upstream, route, Arc::clone(&standing), tasks);
        targets.push(Arc::new(target.unwrap()));
        standings.push((standing, 1));
    }
    Fleet {
        targets,
        balancer: Balancer::new(standings, route.balance),
        retries: route.retries,
        host: route.host,
    }
}

fn request() -> Box<OutgoingRequest> {
    let mut request = Request::new(Upload::none());
    *request.uri_mut() = Uri::from_static("/");
    Box::new(OutgoingRequest::from(request))
}

/// Accepts a connection and reads a whole request from it.
async fn accept_request(listener: &TcpListener) -> TcpStream {
    head(listener).await.0
}

/// The same, with the head of the request.
async fn head(listener: &TcpListener) -> (TcpStream, String) {
    let reading = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (stream, String::from_utf8(head).unwrap())
    };
    let read = timeout(Duration::from_mins(1), reading).await;
    read.expect("a request comes")
}

#[tokio::test]
async fn only_a_request_whose_client_left_is_counted_as_abandoned() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fleet = fleet(listener.local_addr().unwrap());
    let heard = Heard::default();
    let _asked = tokio::select! {
        _ = fleet.forward(request(), ConnectionKind::Usual, &heard) => panic!("nobody has answered"),
        stream = accept_request(&listener) => stream,
    };
    assert_eq!(*heard.0.lock(), ["abandoned"]);
    let standing = &fleet.targets[0].standing;
    assert_eq!(standing.in_flight(), 0);
    assert!(standing.is_in(), "it is not the upstream that went");
}

#[tokio::test]
async fn answered_and_failed_requests_are_not_abandoned() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fleet = fleet(listener.local_addr().unwrap());
    let heard = Heard::default();
    let answer = async {
        let mut stream = accept_request(&listener).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        stream
    };
    let forward = fleet.forward(request(), ConnectionKind::Usual, &heard);
    let (answered, _stream) = tokio::join!(forward, answer);
    drop(answered.unwrap());
    assert_eq!(*heard.0.lock(), ["answered"]);

    drop(listener);
    let failed = fleet
        .forward(request(), ConnectionKind::Usual, &heard)
        .await;
    assert!(failed.is_err());
    assert!(!heard.0.lock().contains(&"abandoned"), "{heard:?}");
    assert_eq!(heard.0.lock().last(), Some(&"failed"));
}

#[tokio::test]
async fn a_retry_without_a_host_names_the_upstream_that_gets_it() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (dead, listener) = (
        gone.local_addr().unwrap(),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    drop(gone);
    let alive = listener.local_addr().unwrap();
    let fleet = fleet_of(&[dead, alive]);
    // Whichever upstream is first: one of two requests tries the dead one first.
    for _ in 0..2 {
        let answer = async {
            let (mut stream, head) = head(&listener).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            (stream, head)
        };
        let heard = Heard::default();
        let forward = fleet.forward(request(), ConnectionKind::Usual, &heard);
        let (answered, (_stream, lines)) = tokio::join!(forward, answer);
        drop(answered.unwrap());
        assert!(lines.contains(&format!("host: {alive}\r\n")), "{lines}");
    }
}
