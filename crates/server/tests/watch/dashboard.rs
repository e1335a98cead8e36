//! The shipped dashboard: every query, on a Prometheus that scrapes a real instance.

use crate::kit::process::{Process, tidegate};
use crate::kit::programs::Program;
use crate::kit::{Client, Folder, Gate, eventually};
use crate::prometheus::{Prometheus, World, ask, names};
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The pages that list metrics.
const PAGES: [&str; 3] = [
    "docs/reference/metrics.md",
    "docs/how-to/monitoring.md",
    "docs/reference/config/sources.md",
];
/// Values for the variables that Grafana fills in.
const VARIABLES: [(&str, &str); 5] = [
    ("$__rate_interval", "5m"),
    ("$job", ".+"),
    ("$instance", ".+"),
    ("$policy", ".*"),
    ("$limit", ".*"),
];

/// How long series may take to appear.
const PATIENCE: Duration = Duration::from_secs(45);

/// A query of a panel, of the annotations or of a variable.
struct DashboardQuery {
    title: String,
    query: String,
    legend: String,
}

fn read_dashboard() -> Value {
    let text = fs::read_to_string(format!("{ROOT}/deploy/grafana/tidegate.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list_queries(dashboard: &Value) -> Vec<DashboardQuery> {
    let panels = dashboard["panels"].as_array().unwrap();
    let mut all: Vec<DashboardQuery> = panels
        .iter()
        .flat_map(|panel| {
            let targets = panel["targets"].as_array();
            targets.into_iter().flatten().map(|target| DashboardQuery {
                title: text(&panel["title"]),
                query: text(&target["expr"]),
                legend: text(&target["legendFormat"]),
            })
        })
        .collect();
    for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
        all.push(DashboardQuery {
            title: text(&annotation["name"]),
            query: text(&annotation["expr"]),
            legend: text(&annotation["textFormat"]),
        });
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = text(&variable["definition"]);
        // The values of a label are the groups by it.
        let Some(values) = query.strip_prefix("label_values(") else {
            continue;
        };
        let (series, label) = values.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
        all.push(DashboardQuery {
            title: format!("variable {}", text(&variable["name"])),
            query: format!("group by ({label}) ({series})"),
            legend: format!("{{{{{label}}}}}"),
        });
    }
    all
}

/// Returns the query with values for its variables.
fn fill_variables(query: &str) -> String {
    let fill = |query: String, (name, value): (&str, &str)| query.replace(name, value);
    let query = VARIABLES.into_iter().fold(query.to_owned(), fill);
    assert!(!query.contains('$'), "a variable without a value: {query}");
    query
}

/// Returns the labels in a legend: `{{policy}} / {{limit}}`.
fn labels(legend: &str) -> Vec<&str> {
    let parts = legend.split("{{").skip(1);
    parts.map(|part| part.split("}}").next().unwrap()).collect()
}

/// Returns the metric of a series of a histogram.
fn family(name: &str) -> &str {
    let parts = ["_bucket", "_sum", "_count"];
    let mut families = parts.iter().filter_map(|part| name.strip_suffix(part));
    families.next().unwrap_or(name)
}

#[test]
fn every_metric_of_the_dashboard_is_documented_and_selected_by_its_variables() {
    let pages = PAGES.map(|page| fs::read_to_string(format!("{ROOT}/{page}")).unwrap());
    let documented: BTreeSet<String> = pages.iter().flat_map(|page| names(page)).collect();
    let dashboard = read_dashboard();
    let all = list_queries(&dashboard);
    assert!(all.len() > 60, "{}", all.len());
    for DashboardQuery { title, query, .. } in &all {
        let names = names(query);
        assert!(!names.is_empty(), "{title}: {query}");
        for name in &names {
            assert!(
                documented.contains(family(name)),
                "{title}: {name} is on no page"
            );
        }
        let selectors = query.matches("job=~\"$job\"").count();
        let is_first = title == "variable job" || title == "variable instance";
        assert!(selectors == names.len() || is_first, "{title}: {query}");
    }
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids of panels are unique");
    for panel in panels {
        let is_explained = panel["type"] == "row" || !text(&panel["description"]).is_empty();
        assert!(is_explained, "{panel}");
    }
}

/// An instance with the features that the others lack: TLS, tokens, guards, a limit in shadow mode,
/// a snapshot, and rejected requests.
pub(crate) struct GuardedInstance {
    pub(crate) admin: SocketAddr,
    process: Process,
    _folder: Folder,
}

impl GuardedInstance {
    pub(crate) async fn start() -> Self {
        let folder = Folder::make();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let cert = folder.write("cert.pem", params.self_signed(&key).unwrap().pem());
        let key = folder.write("key.pem", key.serialize_pem());
        let buckets = Path::new(&cert).with_file_name("buckets");
        let buckets = buckets.display();
        let config = |rate: &str| {
            format!(
                "listen:
  http: '127.0.0.1:0'
  gateway: '127.0.0.1:0'
  admin: '127.0.0.1:0'
  grpc: {{ address: '127.0.0.1:0', tls: {{ cert: '{cert}', key: '{key}' }} }}
store: {{ snapshot: {{ file: '{buckets}', every: 1s }} }}
client: {{ user: {{ claim: sub }}, jwt: {{ secret: 0123456789abcdef0123456789abcdef }} }}
guards:
  - {{ name: blocked, deny: ip, list: [192.0.2.66] }}
  - {{ name: staff, allow: user, list: [ann] }}
  - {{ name: trial, deny: user, list: [eve], mode: shadow }}
routes: [{{ name: guarded, upstreams: ['http://127.0.0.1:9'] }}]
policies: [{{ name: guarded, limits: [{{ name: watched, mode: shadow, key: ip, rate: {rate} }}] }}]
"
            )
        };
        let file = folder.write("tidegate.yaml", config("1/h"));
        let mut process = Process::start(tidegate(&["serve", "--no-watch", "--config", &file]));
        let http = process.address("http").await;
        let gateway = process.address("gateway").await;
        let admin = process.address("admin").await;
        let mut client = Client::connect(http).await;
        for (check, status) in [
            (r#"{"ip": "192.0.2.66"}"#, 200),
            (r#"{"user": "ann"}"#, 200),
            (r#"{"user": "eve", "ip": "192.0.2.1"}"#, 200),
            (r#"{"user": "eve", "ip": "192.0.2.1"}"#, 200),
            ("{", 400),
        ] {
            let reply = client.post(check).await;
            assert_eq!(reply.status, status, "{check}: {}", reply.body);
        }
        let forged = "GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer a.b.c\r\n\r\n";
        let reply = Client::connect(gateway).await.ask(forged).await;
        assert_eq!(reply.status, 502, "{}", reply.body);
        let ambiguous = "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n";
        let reply = Client::connect(gateway).await.ask(ambiguous).await;
        assert_eq!(reply.status, 400, "{}", reply.body);
        folder.write("tidegate.yaml", config("2/h"));
        Self {
            admin,
            process,
            _folder: folder,
        }
    }

    /// Reloads the configuration, which makes the annotation.
    async fn reload(&self) {
        self.process.signal("HUP").await;
    }
}

/// Returns the queries that find no series, or none with the labels of their legend.
async fn find_faults(prometheus: &Prometheus, all: &[DashboardQuery]) -> Vec<String> {
    let mut faults = Vec::new();
    for DashboardQuery {
        title,
        query,
        legend,
    } in all
    {
        let series = prometheus.query(&fill_variables(query)).await;
        if series.is_empty() {
            faults.push(format!("{title}: no series, {query}"));
            continue;
        }
        // Prometheus drops labels that are empty, such as the limit if a guard refused.
        for label in labels(legend) {
            let mut found = series.iter();
            if !found.any(|(found, _)| found.get(label).is_some()) {
                faults.push(format!("{title}: no series has the label {label}, {query}"));
            }
        }
    }
    faults
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_dashboard_finds_series() {
    let Some(program) = Program::Prometheus.find() else {
        return;
    };
    let world = World::start().await;
    let shared = Gate::start(&world.shared()).await;
    let alone = Gate::start(&world.alone()).await;
    let guarded = GuardedInstance::start().await;
    let prometheus = Prometheus::start(&program, &[shared.admin, alone.admin, guarded.admin]);
    ask(&shared).await;
    ask(&alone).await;
    eventually("all are scraped", async || {
        let up = prometheus.query("count(up == 1) == 3").await;
        (!up.is_empty()).then_some(())
    })
    .await;
    guarded.reload().await;

    let all = list_queries(&read_dashboard());
    let mut faults = Vec::new();
    let found = timeout(PATIENCE, async {
        loop {
            faults = find_faults(&prometheus, &all).await;
            if faults.is_empty() {
                return;
            }
        }
    })
    .await;
    assert!(found.is_ok(), "{faults:#?}");
}
