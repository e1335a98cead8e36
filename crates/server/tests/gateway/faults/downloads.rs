//! Clients that do not take their answers.

use super::kit::{Link, Program, Stand, Wild, config, stand};
use crate::kit::modern::{H2, body};
use crate::kit::{Client, request};
use http::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tidegate_server::bounds::Bounds;

const MIB: usize = 1 << 20;
/// What nobody takes.
const LARGE: usize = 50 * MIB;

/// An upstream with large answers, which counts what of them was taken.
struct Large {
    wild: Wild,
    taken: Arc<AtomicUsize>,
}

impl Large {
    async fn start() -> Self {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let wild = Wild::start(move |mut link: Link| {
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
async fn a_client_that_goes_in_the_middle_of_its_answer_is_not_sent_the_rest() {
    let upstream = Large::start().await;
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
async fn a_stream_of_http2_that_is_given_up_is_not_sent_the_rest() {
    let upstream = Large::start().await;
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
async fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
    let upstream = Large::start().await;
    let bounds = Bounds {
        idle_time: Duration::from_millis(500),
        ..Bounds::default()
    };
    let config = config(&[upstream.wild.address], ", policy: none");
    let stand = Stand::with(&config, bounds).await;
    let mut client = Client::connect(stand.address).await;
    client.send(request("GET", "/", &[])).await;
    upstream.wild.has_open(1).await;
    upstream.wild.has_open(0).await;
    stand.is_at_rest().await;
    assert!(upstream.taken() < LARGE);
    // What it could have had all along is there, and then nothing.
    assert!(client.try_reply("GET").await.is_err());
}

/// Nothing is kept for clients beyond what is on its way, whatever they could take one day.
#[tokio::test]
async fn clients_that_take_nothing_cost_little_memory() {
    const CLIENTS: usize = 40;
    let upstream = Large::start().await;
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
    // Until nothing goes on any more: it has not while many other things did.
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
