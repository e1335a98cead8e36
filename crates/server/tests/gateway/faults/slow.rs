//! Upstreams that take too long.

use super::kit::{Link, OK, Wild, assert_problem, stand};
use crate::kit::{Client, request};
use std::future::pending;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_504_and_its_connection_is_closed() {
    let mute = Wild::start(|link: Link| link.until_closed()).await;
    let stand = stand(&[mute.address], ", timeouts: { response: 100ms }").await;
    let reply = stand.get("/a").await;
    assert_problem(&reply, 504, "the upstream did not answer in time");
    assert_eq!(stand.page().await.outcomes("response_timeout"), 1);
    mute.has_open(0).await;
    assert_eq!(
        mute.accepted(),
        1,
        "it may be at work, so nobody asks again"
    );
    stand.is_at_rest().await;
}

/// The time for the answer begins when the body has been sent, however long that takes.
#[tokio::test]
async fn an_upload_that_goes_on_does_not_time_out() {
    let upstream = Wild::start(|mut link: Link| async move {
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
        // An answer before the end would be wrong, whatever it is.
        let early = timeout(Duration::from_millis(50), client.messages.more()).await;
        assert!(early.is_err(), "{:?}", client.messages.ahead);
        client.send("x").await;
    }
    assert_eq!(client.reply("POST").await.status(), 200);
}

/// It is the client that is waited for, and it has a time of its own.
#[tokio::test]
async fn a_client_that_stalls_is_not_held_against_the_upstream() {
    let upstream = Wild::start(|link: Link| link.until_closed()).await;
    let more = ", timeouts: { response: 50ms, idle: 400ms }, eject: { failures: 1, for: 1h }";
    let stand = stand(&[upstream.address], more).await;
    let mut client = Client::connect(stand.address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\nx")
        .await;
    assert_problem(
        &client.reply("POST").await,
        408,
        "the body did not go on in time",
    );
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
async fn an_upstream_that_does_not_take_the_body_is_504() {
    let full = Wild::start(|mut link: Link| async move {
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
    // Nobody takes more than fits into the buffers between here and there.
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
async fn an_answer_that_falls_silent_is_cut_and_the_client_can_tell() {
    for (head, begin) in [
        ("content-length: 10", "hello"),
        ("transfer-encoding: chunked", "5\r\nhello\r\n"),
        // To its end, which does not come.
        ("x-nothing: at all", "hello"),
    ] {
        let silent = Wild::start(move |mut link: Link| async move {
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
async fn an_answer_that_comes_slowly_but_steadily_is_whole() {
    let slow = Wild::start(|mut link: Link| async move {
        link.request().await?;
        link.say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
            .await?;
        for _ in 0..10 {
            // Nothing comes from there.
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
async fn an_answer_before_the_body_was_there_is_passed_on() {
    let early = Wild::start(|mut link: Link| async move {
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
