//! Tunnels of which one side finishes before the other.

use super::kit::{Link, OK, RawUpstream, TestGateway, stand};
use crate::kit::{Client, in_time, request};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

const AGREED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
const MORE: &str = ", upgrades: [raw]";

/// More than any buffer in between holds.
const MUCH: usize = 2 << 20;

async fn upgraded(stand: &TestGateway) -> Client {
    let mut client = Client::connect(stand.address).await;
    let fields = ["connection: upgrade", "upgrade: raw"];
    client.send(request("GET", "/", &fields)).await;
    let head = client.head().await;
    assert_eq!(head.status(), 101, "{head:?}");
    assert_eq!(head.get("upgrade"), Some("raw"));
    client
}

#[tokio::test]
async fn client_data_arrives_after_the_upstream_has_finished() {
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    let upstream = RawUpstream::start(move |mut link: Link| {
        let tell = Arc::clone(&tell);
        async move {
            link.messages.head().await?;
            link.say(AGREED).await?;
            // Both have sent data: a connection with unread data must not be closed like an HTTP
            // one.
            link.messages.exactly(5).await?;
            link.say("bye").await?;
            link.messages.stream.shutdown().await?;
            let heard = link.messages.exactly(MUCH).await?;
            let is_over = !link.messages.more().await?;
            let tell = tell.lock().take().unwrap();
            tell.send((heard.iter().all(|byte| *byte == b'x'), is_over))
                .ok();
            Ok(())
        }
    })
    .await;
    let stand = stand(&[upstream.address], MORE).await;
    let mut client = upgraded(&stand).await;
    client.send("hello").await;
    assert_eq!(client.messages.exactly(3).await.unwrap(), b"bye");
    assert!(client.is_closed().await, "the upstream has finished");
    client.send(vec![b'x'; MUCH]).await;
    client.messages.stream.shutdown().await.unwrap();
    assert_eq!(in_time("all of it", told).await, Ok((true, true)));
    upstream.has_open(0).await;
    stand.is_at_rest().await;
}

#[tokio::test]
async fn upstream_data_arrives_after_the_client_has_finished() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.messages.head().await?;
        link.say(AGREED).await?;
        while link.messages.more().await? {}
        link.say(vec![b'y'; MUCH]).await
    })
    .await;
    let stand = stand(&[upstream.address], MORE).await;
    let mut client = upgraded(&stand).await;
    client.send("hello").await;
    client.messages.stream.shutdown().await.unwrap();
    let heard = in_time("all of it", client.messages.exactly(MUCH))
        .await
        .unwrap();
    assert!(heard.iter().all(|byte| *byte == b'y'));
    assert!(client.is_closed().await);
    stand.is_at_rest().await;
}

#[tokio::test]
async fn an_idle_tunnel_is_closed_on_both_sides() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.messages.head().await?;
        link.say(AGREED).await?;
        link.until_closed().await
    })
    .await;
    let stand = stand(
        &[upstream.address],
        ", upgrades: [raw], timeouts: { idle: 200ms }",
    )
    .await;
    let mut client = upgraded(&stand).await;
    assert!(client.is_closed().await);
    upstream.has_open(0).await;
    drop(client);
    stand.is_at_rest().await;
    let page = stand.page().await;
    assert_eq!(page.sum("tidegate_gateway_tunnels", &[]), 0);
}

#[tokio::test]
async fn a_declined_upgrade_is_forwarded_and_a_lost_one_is_502() {
    for (answer, status) in [
        (
            "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n",
            426,
        ),
        (OK, 200),
        ("HTTP/1.1 101 Swi", 502),
    ] {
        let upstream = RawUpstream::start(move |mut link: Link| async move {
            link.request().await?;
            link.say(answer).await
        })
        .await;
        let stand = stand(&[upstream.address], MORE).await;
        let mut client = Client::connect(stand.address).await;
        let fields = ["connection: upgrade", "upgrade: raw"];
        assert_eq!(client.get("/", &fields).await.status(), status);
        // The connection speaks HTTP as before.
        let next = client.get("/", &[]).await;
        assert!([200, 426, 502].contains(&next.status()));
    }
}

#[tokio::test]
async fn a_client_that_leaves_closes_its_tunnel() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.messages.head().await?;
        link.say(AGREED).await?;
        loop {
            link.say("tick ").await?;
        }
    })
    .await;
    let stand = stand(&[upstream.address], MORE).await;
    let mut client = upgraded(&stand).await;
    client.messages.exactly(5).await.unwrap();
    drop(client);
    upstream.has_open(0).await;
    stand.is_at_rest().await;
}
