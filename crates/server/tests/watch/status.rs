//! `/status`.

use crate::kit::{Client, Gate, Reply, Upstream, eventually, get};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tidegate_testkit::redis::{Cluster, FaultProxy, ProxyFaults, SentinelGroup, Server};

fn redis(url: &str, on_failure: &str) -> String {
    format!(
        "store: {{ url: '{url}', timeout: 500ms, key_secret: hunter2 }}\n\
         policies: [{{ name: api, limits: [{{ name: all, key: ip, rate: 100/h, on_failure: {on_failure} }}] }}]\n"
    )
}

async fn status(admin: SocketAddr) -> (Reply, Value) {
    let reply = get(admin, "/status").await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let json = reply.json();
    (reply, json)
}

async fn ask(gate: &Gate) {
    let mut client = Client::connect(gate.http).await;
    client.post(r#"{"ip": "192.0.2.1"}"#).await;
}

#[tokio::test]
async fn a_server_without_dependencies_is_up() {
    let gate = Gate::start(
        "policies: [{ name: api, limits: [{ name: all, key: ip, rate: 100/h }] }]\n\
         guards: [{ name: closed, deny: user, list: [eve] }]\n",
    )
    .await;
    // This listener opens a moment before the others.
    let (reply, status) = eventually("it serves", async || {
        let (reply, status) = status(gate.admin).await;
        (status["phase"] != "starting").then_some((reply, status))
    })
    .await;
    assert_eq!(reply.status, 200);
    assert_eq!(status["status"], "UP");
    assert_eq!(status["reasons"], serde_json::json!([]));
    assert_eq!(status["phase"], "serving");
    assert_eq!(status["program"], env!("CARGO_PKG_VERSION"));
    let zones = tidegate_policy::calendar::ZoneData::bundled();
    assert_eq!(status["time_zones"], zones.version());
    assert_eq!(status["store"]["kind"], "memory");
    assert_eq!(status["lists"][0]["guard"], "closed");
    assert_eq!(status["lists"][0]["status"], "UP");
    assert!(status["configuration"]["loaded_at"].as_i64().unwrap() > 1_600_000_000);
    assert!(!reply.body.contains("eve"), "list members are private");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_names_unreachable_parts_and_no_secrets() {
    let redis_server = Server::start();
    let wire = FaultProxy::start(redis_server.port());
    let upstream = Upstream::start().await;
    let routes = format!(
        "routes: [{{ name: orders, match: {{ path: /orders }}, upstreams: ['http://{}'], policy: api }}]\n",
        upstream.address
    );
    let url = redis_server.url_at(wire.port());
    let gate = Gate::start(&(redis(&url, "local") + &routes)).await;
    ask(&gate).await;
    let sound = eventually("the node has told how it is", async || {
        let (reply, status) = status(gate.admin).await;
        assert_eq!((reply.status, &status["status"]), (200, &"UP".into()));
        let is_told = status["store"]["nodes"][0]["version"].is_string();
        is_told.then_some(status)
    })
    .await;
    let store = &sound["store"];
    assert_eq!(
        (&store["kind"], &store["topology"]),
        (&"redis".into(), &"standalone".into())
    );
    assert!(store["calls"].as_u64().unwrap() >= 1);
    assert!(store["latency_ms_at_most"]["p50"].as_f64().unwrap() > 0.0);
    let node = &store["nodes"][0];
    assert_eq!(node["address"], format!("127.0.0.1:{}", wire.port()));
    assert_eq!(
        (&node["status"], &node["role"]),
        (&"UP".into(), &"master".into())
    );
    assert!(node["version"].as_str().unwrap().starts_with("Redis 7"));
    assert!(node["memory_used_bytes"].as_u64().unwrap() > 0);
    assert!(node["latency_ms"].as_f64().unwrap() >= 0.0);
    assert_eq!(sound["upstreams"][0]["status"], "UP");
    assert!(!sound.to_string().contains("hunter2"));

    wire.set(ProxyFaults::refuse());
    wire.reset();
    ask(&gate).await;
    let away = eventually("it is noticed", async || {
        let (reply, status) = status(gate.admin).await;
        assert_eq!(reply.status, 200, "`on_failure` applies");
        let nodes = &status["store"]["nodes"];
        let is_away = nodes[0]["status"] == "DOWN" && status["store"]["status"] == "DOWN";
        is_away.then_some(status)
    })
    .await;
    assert_eq!(away["status"], "DEGRADED");
    let reasons = away["reasons"].as_array().unwrap();
    assert!(reasons.contains(&"store".into()), "{away}");
    assert!(!away["store"]["errors"].as_object().unwrap().is_empty());

    wire.set(ProxyFaults::none());
    eventually("it is well again", async || {
        let (_, status) = status(gate.admin).await;
        (status["status"] == "UP").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_lists_every_master_by_address() {
    let (cluster, sentinels) = (Cluster::start(3, 0), SentinelGroup::start());
    for (url, mode, masters) in [
        (cluster.url(), "cluster", cluster.masters()),
        (sentinels.url(), "sentinel", vec![sentinels.master()]),
    ] {
        let address = |it: &Server| format!("127.0.0.1:{}", it.port());
        let masters: BTreeSet<String> = masters.into_iter().map(address).collect();
        let gate = Gate::start(&redis(&url, "local").replace("500ms", "5s")).await;
        ask(&gate).await;
        let store = eventually("all of them have told how they are", async || {
            let (_, status) = status(gate.admin).await;
            let nodes = status["store"]["nodes"].as_array().unwrap();
            let have_told = nodes.iter().filter(|node| node["role"] == "master");
            let is_well = have_told.count() == masters.len() && status["status"] == "UP";
            is_well.then(|| status["store"].clone())
        })
        .await;
        assert_eq!(store["topology"], mode, "{store}");
        let nodes = store["nodes"].as_array().unwrap();
        let told: Vec<&str> = nodes
            .iter()
            .map(|it| it["address"].as_str().unwrap())
            .collect();
        assert_eq!(told.len(), masters.len(), "each once: {store}");
        assert!(told.iter().all(|it| masters.contains(*it)), "{store}");
        for node in nodes {
            assert_eq!(
                (&node["status"], &node["circuit_closed"]),
                (&"UP".into(), &true.into()),
                "{store}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_answer_without_its_store_is_down() {
    let redis_server = Server::start();
    let wire = FaultProxy::start(redis_server.port());
    let url = redis_server.url_at(wire.port());
    let gate = Gate::start(&redis(&url, "error")).await;
    wire.set(ProxyFaults::refuse());
    wire.reset();
    ask(&gate).await;
    eventually("it is down", async || {
        let (reply, status) = status(gate.admin).await;
        (reply.status == 503 && status["status"] == "DOWN").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_status_is_read_only_and_requires_the_listener_token() {
    let gate = Gate::start("policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]\n").await;
    let mut client = Client::connect(gate.admin).await;
    let request = "POST /status HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";
    let reply = client.ask(request).await;
    assert_eq!(
        (reply.status, reply.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

/// Regression: new keys were refused by a shared bucket, and `/status` was `UP`.
#[tokio::test]
async fn a_memory_store_that_is_full_is_degraded_and_warns_once() {
    let mut gate = Gate::start(
        "store: { max_keys: 1 }\n\
         policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 2/h }] }]\n",
    )
    .await;
    let mut client = Client::connect(gate.http).await;
    // A table of one set, and ten more keys: two of them pass.
    for nth in 0..74 {
        client
            .post(&format!(r#"{{"ip": "203.0.113.{nth}"}}"#))
            .await;
    }
    let (reply, full) = status(gate.admin).await;
    assert_eq!((reply.status, &full["status"]), (200, &"DEGRADED".into()));
    assert_eq!(full["reasons"], serde_json::json!(["store memory"]));
    let store = &full["store"];
    assert_eq!(store["status"], "FULL");
    assert_eq!(
        (&store["slots"], &store["shared"]),
        (&64.into(), &10.into())
    );
    assert!(store["buckets"].as_u64().unwrap() >= 64, "{store}");
    assert_eq!(get(gate.admin, "/readyz").await.status, 200);
    let metrics = get(gate.admin, "/metrics").await.body;
    for line in [
        r#"tidegate_store_overflow_total{kind="shared",outcome="allowed"} 2"#,
        r#"tidegate_store_overflow_total{kind="shared",outcome="refused"} 8"#,
        "tidegate_store_overflowed_total 10",
        "tidegate_store_slots 64",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in {metrics}");
    }
    let message = "memory store full; new keys share the bucket of their network";
    let line = gate.process.logs(message, ("network", "203.0")).await;
    assert_eq!(
        (&line["level"], &line["limit"]),
        (&"WARN".into(), &"api/per-client".into())
    );
    gate.process.signal("TERM").await;
    let log = gate.process.ended().await.stderr;
    assert_eq!(log.matches(message).count(), 1, "{log}");
    assert!(!log.contains("203.0.113"), "no key is in {log}");
}
