//! Redis nodes: calls to them, and their own statistics.

#![expect(
    clippy::float_cmp,
    reason = "these are counts: whole, and far below 2^53"
)]

use crate::kit::{Client, Gate, Samples, eventually, page};
use tidegate_testkit::redis::{Cluster, FaultProxy, ProxyFaults, Server};

const POLICIES: &str = "policies: [{ name: api, limits: [{ name: all, key: ip, rate: 100/day, on_failure: local }] }]\n";

fn sum(page: &Samples, name: &str) -> f64 {
    let series = page.iter().filter(|(series, _)| series.starts_with(name));
    series.map(|(_, value)| value).sum()
}

fn nodes(page: &Samples, name: &str) -> usize {
    let begins = format!("{name}{{");
    page.keys().filter(|it| it.starts_with(&begins)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_node_metrics_show_its_state_and_calls() {
    let redis = Server::builder().setting("maxmemory", "64mb").start();
    let wire = FaultProxy::start(redis.port());
    let url = redis.url_at(wire.port());
    let config = format!("store: {{ url: '{url}', timeout: 500ms }}\n{POLICIES}");
    let gate = Gate::start(&config).await;
    let mut client = Client::connect(gate.http).await;
    for nth in 0..10 {
        client.post(&format!(r#"{{"ip": "192.0.2.{nth}"}}"#)).await;
    }
    let node = format!("node=\"127.0.0.1:{}\"", wire.port());
    let of = |name: &str| format!("tidegate_redis_{name}{{{node}}}");
    let page_told = eventually("it has told", async || {
        let page = page(gate.admin).await;
        page.contains_key(&of("keys")).then_some(page)
    })
    .await;
    assert_eq!(page_told[&of("memory_max_bytes")], 67_108_864.0);
    assert!(page_told[&of("memory_used_bytes")] > 100_000.0);
    assert!(page_told[&of("clients")] >= 1.0);
    assert!(page_told[&of("commands_total")] >= 1.0);
    for name in [
        "keys_evicted_total",
        "keys_expired_total",
        "keyspace_hits_total",
        "keyspace_misses_total",
        "connections_rejected_total",
        "operations_per_second",
        "uptime_seconds",
        "info_age_seconds",
        "replicas",
    ] {
        assert!(page_told.contains_key(&of(name)), "{name}");
    }
    assert_eq!(page_told[&of("node_up")], 1.0);
    assert_eq!(page_told[&of("circuit_closed")], 1.0);
    let calls =
        |outcome: &str| format!("tidegate_redis_node_calls_total{{{node},outcome=\"{outcome}\"}}");
    let answered = page_told[&calls("answered")];
    assert!(answered >= 1.0);
    assert_eq!(page_told[&of("call_duration_seconds_count")], answered);
    assert!(page_told[&of("call_duration_seconds_sum")] > 0.0);
    let decided = "tidegate_decision_duration_seconds_count{policy=\"api\"}";
    assert_eq!(page_told[decided], 10.0, "each of them is timed");

    wire.set(ProxyFaults::blackhole());
    client.post(r#"{"ip": "192.0.2.1"}"#).await;
    eventually("a call whose time was up is counted", async || {
        let page = page(gate.admin).await;
        (page[&calls("timeout")] >= 1.0).then_some(())
    })
    .await;
    wire.set(ProxyFaults::refuse());
    wire.reset();
    eventually("it is away", async || {
        let page = page(gate.admin).await;
        (page[&of("node_up")] == 0.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_master_of_a_cluster_has_its_own_series() {
    let cluster = Cluster::start(3, 0);
    let config = format!(
        "store: {{ url: '{}', timeout: 5s }}\n{POLICIES}",
        cluster.url()
    );
    let gate = Gate::start(&config).await;
    let mut client = Client::connect(gate.http).await;
    for nth in 0..200 {
        client.post(&format!(r#"{{"ip": "192.0.2.{nth}"}}"#)).await;
    }
    let page = eventually("all have told", async || {
        let page = page(gate.admin).await;
        let have_told = nodes(&page, "tidegate_redis_memory_used_bytes") == 3;
        // They are polled every ten seconds, and the first poll came before there was any data.
        (have_told && sum(&page, "tidegate_redis_keys{") >= 1.0).then_some(page)
    })
    .await;
    assert_eq!(sum(&page, "tidegate_redis_node_up"), 3.0);
    assert_eq!(
        nodes(&page, "tidegate_redis_call_duration_seconds_count"),
        3
    );
    let busy = page.iter().filter(|(series, value)| {
        series.starts_with("tidegate_redis_node_calls_total")
            && series.contains("answered")
            && **value > 0.0
    });
    assert_eq!(busy.count(), 3, "200 clients are spread over all of them");
}
