//! Clients that send too much, too slowly, or incompletely.

use super::kit::{Link, OK, RawUpstream, TestGateway, assert_problem, config, post, stand};
use crate::kit::certificates::Certificates;
use crate::kit::modern::{H2, Http2Upstream, UpstreamProtocol, body};
use crate::kit::{Client, in_time, request};
use http::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tidegate_net::bounds::Bounds;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

const TOO_LARGE: &str = "the body is too large";
const TOO_SLOW: &str = "the body timed out";

/// An upstream that counts complete requests, and replies to them.
struct CountingUpstream {
    wild: RawUpstream,
    whole: Arc<AtomicUsize>,
}

impl CountingUpstream {
    async fn start() -> Self {
        let whole = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&whole);
        let wild = RawUpstream::start(move |mut link: Link| {
            let whole = Arc::clone(&count);
            async move {
                while link.request().await?.is_some() {
                    whole.fetch_add(1, SeqCst);
                    link.say(OK).await?;
                }
                Ok(())
            }
        });
        Self {
            wild: wild.await,
            whole,
        }
    }

    fn whole(&self) -> usize {
        self.whole.load(SeqCst)
    }
}

fn chunked(chunks: &[&str]) -> String {
    let head = request("POST", "/", &["transfer-encoding: chunked"]);
    let chunks = chunks.iter();
    let chunks = chunks.map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    head + &chunks.collect::<String>()
}

#[tokio::test]
async fn a_client_that_leaves_during_its_body_ends_the_request() {
    for begin in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello".to_owned(),
        chunked(&["hello"]),
    ] {
        let upstream = CountingUpstream::start().await;
        let stand = stand(&[upstream.wild.address], "").await;
        let mut client = Client::connect(stand.address).await;
        client.send(begin).await;
        upstream.wild.has_open(1).await;
        drop(client);
        upstream.wild.has_open(0).await;
        stand.is_at_rest().await;
        assert_eq!(upstream.whole(), 0, "it did not come to its end");
        assert_eq!(stand.page().await.outcomes("upload_failed"), 1);
    }
}

#[tokio::test]
async fn a_client_that_leaves_early_ends_its_request() {
    let mute = RawUpstream::start(|link: Link| link.until_closed()).await;
    let stand = stand(&[mute.address], "").await;
    let mut client = Client::connect(stand.address).await;
    client.send(request("GET", "/", &[])).await;
    mute.has_open(1).await;
    drop(client);
    mute.has_open(0).await;
    stand.is_at_rest().await;
    let page = stand.page().await;
    assert_eq!(page.outcomes("abandoned"), 1);
    assert_eq!(
        page.sum("tidegate_gateway_requests_total", &["status=\"499\""]),
        1
    );
    assert_eq!(page.sum("tidegate_gateway_upstream_healthy", &[]), 1);
}

#[tokio::test]
async fn a_reset_http2_stream_ends_the_upload() {
    let mute = RawUpstream::start(|link: Link| link.until_closed()).await;
    let stand = stand(&[mute.address], "").await;
    let mut client = H2::connect(stand.address).await;
    let get = Request::get("http://shop.example/")
        .body(body("", &[]))
        .unwrap();
    tokio::select! {
        answer = client.ask(get) => panic!("{answer:?}"),
        () = mute.has_open(1) => {}
    }
    mute.has_open(0).await;
    stand
        .shows("no request", |page| page.in_flight() == 0)
        .await;
    assert_eq!(
        stand.page().await.connections(),
        1,
        "the connection goes on"
    );
}

#[tokio::test]
async fn an_oversized_content_length_is_413_before_any_upstream_request() {
    let upstream = CountingUpstream::start().await;
    let stand = stand(&[upstream.wild.address], ", body_bytes: 1KiB").await;
    for expects in [false, true] {
        let mut client = Client::connect(stand.address).await;
        let expect = if expects {
            "expect: 100-continue\r\n"
        } else {
            ""
        };
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\n{expect}content-length: 1025\r\n\r\n");
        let reply = client.ask(head).await;
        assert_problem(&reply, 413, TOO_LARGE);
        assert!(reply.interim.is_empty(), "no reader for the body");
        assert!(reply.closes());
        assert!(client.is_closed().await);
    }
    assert_eq!(upstream.wild.accepted(), 0);
    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(post("/", &"x".repeat(1024))).await;
    assert_eq!(reply.status(), 200, "exactly as much is taken");
}

#[tokio::test]
async fn an_oversized_body_is_413_and_never_completed_upstream() {
    let upstream = CountingUpstream::start().await;
    let stand = stand(&[upstream.wild.address], ", body_bytes: 1KiB").await;
    let half = "x".repeat(512);
    let mut client = Client::connect(stand.address).await;
    let reply = client
        .ask(chunked(&[&half, &half, "x"]) + "0\r\n\r\n")
        .await;
    assert_problem(&reply, 413, TOO_LARGE);
    assert!(client.is_closed().await);
    upstream.wild.has_open(0).await;
    assert_eq!(upstream.whole(), 0);

    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(chunked(&[&half, &half]) + "0\r\n\r\n").await;
    assert_eq!(reply.status(), 200, "exactly as much is taken");
}

/// A client that is still sending when it is refused must be able to read the reason.
#[tokio::test]
async fn a_client_that_keeps_sending_still_reads_its_413() {
    let upstream = CountingUpstream::start().await;
    let stand = stand(&[upstream.wild.address], ", body_bytes: 1KiB").await;
    let mut client = Client::connect(stand.address).await;
    let much = "x".repeat(100_000);
    client.send(chunked(&[&much])).await;
    assert_problem(&client.reply("POST").await, 413, TOO_LARGE);
}

#[tokio::test]
async fn a_stalled_body_is_408_and_never_completed_upstream() {
    for begin in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello".to_owned(),
        chunked(&["hello"]),
    ] {
        let upstream = CountingUpstream::start().await;
        let stand = stand(&[upstream.wild.address], ", timeouts: { idle: 100ms }").await;
        let mut client = Client::connect(stand.address).await;
        let reply = client.ask(begin).await;
        assert_problem(&reply, 408, TOO_SLOW);
        assert!(reply.closes());
        upstream.wild.has_open(0).await;
        assert_eq!(upstream.whole(), 0);
        drop(client);
        stand.is_at_rest().await;
    }
}

/// With HTTP/2 the body takes another path, which must also see its end.
#[tokio::test]
async fn bodies_to_an_upstream_of_http2_are_bounded_as_well() {
    let certificates = Certificates::make();
    let upstream = Http2Upstream::start(UpstreamProtocol::H2c, &certificates).await;
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - name: all
    upstreams: ['h2c://{}']
    policy: none
    body_bytes: 1KiB
    timeouts: {{ idle: 200ms }}
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        upstream.address
    );
    let stand = TestGateway::start(&config).await;
    let half = "x".repeat(512);
    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(chunked(&[&half, &half, "x"])).await;
    assert_problem(&reply, 413, TOO_LARGE);
    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(chunked(&["hello"])).await;
    assert_problem(&reply, 408, TOO_SLOW);
    assert_eq!(stand.page().await.outcomes("upload_failed"), 2);

    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(chunked(&[&half]) + "0\r\n\r\n").await;
    assert_eq!(reply.status(), 200);
    assert_eq!(
        upstream.saw().body.len(),
        512,
        "and it saw no other to its end"
    );
}

/// It would hold a connection to the upstream indefinitely.
#[tokio::test]
async fn a_trickling_body_is_408_although_it_never_stalls() {
    let upstream = CountingUpstream::start().await;
    let more = ", min_upload_rate: 1MiB, timeouts: { upload_grace: 100ms }";
    let stand = stand(&[upstream.wild.address], more).await;
    for begin in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nhello".to_owned(),
        chunked(&["hello"]),
    ] {
        let mut client = Client::connect(stand.address).await;
        client.send(begin).await;
        let reply = client.reply("POST").await;
        assert_problem(&reply, 408, "the body was sent too slowly");
        assert!(client.is_closed().await);
        upstream.wild.has_open(0).await;
    }
    assert_eq!(upstream.whole(), 0);
    assert_eq!(stand.page().await.outcomes("upload_failed"), 2);
}

#[tokio::test]
async fn a_body_may_have_any_rate_if_configured() {
    let upstream = CountingUpstream::start().await;
    let more = ", min_upload_rate: 0, timeouts: { upload_grace: 1ms, idle: 100ms }";
    let stand = stand(&[upstream.wild.address], more).await;
    let mut client = Client::connect(stand.address).await;
    client.send(chunked(&["hello"])).await;
    assert_problem(&client.reply("POST").await, 408, TOO_SLOW);
}

#[tokio::test]
async fn a_truncated_body_is_400_if_the_client_still_reads() {
    let upstream = CountingUpstream::start().await;
    let stand = stand(&[upstream.wild.address], "").await;
    let mut client = Client::connect(stand.address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello")
        .await;
    upstream.wild.has_open(1).await;
    client.messages.stream.shutdown().await.unwrap();
    assert_problem(&client.reply("POST").await, 400, "the body ended too early");
    upstream.wild.has_open(0).await;
    assert_eq!(upstream.whole(), 0);
}

/// With `Expect: 100-continue` the client does not send the body.
#[tokio::test]
async fn a_refused_client_gets_no_100_continue() {
    let upstream = CountingUpstream::start().await;
    let stand = TestGateway::start(&config(&[upstream.wild.address], "")).await;
    let head = request("POST", "/", &["expect: 100-continue", "content-length: 5"]);
    let mut client = Client::connect(stand.address).await;
    client.send(&head).await;
    assert_eq!(client.head().await.status(), 100);
    client.send("hello").await;
    assert_eq!(client.reply("POST").await.status(), 200);

    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(&head).await;
    assert_eq!(reply.status(), 429);
    assert!(reply.interim.is_empty(), "{reply:?}");
    assert_eq!(upstream.whole(), 1);
}

#[tokio::test]
async fn a_slow_request_head_times_out() {
    let upstream = CountingUpstream::start().await;
    let bounds = Bounds {
        idle_time: Duration::from_millis(300),
        ..Bounds::default()
    };
    let config = config(&[upstream.wild.address], "");
    let stand = TestGateway::with(&config, bounds).await;
    for begin in ["", "P", "PRI * HT", "POST / HTTP/1.1\r\nx: "] {
        let mut client = Client::connect(stand.address).await;
        client.send(begin).await;
        in_time("the end", async {
            loop {
                let pause = Duration::from_millis(20);
                match timeout(pause, client.messages.more()).await {
                    Ok(Ok(true)) => {}
                    Ok(_) => return,
                    // Never fast enough, and never silent. Bytes that may be HTTP/2 are buffered
                    // until complete.
                    Err(_) if begin.len() < 10 => {}
                    Err(_) => drop(client.try_send("x").await),
                }
            }
        })
        .await;
    }
    stand.is_at_rest().await;
    assert_eq!(upstream.wild.accepted(), 0);
}
