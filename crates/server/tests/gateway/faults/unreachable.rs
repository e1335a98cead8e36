//! Upstreams that cannot be reached.

use super::kit::{Link, OK, Place, RawUpstream, TestGateway, assert_problem, post, stand};
use crate::kit::Client;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

#[tokio::test]
async fn a_refused_connection_is_502_with_the_reason() {
    let nobody = Place::reserve();
    let stand = stand(&[nobody.address], "").await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 502, "no upstream could be reached");
    assert_eq!(stand.page().await.outcomes("refused_connection"), 1);
}

/// The kernel accepts connections until its queue is full, and then drops them.
#[tokio::test]
async fn an_unaccepted_connection_is_504() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    let soon = Duration::from_millis(300);
    while let Ok(connected) = timeout(soon, TcpStream::connect(address)).await {
        queue.push(connected.unwrap());
        assert!(queue.len() < 100, "an endless queue");
    }
    let stand = stand(&[address], ", timeouts: { connect: 100ms }").await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 504, "no upstream accepted the request in time");
    assert_eq!(stand.page().await.outcomes("connect_timeout"), 1);
    stand.is_at_rest().await;
}

/// A TLS handshake is part of connecting.
#[tokio::test]
async fn an_unanswered_handshake_is_504_and_closes_the_connection() {
    let mute = RawUpstream::start(|link: Link| link.until_closed()).await;
    let upstream = format!("https://localhost:{}", mute.address.port());
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ name: all, upstreams: ['{upstream}'], policy: none, timeouts: {{ connect: 100ms }} }}]
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
"
    );
    let stand = TestGateway::start(&config).await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 504, "no upstream accepted the request in time");
    assert!(mute.accepted() > 0);
    mute.has_open(0).await;
}

/// Requests for an unsupported upgrade must not affect others.
#[tokio::test]
async fn declined_upgrades_do_not_eject_an_upstream() {
    let idle = RawUpstream::start(|link: Link| link.until_closed()).await;
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ name: all, upstreams: ['h2c://{}'], policy: none, eject: {{ failures: 2, for: 1h }} }}]
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        idle.address
    );
    let stand = TestGateway::start(&config).await;
    for _ in 0..4 {
        let mut client = Client::connect(stand.address).await;
        let reply = client.get("/", &["connection: upgrade", "upgrade: websocket"]);
        assert_eq!(reply.await.status(), 502);
    }
    let page = stand.page().await;
    assert_eq!(
        page.sum("tidegate_gateway_upstream_ejections_total", &[]),
        0
    );
    assert_eq!(page.sum("tidegate_gateway_upstream_healthy", &[]), 1);
}

#[tokio::test]
async fn a_body_is_not_lost_with_the_upstream_that_could_not_be_reached() {
    let well = RawUpstream::start(|mut link: Link| async move {
        while let Some((_, content)) = link.request().await? {
            assert_eq!(content.bytes, b"hello");
            link.say(OK).await?;
        }
        Ok(())
    })
    .await;
    let nobody = Place::reserve();
    let stand = stand(&[nobody.address, well.address], "").await;
    for _ in 0..4 {
        let mut client = Client::connect(stand.address).await;
        let reply = client.ask(post("/", "hello")).await;
        assert_eq!(reply.status(), 200, "{reply:?}");
    }
    let page = stand.page().await;
    assert_eq!(page.sum("tidegate_gateway_retries_total", &[]), 2);
}
