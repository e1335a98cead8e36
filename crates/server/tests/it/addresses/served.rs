//! The counts of servers, and their reports.

use super::kit::{by, config, eventually, map, sum};
use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::kit::{Client, Server, get};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tidegate_server::program::ServeEnd;
use tidegate_testkit::redis::{Server as Redis, until_some};

async fn page(server: &Server) -> BTreeMap<String, f64> {
    samples(&get(server.admin, "/metrics").await.body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_show_counted_closed_banned_and_unbanned_addresses() {
    let redis = Redis::start();
    let more = "threshold: 20, ban: { guard: blacklist, for: 1s }";
    let server = Server::start(&config(&redis.url(), more)).await;
    let mut client = Client::connect(server.http).await;
    for _ in 0..30 {
        client.post(&by("192.0.2.1")).await;
    }
    let named = |name: &str| format!("tidegate_{name}_total");
    let page = eventually("a ban comes and goes", async || {
        let page = page(&server).await;
        (page[&named("address_bans_ended")] > 0.0).then_some(page)
    })
    .await;
    assert_eq!(page.get(&named("address_requests")), Some(&30.0));
    assert_eq!(page.get(&named("address_counts_unconfirmed")), Some(&0.0));
    assert_eq!(page.get(&named("address_count_failures")), Some(&0.0));
    assert_eq!(page.get(&named("address_bans")), Some(&1.0));
    assert!(page[&named("address_periods_closed")] >= 1.0);
    let without = Server::start(crate::kit::PLENTY).await;
    let page = get(without.admin, "/metrics").await.body;
    assert!(!page.contains("tidegate_address"), "nothing is counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_server_sends_its_counts() {
    let redis = Redis::start();
    let server = Server::start(&config(&redis.url(), "threshold: 1000000")).await;
    let mut client = Client::connect(server.http).await;
    for _ in 0..100 {
        client.post(&by("192.0.2.1")).await;
    }
    drop(client);
    assert_eq!(server.stop().ended().await, ServeEnd::Drained);
    assert_eq!(sum(&redis, "tidegate:addresses:total"), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_route_without_a_policy_count_as_well() {
    let redis = Redis::start();
    let text = config(&redis.url(), "threshold: 1000000");
    let text = text.replace("listen: {", "listen: { gateway: '127.0.0.1:0',");
    // The upstream is down: requests count all the same.
    let routes = "routes:
  - { name: open, match: { path: /open }, upstreams: 'http://127.0.0.1:9' }
  - { name: limited, upstreams: 'http://127.0.0.1:9', policy: api }
";
    let guards = text.lines().filter(|line| line.starts_with("guards:"));
    let guards: String = guards.collect();
    let unguarded = text.replace(&guards, "");
    assert_ne!(unguarded, text);
    for text in [text, unguarded] {
        let gateway = Gateway::start(&(text + routes)).await;
        for path in ["/open", "/open", "/limited"] {
            assert_eq!(get(gateway.address, path).await.status, 502, "{path}");
        }
        gateway.stop().await;
    }
    let counted = until_some("it is there", || {
        let counted = map(&redis, "tidegate:addresses:total");
        (!counted.is_empty()).then_some(counted)
    });
    assert_eq!(counted, [("127.0.0.1".to_owned(), 6)].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_temporarily_banned_client_gets_retry_after() {
    let redis = Redis::start();
    let now: u64 = redis.command(&["TIME"]).texts()[0].parse().unwrap();
    let until = ((now + 600) * 1_000).to_string();
    let [banned, by_hand] = ["192.0.2.1", "192.0.2.2"];
    let set = ["SADD", "BlacklistIPsSet", banned, by_hand];
    redis.command(&set).done();
    let ends = ["ZADD", "{BlacklistIPsSet}:until", &until, banned];
    redis.command(&ends).done();
    // The list is read before the listeners open.
    let server = Server::start(&config(&redis.url(), "threshold: 1000000")).await;
    let mut client = Client::connect(server.http).await;
    let told = client.post(&by(banned)).await.body;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["reason"], "blacklisted");
    let left = told["retry_after_ms"].as_u64().unwrap();
    assert!((500_000..=600_001).contains(&left), "{left}");
    let told = client.post(&by(by_hand)).await.body;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(told["retry_after_ms"].is_null() && told["reason"] == "blacklisted");

    for (address, has_end) in [(banned, true), (by_hand, false)] {
        let lines = format!("host: a\r\nx-forwarded-for: {address}\r\n\r\n");
        let refused = client
            .ask(&format!("GET /v1/auth HTTP/1.1\r\n{lines}"))
            .await;
        assert_eq!(refused.status, 429, "{address}");
        let after = refused
            .header("retry-after")
            .map(|it| it.parse::<u64>().unwrap());
        assert_eq!(after.is_some(), has_end, "{address}");
        assert!(
            after.is_none_or(|it| (500..=601).contains(&it)),
            "{after:?}"
        );
        let sentence = refused.body.contains("Try again in");
        assert_eq!(sentence, has_end, "{}", refused.body);
    }
}

/// The program with a gateway.
struct Gateway {
    address: SocketAddr,
    process: Process,
    _folder: Folder,
}

impl Gateway {
    async fn start(text: &str) -> Self {
        let folder = Folder::make();
        let file = folder.write("tidegate.yaml", text);
        let command = tidegate(&["serve", "--config", &file]);
        let mut process = Process::start(command);
        Self {
            address: process.address("gateway").await,
            process,
            _folder: folder,
        }
    }

    async fn stop(self) {
        self.process.signal("TERM").await;
        assert!(self.process.ended().await.status.success());
    }
}
