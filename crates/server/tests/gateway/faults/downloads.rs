//! Clients that do not read their responses.

use super::kit::{Link, Program, RawUpstream, TestGateway, config, stand};
use crate::kit::modern::{H2, body};
use crate::kit::{Client, request};
use http::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tidegate_net::bounds::Bounds;

const MIB: usize = 1 << 20;
/// The size of a response that the client does not read.
const LARGE: usize = 50 * MIB;

/// An upstream with large responses that counts the bytes read.
struct LargeUpstream {
    wild: RawUpstream,
    taken: Arc<AtomicUsize>,
}

impl LargeUpstream {
    async fn start() -> Self {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let wild = RawUpstream::start(move |mut link: Link| {
            let taken = Arc::clone(&count);
            async move {
                let piece = vec![b'x'; 64 << 10];
                while link.request().await?.is_some() {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LARGE}\r\n\r\n");
                    link.say(head).await?;
                    for _ in 0..LARGE / piece.len() {
                        link.say(&piece).await?;
                        taken.fetch_add(piece.len(), SeqCst);
                    }
                }
                Ok(())
            }
        });
        Self {
            wild: wild.await,
            taken,
        }
    }

    fn taken(&self) -> usize {
        self.taken.load(SeqCst)
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_a_response_ends_the_download() {
    let upstream = LargeUpstream::start().await;
    let stand = stand(&[upstream.wild.address], "").await;
    let mut client = Client::connect(stand.address).await;
    client.send(request("GET", "/", &[])).await;
    assert_eq!(client.head().await.status(), 200);
    client.messages.exactly(MIB).await.unwrap();
    drop(client);
    upstream.wild.has_open(0).await;
    stand.is_at_rest().await;
    let page = stand.page().await;
    assert_eq!(
        (page.outcomes("answered"), page.outcomes("cut_short")),
        (1, 0)
    );
    assert!(upstream.taken() < LARGE);
}

#[tokio::test]
async fn a_reset_http2_stream_ends_the_download() {
    let upstream = LargeUpstream::start().await;
    let stand = stand(&[upstream.wild.address], "").await;
    let mut client = H2::connect(stand.address).await;
    let get = Request::get("http://shop.example/")
        .body(body("", &[]))
        .unwrap();
    tokio::select! {
        answer = client.ask(get) => panic!("{:?}", answer.head),
        _ = stand.shows("an answer", |page| page.outcomes("answered") == 1) => {}
    }
    upstream.wild.has_open(0).await;
    stand
        .shows("no request", |page| page.in_flight() == 0)
        .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_cut_off() {
    let upstream = LargeUpstream::start().await;
    let bounds = Bounds {
        idle_time: Duration::from_millis(500),
        ..Bounds::default()
    };
    let config = config(&[upstream.wild.address], ", policy: none");
    let stand = TestGateway::with(&config, bounds).await;
    let mut client = Client::connect(stand.address).await;
    client.send(request("GET", "/", &[])).await;
    upstream.wild.has_open(1).await;
    upstream.wild.has_open(0).await;
    stand.is_at_rest().await;
    assert!(upstream.taken() < LARGE);
    // The buffered part arrives, and then the connection ends.
    assert!(client.try_reply("GET").await.is_err());
}

/// Memory per client is bounded by the data in flight.
#[tokio::test]
async fn clients_that_do_not_read_cost_little_memory() {
    const CLIENTS: usize = 40;
    let upstream = LargeUpstream::start().await;
    let gate = Program::start(&config(&[upstream.wild.address], ", policy: none")).await;
    assert_eq!(gate.page().await.connections(), 0);
    let before = gate.memory();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(gate.address).await;
        client.send(request("GET", "/", &[])).await;
        clients.push(client);
    }
    upstream.wild.has_open(CLIENTS).await;
    // Waits until nothing is sent any more: no progress while many other events happened.
    let (mut taken, mut quiet) = (0, 0);
    while quiet < 50 {
        gate.page().await;
        let now = upstream.taken();
        quiet = if now == taken { quiet + 1 } else { 0 };
        taken = now;
    }
    let grown = gate.memory().saturating_sub(before);
    assert!(grown < CLIENTS * MIB, "{grown} bytes for {CLIENTS} clients");
    assert!(taken < CLIENTS * LARGE);
    drop(clients);
    upstream.wild.has_open(0).await;
}
