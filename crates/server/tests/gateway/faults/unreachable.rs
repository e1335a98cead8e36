//! Upstreams that cannot be reached.

use super::kit::{Link, OK, Place, Stand, Wild, assert_problem, post, stand};
use crate::kit::Client;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

#[tokio::test]
async fn where_nobody_listens_the_answer_is_502_and_says_so() {
    let nobody = Place::reserve();
    let stand = stand(&[nobody.address], "").await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 502, "no upstream could be reached");
    assert_eq!(stand.page().await.outcomes("refused_connection"), 1);
}

/// The system accepts connections for a program until its queue is full, and then is silent.
#[tokio::test]
async fn a_connection_that_nobody_takes_is_504() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    let soon = Duration::from_millis(300);
    while let Ok(connected) = timeout(soon, TcpStream::connect(address)).await {
        queue.push(connected.unwrap());
        assert!(queue.len() < 100, "the queue has no end");
    }
    let stand = stand(&[address], ", timeouts: { connect: 100ms }").await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 504, "no upstream took the request in time");
    assert_eq!(stand.page().await.outcomes("connect_timeout"), 1);
    stand.is_at_rest().await;
}

/// A handshake belongs to connecting.
#[tokio::test]
async fn a_handshake_that_nobody_answers_is_504_and_its_connection_is_closed() {
    let mute = Wild::start(|link: Link| link.until_closed()).await;
    let upstream = format!("https://localhost:{}", mute.address.port());
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ id: all, upstreams: ['{upstream}'], policy: none, timeouts: {{ connect: 100ms }} }}]
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
"
    );
    let stand = Stand::start(&config).await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 504, "no upstream took the request in time");
    assert!(mute.accepted() > 0);
    mute.has_open(0).await;
}

/// Who asks for an upgrade where there is none must not make others suffer.
#[tokio::test]
async fn upgrades_that_are_not_to_be_had_do_not_eject_an_upstream() {
    let idle = Wild::start(|link: Link| link.until_closed()).await;
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ id: all, upstreams: ['h2c://{}'], policy: none, eject: {{ failures: 2, for: 1h }} }}]
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        idle.address
    );
    let stand = Stand::start(&config).await;
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
    let well = Wild::start(|mut link: Link| async move {
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
