//! Prometheus and promtool with the metrics and the shipped rules.

use crate::kit::programs::Program;
use crate::kit::{Client, Collector, Folder, Gate, Upstream, eventually, in_time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use tidegate_testkit::redis::{Port, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus");

/// One configuration with all metrics, and the servers that it needs.
pub(crate) struct World {
    folder: Folder,
    upstream: Upstream,
    collector: Collector,
    /// The Redis of sources and possibly of buckets.
    redis: Server,
}

/// Metrics that depend on the configuration.
const SOMETIMES: [&str; 7] = [
    "tidegate_source_loads_total{source=\"redis\"",
    "tidegate_source_age_seconds{source=\"redis\"",
    "tidegate_source_version_info{source=\"redis\"",
    "tidegate_plan_lookups_total{plan=\"events\"",
    "tidegate_plan_age_seconds{plan=\"events\"",
    "tidegate_waiting_requests{policy=\"slow\"",
    "tidegate_spans_total{",
];
/// A metric that needs buckets in Redis.
const SHARED: &str = "tidegate_address_requests_total";

impl World {
    pub(crate) async fn start() -> Self {
        Self {
            folder: Folder::make(),
            upstream: Upstream::start().await,
            collector: Collector::start().await,
            redis: Server::start(),
        }
    }

    /// Returns the config with buckets in Redis, where addresses are counted too.
    pub(crate) fn shared(&self) -> String {
        let url = self.redis.url();
        let store = format!("store: {{ url: '{url}', timeout: 5s }}");
        self.config(&format!("{store}\naddresses: {{ threshold: 1000000 }}"))
    }

    /// Returns the config with buckets in memory.
    pub(crate) fn alone(&self) -> String {
        self.config("store: { max_keys: 1000 }")
    }

    fn config(&self, store: &str) -> String {
        let list = self.folder.write("list.txt", "192.0.2.200\n");
        let plans = "{ subjects: { p1: { amount: 5, period: 3600 }, p2: {} } }";
        let plans = self.folder.write("plans.yaml", plans);
        let (upstream, url) = (self.upstream.address, self.redis.url());
        format!(
            "{store}\n\
             sources: [{{ redis: {{ url: '{url}', key: 'tidegate:policies' }} }}]\n\
             plans: [{{ name: events, file: '{plans}' }}]\n\
             {traces}\
             guards: [{{ name: closed, deny: ip, file: '{list}' }}]\n\
             routes: [{{ name: orders, match: {{ path: /api/orders }}, upstreams: ['http://{upstream}'], policy: api }}]\n\
             policies:\n\
             - {{ name: api, limits: [{{ name: per-client, key: ip, rate: 5/h }}] }}\n\
             - {{ name: events, limits: [{{ name: per-project, key: attr:project, rate: {{ plan: events, subject: attr:project, default: refuse }} }}] }}\n\
             - {{ name: slow, limits: [{{ name: waits, rate: 100/s burst 1, on_refusal: wait, max_wait: 5s }}] }}\n",
            traces = self.collector.traces("100%"),
        )
    }
}

/// Returns the page in the default format.
async fn plain(admin: SocketAddr) -> String {
    let request = "GET /metrics HTTP/1.1\r\nhost: a\r\naccept: */*\r\n\r\n";
    let reply = Client::connect(admin).await.ask(request).await;
    assert_eq!(
        reply.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    reply.body
}

/// Sends requests to the gateway until one is refused, and a few more.
pub(crate) async fn ask(gate: &Gate) {
    let mut client = Client::connect(gate.gateway.unwrap()).await;
    for _ in 0..10 {
        client
            .ask("GET /api/orders/7 HTTP/1.1\r\nhost: a\r\n\r\n")
            .await;
    }
    let mut client = Client::connect(gate.http).await;
    for question in [
        r#"{"policy": "events", "attributes": {"project": "p1"}}"#,
        r#"{"policy": "events", "attributes": {"project": "p2"}}"#,
        r#"{"policy": "events", "attributes": {"project": "nobody"}}"#,
        r#"{"policy": "slow"}"#,
        r#"{"policy": "slow"}"#,
    ] {
        let reply = client.post(question).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
}

async fn run(program: &Path, words: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(words)
        .current_dir(RULES)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let running = async {
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        child.wait_with_output().await.unwrap()
    };
    let output = in_time(&format!("the end of promtool {words:?}"), running).await;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    said.into_owned()
}

#[tokio::test]
async fn promtool_accepts_the_metrics_page() {
    let Some(promtool) = Program::Promtool.find() else {
        return;
    };
    let world = World::start().await;
    for (config, more) in [(world.alone(), None), (world.shared(), Some(SHARED))] {
        let gate = Gate::start(&config).await;
        ask(&gate).await;
        let page = plain(gate.admin).await;
        for series in SOMETIMES.into_iter().chain(more) {
            let mut lines = page.lines();
            let is_there = lines.any(|line| line.starts_with(series));
            assert!(is_there, "{series}: {page}");
        }
        let said = run(&promtool, &["check", "metrics"], &page).await;
        assert_eq!(said, "", "{page}");
    }
}

#[tokio::test]
async fn alert_rules_fire_exactly_when_they_should() {
    let Some(promtool) = Program::Promtool.find() else {
        return;
    };
    run(&promtool, &["check", "rules", "alerts.yml"], "").await;
    run(&promtool, &["check", "config", "prometheus.yml"], "").await;
    run(&promtool, &["test", "rules", "alerts.test.yml"], "").await;
    run(&promtool, &["check", "rules", "gateway-names.yml"], "").await;
    run(&promtool, &["test", "rules", "gateway-names.test.yml"], "").await;
    // Every rule has a test.
    let rules = fs::read_to_string(format!("{RULES}/alerts.yml")).unwrap();
    let tests = fs::read_to_string(format!("{RULES}/alerts.test.yml")).unwrap();
    for line in rules.lines() {
        if let Some(name) = line.trim().strip_prefix("- alert: ") {
            let rings = format!("alertname: {name}\n        exp_alerts:\n");
            assert!(tests.contains(&rings), "{name} never fires in a test");
        }
    }
}

/// A Prometheus that runs until it is dropped.
pub(crate) struct Prometheus {
    address: String,
    _process: Child,
    _port: Port,
    _folder: Folder,
}

impl Prometheus {
    pub(crate) fn start(program: &Path, targets: &[SocketAddr]) -> Self {
        let targets: Vec<String> = targets.iter().map(|it| format!("'{it}'")).collect();
        let folder = Folder::make();
        let file = folder.write(
            "prometheus.yml",
            format!(
                "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
                 rule_files: ['{RULES}/alerts.yml', '{RULES}/gateway-names.yml']\n\
                 scrape_configs: [{{ job_name: tidegate, static_configs: [{{ targets: [{}] }}] }}]\n",
                targets.join(", ")
            ),
        );
        let data = folder.write("data", "");
        fs::remove_file(&data).unwrap();
        let port = Port::lease();
        let address = format!("127.0.0.1:{}", port.number());
        let process = Command::new(program)
            .arg(format!("--config.file={file}"))
            .arg(format!("--storage.tsdb.path={data}"))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            address,
            _process: process,
            _port: port,
            _folder: folder,
        }
    }

    /// Returns the response, if there is one.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).await.ok()?;
        // HTTP/1.0, so that the response ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\nhost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        in_time(&format!("an answer to {request:?}"), reading)
            .await
            .ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// Returns the series of a query: their labels and values.
    pub(crate) async fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let escaped: Vec<String> = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let escaped = escaped.concat();
        let Some(answer) = self.get(&format!("/api/v1/query?query={escaped}")).await else {
            return Vec::new();
        };
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let result = answer["data"]["result"].as_array().unwrap();
        let series = result.iter().map(|it| {
            let value = it["value"][1].as_str().unwrap().parse().unwrap();
            (it["metric"].clone(), value)
        });
        series.collect()
    }
}

/// The two queries of an operator who migrates from another gateway, unchanged: recording rules
/// keep its metric names.
const REFUSED: &str = r#"rate(gateway_request_total{status="429"}[5m])"#;
const SHARE: &str = r#"rate(gateway_request_total{status="429", route_path="/api/orders"}[5m])
/ rate(gateway_request_total{route_path="/api/orders"}[5m])"#;
/// The share of all requests: a sum over the statuses.
const SHARE_OF_ALL: &str = r#"sum(rate(gateway_request_total{status="429", route_path="/api/orders"}[5m]))
/ sum(rate(gateway_request_total{route_path="/api/orders"}[5m]))"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_scrapes_the_page_and_finds_the_series_of_the_rules() {
    let Some(program) = Program::Prometheus.find() else {
        return;
    };
    let world = World::start().await;
    let shared = Gate::start(&world.shared()).await;
    let alone = Gate::start(&world.alone()).await;
    let prometheus = Prometheus::start(&program, &[shared.admin, alone.admin]);
    eventually("both are scraped", async || {
        let up = prometheus.query("up == 1").await;
        (up.len() == 2).then_some(())
    })
    .await;

    let refused = eventually("refusals are seen", async || {
        ask(&shared).await;
        let refused = prometheus.query(REFUSED).await;
        let (labels, rate) = refused.first()?.clone();
        (rate > 0.0).then_some(labels)
    })
    .await;
    assert_eq!(refused["route_path"], "/api/orders");
    assert_eq!(refused["route_id"], "orders");
    let share = prometheus.query(SHARE).await;
    assert_eq!(
        share.len(),
        1,
        "it is a valid query, and it yields: {share:?}"
    );
    let share = eventually("the share of all", async || {
        let share = prometheus.query(SHARE_OF_ALL).await;
        let (_, share) = share.first()?;
        (*share > 0.0).then_some(*share)
    })
    .await;
    assert!(share <= 1.0, "{share}");
    eventually("decisions are timed", async || {
        let slow = "histogram_quantile(0.99, sum by (le) (rate(tidegate_decision_duration_seconds_bucket[5m])))";
        let (_, slow) = prometheus.query(slow).await.first()?.clone();
        (slow > 0.0).then_some(())
    })
    .await;

    // The rules are evaluated, and every name in them is a metric of Tidegate.
    let rules = prometheus.get("/api/v1/rules").await.unwrap();
    let groups = rules["data"]["groups"].as_array().unwrap();
    let rules: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    assert!(rules.len() >= 17);
    let known = prometheus
        .get("/api/v1/label/__name__/values")
        .await
        .unwrap();
    let known: BTreeSet<&str> = known["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        for name in names(rule["query"].as_str().unwrap()) {
            let is_elsewhere = ELSEWHERE.contains(&name.as_str());
            assert!(known.contains(name.as_str()) || is_elsewhere, "{name}");
        }
    }
}

/// Metrics of servers with plans, TLS or a snapshot only.
const ELSEWHERE: [&str; 3] = [
    "tidegate_plans_stale",
    "tidegate_tls_certificate_expiry_timestamp_seconds",
    "tidegate_snapshot_writes_total",
];

/// Returns Tidegate's metrics in a query.
pub(crate) fn names(query: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = query.split(|c| !is_part(c));
    let ours = words.filter(|word| word.starts_with("tidegate_"));
    ours.map(str::to_owned).collect()
}
