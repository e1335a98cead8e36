//! The reference page of the metrics, generated from pages of real instances.

use crate::dashboard::GuardedInstance;
use crate::kit::{Folder, Gate, get};
use crate::prometheus::{World, ask};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::golden;
use tokio::time::timeout;

/// How long series may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);

/// A policy with reservations, and sections that other tests do not need.
const OPTIONAL: &str = "- { name: reserved, reserve: 60s, limits: [{ name: units, rate: 10/s }] }
alerts: { webhook: 'http://127.0.0.1:9/' }
statsd: { address: '127.0.0.1:9' }
admin: { tokens: [{ name: ci, role: read, hash: 'sha256:0000000000000000000000000000000000000000000000000000000000000000' }] }
";

/// A limit that only a store in memory has.
const IN_FLIGHT: &str = "- { name: jobs, limits: [{ name: at-once, concurrent: 10, hold: 1s }] }\n";

/// A metric of a page.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// The metrics by their names, as queries use them.
type MetricsByName = BTreeMap<String, Metric>;

/// A name and its labels.
type LabelledName = (String, BTreeSet<String>);

/// Adds the metrics of an OpenMetrics page.
fn add(page: &str, metrics: &mut MetricsByName) {
    let mut family = String::new();
    let mut kinds = BTreeMap::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            kinds.insert(name.to_owned(), kind.to_owned());
        }
    }
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            let kind = kinds[name].clone();
            family = match kind.as_str() {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            };
            let metric = metrics.entry(family.clone()).or_default();
            (metric.kind, metric.help) = (kind, help.to_owned());
        } else if !line.starts_with('#') {
            let labels = line
                .split_once('{')
                .and_then(|(_, rest)| rest.split_once("} "));
            let labels = labels.map_or("", |(labels, _)| labels);
            let names = labels
                .split("\",")
                .filter_map(|label| label.split_once('='));
            let names = names
                .map(|(name, _)| name.to_owned())
                .filter(|it| it != "le");
            metrics.get_mut(&family).unwrap().labels.extend(names);
        }
    }
}

/// Returns the metrics in the tables of the page that are written by hand, with their labels.
fn described(page: &str) -> BTreeSet<LabelledName> {
    let (page, _) = page.split_once("<!-- generated").unwrap();
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `tidegate_") && line.contains(" | "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let names = names.map(|name| match name.split_once('{') {
        Some((name, labels)) => {
            let labels = labels.trim_end_matches('}').split(',');
            (name.to_owned(), labels.map(str::to_owned).collect())
        }
        None => (name.to_owned(), BTreeSet::new()),
    });
    names.collect()
}

fn table(metrics: &MetricsByName) -> String {
    let mut text = String::from("| metric | type | labels | help |\n|---|---|---|---|\n");
    for (name, metric) in metrics {
        let labels = metric.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let help = metric.help.trim_end_matches('.').replace('|', "\\|");
        writeln!(text, "| `{name}` | {} | {labels} | {help} |", metric.kind).unwrap();
    }
    text
}

fn labels(metrics: &MetricsByName) -> BTreeSet<LabelledName> {
    let metrics = metrics.iter();
    metrics
        .map(|(name, metric)| (name.clone(), metric.labels.clone()))
        .collect()
}

async fn read(instances: &[SocketAddr]) -> MetricsByName {
    let mut metrics = MetricsByName::new();
    for admin in instances {
        let reply = get(*admin, "/metrics").await;
        add(&reply.body, &mut metrics);
    }
    metrics
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_metrics_has_every_metric_with_its_labels() {
    let page = golden::docs("reference/metrics.md");
    let text = fs::read_to_string(&page).unwrap();
    assert_eq!(golden::parts(&text).collect::<Vec<_>>(), ["metrics"]);
    let described = described(&text);
    let world = World::start().await;
    let shared = Gate::start(&format!("{}{OPTIONAL}", world.shared())).await;
    let folder = Folder::make();
    let file = folder.write("buckets", "");
    let with_snapshot = format!("max_keys: 1000, snapshot: {{ file: '{file}' }}");
    let alone = world.alone().replace("max_keys: 1000", &with_snapshot);
    let alone = Gate::start(&format!("{alone}{IN_FLIGHT}")).await;
    let guarded = GuardedInstance::start().await;
    ask(&shared).await;
    ask(&alone).await;
    assert_eq!(get(shared.admin, "/admin/v1/whoami").await.status, 401);
    let instances = [shared.admin, alone.admin, guarded.admin];
    let mut metrics = MetricsByName::new();
    let complete = timeout(PATIENCE, async {
        while labels(&metrics) != described {
            metrics = read(&instances).await;
        }
    });
    // If the pages still differ at the end, the comparison shows it.
    complete.await.ok();
    let served = labels(&metrics);
    let differences: Vec<_> = served.symmetric_difference(&described).collect();
    assert!(differences.is_empty(), "on one side only: {differences:#?}");
    golden::compare_parts(&page, |_| table(&metrics));
}
