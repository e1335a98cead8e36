//! Clients that send too much, too slowly, or not to the end.

use super::kit::{Link, OK, Stand, Wild, assert_problem, config, post, stand};
use crate::kit::certificates::Certificates;
use crate::kit::modern::{H2, Modern, Speaks, body};
use crate::kit::{Client, in_time, request};
use http::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tidegate_server::bounds::Bounds;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

const TOO_LARGE: &str = "the body is larger than is taken here";
const TOO_SLOW: &str = "the body did not go on in time";

/// An upstream that counts the requests that came to their end, and answers them.
struct Counting {
    wild: Wild,
    whole: Arc<AtomicUsize>,
}

impl Counting {
    async fn start() -> Self {
        let whole = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&whole);
        let wild = Wild::start(move |mut link: Link| {
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
async fn a_client_that_goes_in_the_middle_of_its_body_takes_the_request_along() {
    for begin in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello".to_owned(),
        chunked(&["hello"]),
    ] {
        let upstream = Counting::start().await;
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
async fn a_client_that_does_not_wait_for_its_answer_is_not_worked_for() {
    let mute = Wild::start(|link: Link| link.until_closed()).await;
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
async fn a_stream_of_http2_that_is_given_up_is_not_worked_for() {
    let mute = Wild::start(|link: Link| link.until_closed()).await;
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
async fn a_body_that_says_that_it_is_too_large_is_413_before_anybody_is_asked() {
    let upstream = Counting::start().await;
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
        assert!(reply.interim.is_empty(), "nobody wants the body");
        assert!(reply.closes());
        assert!(client.is_closed().await);
    }
    assert_eq!(upstream.wild.accepted(), 0);
    let mut client = Client::connect(stand.address).await;
    let reply = client.ask(post("/", &"x".repeat(1024))).await;
    assert_eq!(reply.status(), 200, "exactly as much is taken");
}

#[tokio::test]
async fn a_body_that_turns_out_too_large_is_413_and_never_comes_to_its_end() {
    let upstream = Counting::start().await;
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

/// A client that is still sending when it is refused must be able to read why.
#[tokio::test]
async fn a_client_that_goes_on_sending_still_reads_its_413() {
    let upstream = Counting::start().await;
    let stand = stand(&[upstream.wild.address], ", body_bytes: 1KiB").await;
    let mut client = Client::connect(stand.address).await;
    let much = "x".repeat(100_000);
    client.send(chunked(&[&much])).await;
    assert_problem(&client.reply("POST").await, 413, TOO_LARGE);
}

#[tokio::test]
async fn a_body_that_stalls_is_408_and_never_comes_to_its_end() {
    for begin in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello".to_owned(),
        chunked(&["hello"]),
    ] {
        let upstream = Counting::start().await;
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

/// There the body goes another way, and its end must not be lost on it.
#[tokio::test]
async fn bodies_to_an_upstream_of_http2_are_bounded_as_well() {
    let certificates = Certificates::make();
    let upstream = Modern::start(Speaks::H2c, &certificates).await;
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - id: all
    upstreams: ['h2c://{}']
    policy: none
    body_bytes: 1KiB
    timeouts: {{ idle: 200ms }}
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        upstream.address
    );
    let stand = Stand::start(&config).await;
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

/// It would hold a connection to the upstream for as long as it liked.
#[tokio::test]
async fn a_body_that_trickles_is_408_although_it_never_stands_still() {
    let upstream = Counting::start().await;
    let more = ", min_upload_rate: 1MiB, timeouts: { upload_grace: 100ms }";
    let stand = stand(&[upstream.wild.address], more).await;
    for begin in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nhello".to_owned(),
        chunked(&["hello"]),
    ] {
        let mut client = Client::connect(stand.address).await;
        client.send(begin).await;
        let reply = client.reply("POST").await;
        assert_problem(
            &reply,
            408,
            "the body came more slowly than is accepted here",
        );
        assert!(client.is_closed().await);
        upstream.wild.has_open(0).await;
    }
    assert_eq!(upstream.whole(), 0);
    assert_eq!(stand.page().await.outcomes("upload_failed"), 2);
}

#[tokio::test]
async fn a_body_may_come_at_any_rate_where_the_route_says_so() {
    let upstream = Counting::start().await;
    let more = ", min_upload_rate: 0, timeouts: { upload_grace: 1ms, idle: 100ms }";
    let stand = stand(&[upstream.wild.address], more).await;
    let mut client = Client::connect(stand.address).await;
    client.send(chunked(&["hello"])).await;
    assert_problem(&client.reply("POST").await, 408, TOO_SLOW);
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_400_for_who_still_listens() {
    let upstream = Counting::start().await;
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

/// Whoever asks first is spared the sending.
#[tokio::test]
async fn a_client_that_expects_to_be_refused_is_not_asked_for_its_body() {
    let upstream = Counting::start().await;
    let stand = Stand::start(&config(&[upstream.wild.address], "")).await;
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
async fn a_head_that_trickles_in_is_given_up() {
    let upstream = Counting::start().await;
    let bounds = Bounds {
        idle_time: Duration::from_millis(300),
        ..Bounds::default()
    };
    let config = config(&[upstream.wild.address], "");
    let stand = Stand::with(&config, bounds).await;
    for begin in ["", "P", "PRI * HT", "POST / HTTP/1.1\r\nx: "] {
        let mut client = Client::connect(stand.address).await;
        client.send(begin).await;
        in_time("the end", async {
            loop {
                let pause = Duration::from_millis(20);
                match timeout(pause, client.messages.more()).await {
                    Ok(Ok(true)) => {}
                    Ok(_) => return,
                    // Never fast enough, and never silent; but what may be HTTP/2 waits for its end.
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
