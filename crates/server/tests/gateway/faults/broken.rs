//! Upstreams that break off, or send no HTTP.

use super::kit::{Link, OK, RawUpstream, assert_problem, stand};
use crate::kit::{Client, in_time, request};
use std::future::pending;
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::sync::Notify;

const BROKE_OFF: &str = "the upstream closed the connection before it responded";
const MALFORMED: &str = "the upstream's response cannot be forwarded";

/// Starts an upstream that sends these bytes for every request, then waits for the other side to
/// close.
async fn saying(bytes: impl AsRef<[u8]>) -> RawUpstream {
    let bytes = bytes.as_ref().to_vec();
    RawUpstream::start(move |mut link: Link| {
        let bytes = bytes.clone();
        async move {
            link.request().await?;
            link.say(bytes).await?;
            link.until_closed().await
        }
    })
    .await
}

#[tokio::test]
async fn a_connection_that_ends_before_or_within_the_head_is_502() {
    for begin in [
        "",
        "HTT",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-le",
    ] {
        for is_reset in [false, true] {
            let upstream = RawUpstream::start(move |mut link: Link| async move {
                link.request().await?;
                link.say(begin).await?;
                if is_reset { link.reset() } else { Ok(()) }
            })
            .await;
            let stand = stand(&[upstream.address], "").await;
            let reply = stand.get("/").await;
            assert_problem(&reply, 502, BROKE_OFF);
            assert_eq!(
                stand.page().await.outcomes("broken"),
                1,
                "{begin:?} {is_reset}"
            );
            stand.is_at_rest().await;
        }
    }
}

/// The client already has part of the body, so it must see that the body is incomplete.
#[tokio::test]
async fn a_connection_that_ends_within_the_body_breaks_the_clients_too() {
    for (head, begin) in [
        ("content-length: 10", "hello"),
        ("transfer-encoding: chunked", "5\r\nhello\r\n"),
        ("transfer-encoding: chunked", "5\r\nhel"),
        ("transfer-encoding: chunked", "5\r\nhello\r\nzz\r\n"),
    ] {
        for is_reset in [false, true] {
            let upstream = RawUpstream::start(move |mut link: Link| async move {
                link.request().await?;
                link.say(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{begin}"))
                    .await?;
                if is_reset { link.reset() } else { Ok(()) }
            })
            .await;
            let stand = stand(&[upstream.address], "").await;
            let mut client = Client::connect(stand.address).await;
            client.send(request("GET", "/", &[])).await;
            // Its beginning is there, unless a reset overtook it.
            match client.try_reply("GET").await {
                Err(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
                Ok(Some(reply)) if is_reset => assert_problem(&reply, 502, BROKE_OFF),
                Ok(reply) => panic!("{head} {begin} {is_reset}: {reply:?}"),
            }
            let page = stand
                .shows("the end", |page| {
                    page.outcomes("cut_short") + page.outcomes("broken") == 1
                })
                .await;
            assert!(is_reset || page.outcomes("cut_short") == 1);
            stand.is_at_rest().await;
        }
    }
}

/// A response without a length ends with its connection. Only a reset shows that it is incomplete.
#[tokio::test]
async fn a_body_without_a_length_that_is_reset_breaks_the_clients_too() {
    for is_reset in [false, true] {
        let is_there = Arc::new(Notify::new());
        let go = Arc::clone(&is_there);
        let upstream = RawUpstream::start(move |mut link: Link| {
            let go = Arc::clone(&go);
            async move {
                link.request().await?;
                link.say("HTTP/1.1 200 OK\r\n\r\nhello").await?;
                go.notified().await;
                if is_reset { link.reset() } else { Ok(()) }
            }
        })
        .await;
        let stand = stand(&[upstream.address], "").await;
        let mut client = Client::connect(stand.address).await;
        client.send(request("GET", "/", &[])).await;
        let head = client.head().await;
        assert!(head.says("transfer-encoding", "chunked"), "{head:?}");
        assert_eq!(client.messages.chunk().await.unwrap().unwrap(), b"hello");
        is_there.notify_one();
        let rest = in_time("the end", client.messages.chunk()).await;
        if is_reset {
            rest.unwrap_err();
        } else {
            assert_eq!(rest.unwrap(), None);
        }
    }
}

#[tokio::test]
async fn an_invalid_response_is_502() {
    for garbage in [
        &b"\x16\x03\x01\x00\x05hello world\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 9999 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let upstream = saying(garbage).await;
        let stand = stand(&[upstream.address], "").await;
        assert_problem(&stand.get("/").await, 502, BROKE_OFF);
        assert_eq!(stand.page().await.outcomes("broken"), 1);
        upstream.has_open(0).await;
        stand.is_at_rest().await;
    }
}

#[tokio::test]
async fn an_ambiguous_response_is_502_and_not_forwarded() {
    for fields in [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: identity",
        "content-length: 5\r\ncontent-length: 5",
        "content-length: 5, 5",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        let upstream = saying(answer).await;
        let stand = stand(&[upstream.address], "").await;
        let reply = stand.get("/").await;
        assert_problem(&reply, 502, MALFORMED);
        assert_eq!(stand.page().await.outcomes("broken"), 1, "{fields}");
        upstream.has_open(0).await;
    }
}

/// After such a response the gateway would no longer parse the client's bytes as requests.
#[tokio::test]
async fn an_unrequested_protocol_switch_is_502() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    let upstream = saying(answer).await;
    let stand = stand(&[upstream.address], "").await;
    let mut client = Client::connect(stand.address).await;
    for _ in 0..2 {
        assert_problem(&client.get("/", &[]).await, 502, MALFORMED);
    }
    upstream.has_open(0).await;
}

#[tokio::test]
async fn an_oversized_response_head_is_502_and_not_read_completely() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.request().await?;
        link.say("HTTP/1.1 200 OK\r\n").await?;
        let field = format!("x-more: {}\r\n", "x".repeat(1000));
        loop {
            link.say(&field).await?;
        }
    })
    .await;
    let stand = stand(&[upstream.address], "").await;
    assert_problem(&stand.get("/").await, 502, BROKE_OFF);
    upstream.has_open(0).await;
}

#[tokio::test]
async fn endless_interim_responses_are_504() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.request().await?;
        loop {
            link.say("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
                .await?;
        }
    })
    .await;
    let stand = stand(&[upstream.address], ", timeouts: { response: 200ms }").await;
    assert_eq!(stand.get("/").await.status(), 504);
    upstream.has_open(0).await;
}

/// Bytes after a response belong to no request, least of all to the next one.
#[tokio::test]
async fn bytes_after_a_response_are_never_used_as_the_next_one() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.request().await?;
        let stray = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray";
        link.say(format!("{OK}{stray}")).await?;
        link.request().await?;
        pending().await
    })
    .await;
    let stand = stand(&[upstream.address], ", timeouts: { response: 2s }").await;
    let mut client = Client::connect(stand.address).await;
    for _ in 0..3 {
        let reply = client.get("/", &[]).await;
        assert_eq!(reply.text(), "ok");
    }
}
