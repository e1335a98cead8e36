//! Upstreams that take too long.

use super::kit::{Link, OK, RawUpstream, assert_problem, stand};
use crate::kit::{Client, request};
use std::future::pending;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_504_and_its_connection_is_closed() {
    let mute = RawUpstream::start(|link: Link| link.until_closed()).await;
    let stand = stand(&[mute.address], ", timeouts: { response: 100ms }").await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 504, "the upstream timed out");
    assert_eq!(stand.page().await.outcomes("response_timeout"), 1);
    mute.has_open(0).await;
    assert_eq!(mute.accepted(), 1, "it may be working, so no retry");
    stand.is_at_rest().await;
}

/// The response timeout starts after the body was sent, however long that takes.
#[tokio::test]
async fn a_continuing_upload_does_not_time_out() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        while let Some((_, content)) = link.request().await? {
            assert_eq!(content.bytes.len(), 12);
            link.say(OK).await?;
        }
        Ok(())
    })
    .await;
    let stand = stand(&[upstream.address], ", timeouts: { response: 150ms }").await;
    let mut client = Client::connect(stand.address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\n")
        .await;
    for _ in 0..12 {
        // Any response before the end would be wrong.
        let early = timeout(Duration::from_millis(50), client.messages.more()).await;
        assert!(early.is_err(), "{:?}", client.messages.ahead);
        client.send("x").await;
    }
    assert_eq!(client.reply("POST").await.status(), 200);
}

/// The client is the slow side, and it has a separate timeout.
#[tokio::test]
async fn a_client_that_stalls_is_not_held_against_the_upstream() {
    let upstream = RawUpstream::start(|link: Link| link.until_closed()).await;
    let more = ", timeouts: { response: 50ms, idle: 400ms }, eject: { failures: 1, for: 1h }";
    let stand = stand(&[upstream.address], more).await;
    let mut client = Client::connect(stand.address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\nx")
        .await;
    assert_problem(&client.reply("POST").await, 408, "the body timed out");
    let page = stand.page().await;
    assert_eq!(page.outcomes("upload_failed"), 1);
    assert_eq!(page.outcomes("response_timeout"), 0);
    assert_eq!(
        page.sum("tidegate_gateway_upstream_ejections_total", &[]),
        0
    );
    upstream.has_open(0).await;
}

#[tokio::test]
async fn an_upstream_that_does_not_read_the_body_is_504() {
    let full = RawUpstream::start(|mut link: Link| async move {
        link.messages.head().await?;
        pending().await
    })
    .await;
    let more = ", timeouts: { response: 200ms }, body_bytes: unlimited";
    let stand = stand(&[full.address], more).await;
    let mut client = Client::connect(stand.address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    // Only as much is read as fits into the buffers between the two.
    let sending = async { while client.try_send(&chunk).await.is_ok() {} };
    let answered = stand.shows("an answer", |page| page.outcomes("response_timeout") == 1);
    tokio::select! {
        () = sending => {}
        _ = answered => {}
    }
    let page = stand.page().await;
    assert_eq!(page.outcomes("response_timeout"), 1);
    assert_eq!(
        page.sum("tidegate_gateway_requests_total", &["status=\"504\""]),
        1
    );
}

#[tokio::test]
async fn a_stalled_response_is_cut_visibly_for_the_client() {
    for (head, begin) in [
        ("content-length: 10", "hello"),
        ("transfer-encoding: chunked", "5\r\nhello\r\n"),
        // Waits for the end, which does not come.
        ("x-nothing: at all", "hello"),
    ] {
        let silent = RawUpstream::start(move |mut link: Link| async move {
            link.request().await?;
            link.say(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{begin}"))
                .await?;
            link.until_closed().await
        })
        .await;
        let stand = stand(&[silent.address], ", timeouts: { idle: 100ms }").await;
        let mut client = Client::connect(stand.address).await;
        client.send(request("GET", "/", &[])).await;
        let cut = client.try_reply("GET").await;
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::UnexpectedEof, "{head}");
        let page = stand
            .shows("a cut", |page| page.outcomes("cut_short") == 1)
            .await;
        assert_eq!(page.outcomes("answered"), 1);
        silent.has_open(0).await;
        stand.is_at_rest().await;
    }
}

#[tokio::test]
async fn a_slow_but_steady_response_is_complete() {
    let slow = RawUpstream::start(|mut link: Link| async move {
        link.request().await?;
        link.say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
            .await?;
        for _ in 0..10 {
            // No bytes arrive.
            timeout(Duration::from_millis(50), link.messages.more())
                .await
                .ok();
            link.say("x").await?;
        }
        link.until_closed().await
    })
    .await;
    let stand = stand(
        &[slow.address],
        ", timeouts: { idle: 250ms, response: 100ms }",
    )
    .await;
    let reply = stand.get("/").await;
    assert_eq!((reply.status(), reply.text()), (200, "xxxxxxxxxx"));
}

#[tokio::test]
async fn a_response_before_the_body_is_forwarded() {
    let early = RawUpstream::start(|mut link: Link| async move {
        link.messages.head().await?;
        link.say("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")
            .await?;
        link.until_closed().await
    })
    .await;
    let stand = stand(&[early.address], "").await;
    let mut client = Client::connect(stand.address).await;
    let reply = client
        .ask(request("POST", "/", &["content-length: 8"]) + "1")
        .await;
    assert_eq!((reply.status(), reply.text()), (403, "no"));
    drop(client);
    early.has_open(0).await;
    stand.is_at_rest().await;
}
