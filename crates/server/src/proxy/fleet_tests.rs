//! Requests are sent to a listener that answers or does not, and the events of the observer are checked.

use super::balance::Balancer;
use super::fleet::{AttemptObserver, Fleet};
use super::outgoing::Outgoing;
use super::standing::{UpstreamHealth, UpstreamLease};
use super::target::{Manner, UpstreamTarget};
use super::trouble::UpstreamError;
use super::upload::Upload;
use crate::tasks::Tasks;
use http::{Request, Uri};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_policy::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
    let text = format!(
        "
routes: [{{ id: all, upstreams: 'http://{upstream}' }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
"
    );
    let config = Config::from_yaml(&text).unwrap();
    let route = config.routes.get(0).unwrap();
    let standing = Arc::new(UpstreamHealth::new("all", "a", route.eject));
    let tasks = Arc::new(Tasks::new());
    let target = UpstreamTarget::new(&route.upstreams[0], route, Arc::clone(&standing), tasks);
    Fleet {
        targets: vec![Arc::new(target.unwrap())],
        balancer: Balancer::new([(standing, 1)], route.balance),
        retries: route.retries,
        host: route.host,
    }
}

fn request() -> Box<Outgoing> {
    let mut request = Request::new(Upload::none());
    *request.uri_mut() = Uri::from_static("/");
    Box::new(Outgoing::from(request))
}

/// Accepts a connection and reads a whole request from it.
async fn asked(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream
}

#[tokio::test]
async fn a_request_whose_client_goes_before_the_answer_is_abandoned_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fleet = fleet(listener.local_addr().unwrap());
    let heard = Heard::default();
    let _asked = tokio::select! {
        _ = fleet.forward(request(), Manner::Usual, &heard) => panic!("nobody has answered"),
        stream = asked(&listener) => stream,
    };
    assert_eq!(*heard.0.lock(), ["abandoned"]);
    let standing = &fleet.targets[0].standing;
    assert_eq!(standing.in_flight(), 0);
    assert!(standing.is_in(), "it is not the upstream that went");
}

#[tokio::test]
async fn a_request_that_is_answered_or_fails_is_not_abandoned() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fleet = fleet(listener.local_addr().unwrap());
    let heard = Heard::default();
    let answer = async {
        let mut stream = asked(&listener).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        stream
    };
    let forward = fleet.forward(request(), Manner::Usual, &heard);
    let (answered, _stream) = tokio::join!(forward, answer);
    drop(answered.unwrap());
    assert_eq!(*heard.0.lock(), ["answered"]);

    drop(listener);
    let failed = fleet.forward(request(), Manner::Usual, &heard).await;
    assert!(failed.is_err());
    assert!(!heard.0.lock().contains(&"abandoned"), "{heard:?}");
    assert_eq!(heard.0.lock().last(), Some(&"failed"));
}
