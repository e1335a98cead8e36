//! Connections that an upstream closes while they wait for their next request.

use super::kit::{Link, OK, Place, Wild, post, stand};
use crate::kit::Client;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Whether a closed connection is noticed before it is used again, or only by the one who uses it, is a
/// matter of chance; so there are many.
const ROUNDS: usize = 500;

/// How often each target was seen.
type Seen = Arc<Mutex<BTreeMap<String, usize>>>;

/// An upstream that closes each connection a little after it has answered: after the next request was
/// read, or before, and by a reset or not.
async fn closing(seen: &Seen) -> Wild {
    let seen = Arc::clone(seen);
    Wild::start(move |mut link: Link| {
        let seen = Arc::clone(&seen);
        async move {
            let Some((head, _)) = link.request().await? else {
                return Ok(());
            };
            *seen.lock().entry(head.line).or_default() += 1;
            link.say(OK).await?;
            // Some let others go first.
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
    let seen = Seen::default();
    let upstream = closing(&seen).await;
    let stand = stand(&[upstream.address], "").await;
    let mut client = Client::connect(stand.address).await;
    for nth in 0..ROUNDS {
        let reply = client.get(&format!("/{nth}"), &[]).await;
        assert_eq!((reply.status(), reply.text()), (200, "ok"), "{nth}");
    }
}

#[tokio::test]
async fn a_post_is_seen_once_or_not_at_all_and_answered_only_if_it_was_seen() {
    let seen = Seen::default();
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

/// The worst moment: the request has been read, and nobody will ever know whether it was done.
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
        let upstream = Wild::start(move |mut link: Link| {
            let read = Arc::clone(&count);
            async move {
                link.request().await?;
                link.say(OK).await?;
                if link.nth == 0 {
                    // The second on the same connection is read, and that is all.
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

/// A body that has begun to go is gone.
#[tokio::test]
async fn a_put_with_a_body_is_not_repeated() {
    let read = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&read);
    let upstream = Wild::start(move |mut link: Link| {
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
        // The second turn is that of the upstream that is not there, and so the first has it after all.
        let reply = client.ask(&put).await;
        assert_eq!(reply.status(), status);
    }
    assert_eq!(read.load(SeqCst), 2);
}
