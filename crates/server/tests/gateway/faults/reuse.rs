//! Connections that an upstream closes while they are idle.

use super::kit::{Link, OK, Place, RawUpstream, post, stand};
use crate::kit::Client;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Whether the close is noticed before or during the next use is random, so there are many rounds.
const ROUNDS: usize = 500;

/// The number of requests seen per target.
type SeenTargets = Arc<Mutex<BTreeMap<String, usize>>>;

/// Starts an upstream that closes each connection a little after its response: after or before it
/// has read the next request, with or without a reset.
async fn closing(seen: &SeenTargets) -> RawUpstream {
    let seen = Arc::clone(seen);
    RawUpstream::start(move |mut link: Link| {
        let seen = Arc::clone(&seen);
        async move {
            let Some((head, _)) = link.request().await? else {
                return Ok(());
            };
            *seen.lock().entry(head.line).or_default() += 1;
            link.say(OK).await?;
            // Some yield to other tasks first.
            for _ in 0..link.nth % 3 {
                tokio::task::yield_now().await;
            }
            if link.nth.is_multiple_of(2) {
                link.reset()
            } else {
                Ok(())
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_get_never_fails_because_its_connection_was_closed_while_it_waited() {
    let seen = SeenTargets::default();
    let upstream = closing(&seen).await;
    let stand = stand(&[upstream.address], "").await;
    let mut client = Client::connect(stand.address).await;
    for nth in 0..ROUNDS {
        let reply = client.get(&format!("/{nth}"), &[]).await;
        assert_eq!((reply.status(), reply.text()), (200, "ok"), "{nth}");
    }
}

#[tokio::test]
async fn a_post_is_run_at_most_once_and_answered_only_if_run() {
    let seen = SeenTargets::default();
    let upstream = closing(&seen).await;
    let stand = stand(&[upstream.address], "").await;
    let mut client = Client::connect(stand.address).await;
    for nth in 0..ROUNDS {
        let target = format!("/{nth}");
        let body = if nth % 3 == 0 { "" } else { "hello" };
        let reply = client.ask(post(&target, body)).await;
        let times = seen.lock().get(&format!("POST {target} HTTP/1.1")).copied();
        match reply.status() {
            200 => assert_eq!(times, Some(1), "{nth}"),
            502 => assert!(times.is_none_or(|times| times == 1), "{nth}: {times:?}"),
            status => panic!("{status}"),
        }
    }
    let seen = seen.lock();
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

/// The worst moment: the request was read, and its result is unknown.
#[tokio::test]
async fn a_request_that_was_read_and_not_answered_is_repeated_only_if_that_is_safe() {
    for (method, is_repeated) in [
        ("GET", true),
        ("DELETE", true),
        ("POST", false),
        ("PATCH", false),
    ] {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let upstream = RawUpstream::start(move |mut link: Link| {
            let read = Arc::clone(&count);
            async move {
                link.request().await?;
                link.say(OK).await?;
                if link.nth == 0 {
                    // The second request on the same connection is read, without a response.
                    link.request().await?;
                    read.fetch_add(1, SeqCst);
                    return Ok(());
                }
                read.fetch_add(1, SeqCst);
                link.until_closed().await
            }
        })
        .await;
        let stand = stand(&[upstream.address], "").await;
        let mut client = Client::connect(stand.address).await;
        let ask = |nth: usize| {
            format!("{method} /{nth} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
        };
        assert_eq!(client.ask(ask(1)).await.status(), 200);
        let reply = client.ask(ask(2)).await;
        let (status, times) = if is_repeated { (200, 2) } else { (502, 1) };
        assert_eq!(reply.status(), status, "{method}");
        assert_eq!(read.load(SeqCst), times, "{method}");
    }
}

/// A body that was partly sent cannot be repeated.
#[tokio::test]
async fn a_put_with_a_body_is_not_repeated() {
    let read = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&read);
    let upstream = RawUpstream::start(move |mut link: Link| {
        let read = Arc::clone(&count);
        async move {
            while let Some((head, _)) = link.request().await? {
                read.fetch_add(1, SeqCst);
                if head.line.starts_with("PUT /2") {
                    return Ok(());
                }
                link.say(OK).await?;
            }
            Ok(())
        }
    })
    .await;
    let nobody = Place::reserve();
    let stand = stand(&[upstream.address, nobody.address], ", retries: 5").await;
    let mut client = Client::connect(stand.address).await;
    for (target, status) in [("/1", 200), ("/2", 502)] {
        let put = post(target, "hello").replace("POST", "PUT");
        // The second turn belongs to the upstream that is down, so the first gets it after all.
        let reply = client.ask(&put).await;
        assert_eq!(reply.status(), status);
    }
    assert_eq!(read.load(SeqCst), 2);
}
