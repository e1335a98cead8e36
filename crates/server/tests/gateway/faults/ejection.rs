//! The choice of an upstream: by weight and health.

use super::kit::{Link, OK, Page, Place, RawUpstream, TestGateway, stand};
use crate::kit::{Client, in_time};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// An upstream that replies while it is healthy and closes otherwise, and counts its requests.
struct UnreliableUpstream {
    wild: RawUpstream,
    is_well: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    checked: Arc<AtomicUsize>,
}

impl UnreliableUpstream {
    async fn start() -> Self {
        let is_well = Arc::new(AtomicBool::new(true));
        let asked = Arc::new(AtomicUsize::new(0));
        let checked = Arc::new(AtomicUsize::new(0));
        let (well, count) = (Arc::clone(&is_well), Arc::clone(&asked));
        let checks = Arc::clone(&checked);
        let wild = RawUpstream::start(move |mut link: Link| {
            let (is_well, asked) = (Arc::clone(&well), Arc::clone(&count));
            let checked = Arc::clone(&checks);
            async move {
                while let Some((head, _)) = link.request().await? {
                    let is_check = head.line.starts_with("GET /healthz ");
                    let count = if is_check { &checked } else { &asked };
                    count.fetch_add(1, SeqCst);
                    if !is_well.load(SeqCst) {
                        return Ok(());
                    }
                    link.say(OK).await?;
                }
                Ok(())
            }
        });
        Self {
            wild: wild.await,
            is_well,
            asked,
            checked,
        }
    }

    fn address(&self) -> SocketAddr {
        self.wild.address
    }

    fn set_well(&self, is_well: bool) {
        self.is_well.store(is_well, SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn healthy(page: &Page) -> u64 {
    page.sum("tidegate_gateway_upstream_healthy", &[])
}

fn ejections(page: &Page) -> u64 {
    page.sum("tidegate_gateway_upstream_ejections_total", &[])
}

async fn get_all(stand: &TestGateway, count: usize) {
    let mut client = Client::connect(stand.address).await;
    for _ in 0..count {
        assert_eq!(client.get("/", &[]).await.status(), 200);
    }
}

#[tokio::test]
async fn upstreams_get_requests_by_weight() {
    let (one, three) = (
        UnreliableUpstream::start().await,
        UnreliableUpstream::start().await,
    );
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - name: all
    policy: none
    upstreams: ['http://{}', {{ url: 'http://{}', weight: 3 }}]
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        one.address(),
        three.address()
    );
    let stand = TestGateway::start(&config).await;
    get_all(&stand, 400).await;
    assert_eq!((one.asked(), three.asked()), (100, 300));
}

#[tokio::test]
async fn a_failing_upstream_is_ejected_tried_and_readmitted() {
    let (flapping, steady) = (
        UnreliableUpstream::start().await,
        UnreliableUpstream::start().await,
    );
    let upstreams = [flapping.address(), steady.address()];
    let stand = stand(&upstreams, ", eject: { failures: 3, for: 300ms }").await;
    get_all(&stand, 4).await;
    assert_eq!(flapping.asked(), 2);

    flapping.set_well(false);
    // No client notices, because the other upstream replies.
    get_all(&stand, 40).await;
    let page = stand.page().await;
    assert_eq!((ejections(&page), healthy(&page)), (1, 1), "{page:?}");

    // It is tried now and then, and ejected again each time.
    let before = flapping.asked();
    in_time("a trial", async {
        while flapping.asked() == before {
            get_all(&stand, 1).await;
        }
    })
    .await;
    assert_eq!(healthy(&stand.page().await), 1);

    flapping.set_well(true);
    in_time("its return", async {
        while healthy(&stand.page().await) != 2 {
            get_all(&stand, 1).await;
        }
    })
    .await;
    let (first, second) = (flapping.asked(), steady.asked());
    get_all(&stand, 20).await;
    assert_eq!(
        (flapping.asked(), steady.asked()),
        (first + 10, second + 10)
    );
}

/// While it is ejected, it gets trial requests only: at most one per period, at any load.
#[tokio::test]
async fn an_ejected_upstream_gets_no_requests() {
    let (dead, steady) = (
        UnreliableUpstream::start().await,
        UnreliableUpstream::start().await,
    );
    dead.set_well(false);
    let upstreams = [dead.address(), steady.address()];
    let stand = stand(&upstreams, ", eject: { failures: 3, for: 1h }").await;
    get_all(&stand, 100).await;
    assert_eq!(dead.asked(), 3);
    assert_eq!(steady.asked(), 100);
    let page = stand.page().await;
    assert_eq!(page.sum("tidegate_gateway_retries_total", &[]), 3);
}

#[tokio::test]
async fn if_all_upstreams_are_ejected_they_are_still_tried() {
    let only = UnreliableUpstream::start().await;
    only.set_well(false);
    let stand = stand(&[only.address()], ", eject: { failures: 2, for: 1h }").await;
    for _ in 0..5 {
        assert_eq!(stand.get("/").await.status(), 502);
    }
    assert_eq!(only.asked(), 5, "ejected or not, it is the only upstream");
    let page = stand.page().await;
    assert_eq!((ejections(&page), healthy(&page)), (1, 0));
    assert_eq!(
        page.sum("tidegate_gateway_no_healthy_upstream_total", &[]),
        3
    );

    only.set_well(true);
    assert_eq!(stand.get("/").await.status(), 200);
    assert_eq!(
        healthy(&stand.page().await),
        1,
        "a response ends the ejection"
    );
}

#[tokio::test]
async fn health_checks_eject_and_readmit_an_upstream() {
    let (sick, well) = (
        UnreliableUpstream::start().await,
        UnreliableUpstream::start().await,
    );
    let upstreams = [sick.address(), well.address()];
    let more =
        ", eject: off, health: { path: /healthz, interval: 100ms, unhealthy: 2, healthy: 2 }";
    let stand = stand(&upstreams, more).await;
    get_all(&stand, 2).await;
    assert_eq!(sick.asked(), 1);

    sick.set_well(false);
    stand.shows("one of two", |page| healthy(page) == 1).await;
    let before = sick.asked();
    get_all(&stand, 10).await;
    assert_eq!(sick.asked(), before, "only health checks reach it");
    assert!(sick.checked.load(SeqCst) >= 2);

    sick.set_well(true);
    stand.shows("both", |page| healthy(page) == 2).await;
    get_all(&stand, 10).await;
    assert_eq!(sick.asked(), before + 5);
}

#[tokio::test]
async fn unhealthy_upstreams_are_tried_if_there_is_no_other() {
    let only = UnreliableUpstream::start().await;
    only.set_well(false);
    let more =
        ", eject: off, health: { path: /healthz, interval: 100ms, unhealthy: 1, healthy: 100 }";
    let stand = stand(&[only.address()], more).await;
    stand.shows("none", |page| healthy(page) == 0).await;
    only.set_well(true);
    assert_eq!(stand.get("/").await.status(), 200);
    assert_eq!(
        stand
            .page()
            .await
            .sum("tidegate_gateway_no_healthy_upstream_total", &[]),
        1
    );
}

#[tokio::test]
async fn a_request_is_tried_at_most_as_often_as_configured() {
    let places = [(); 4].map(|()| Place::reserve());
    let dead = places.each_ref().map(|place| place.address);
    for (retries, attempts) in [(0, 1), (1, 2), (2, 3), (5, 4)] {
        let stand = stand(&dead, &format!(", eject: off, retries: {retries}")).await;
        assert_eq!(stand.get("/").await.status(), 502);
        let page = stand.page().await;
        assert_eq!(page.outcomes("refused_connection"), attempts, "{retries}");
        let tried_again = page.sum("tidegate_gateway_retries_total", &[]);
        assert_eq!(tried_again, attempts - 1, "{retries}");
    }
}
