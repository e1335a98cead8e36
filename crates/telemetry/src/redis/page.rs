//! Encoding of the nodes of Redis as metrics.

use super::figures::ServerFigures;
use super::nodes::{NodeFigures, Nodes};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;
use std::sync::Arc;

/// A gauge's name, its help text, its unit, and the function that reads it.
type Gauge = (
    &'static str,
    &'static str,
    Option<Unit>,
    fn(&ServerFigures) -> Option<u64>,
);
type FigureColumn = (
    &'static str,
    &'static str,
    fn(&ServerFigures) -> Option<u64>,
);

const GAUGES: [Gauge; 10] = [
    (
        "redis_memory_used",
        "Memory used by a Redis node, from INFO.",
        Some(Unit::Bytes),
        |it| it.memory_used,
    ),
    (
        "redis_memory_max",
        "Memory limit of a Redis node: maxmemory, or the memory of the machine if unset.",
        Some(Unit::Bytes),
        |it| it.memory_max,
    ),
    (
        "redis_keys",
        "Keys in the database, including those of other programs.",
        None,
        |it| Some(it.keys),
    ),
    (
        "redis_keys_expiring",
        "Keys in the database with an expiry.",
        None,
        |it| Some(it.keys_expiring),
    ),
    (
        "redis_clients",
        "Client connections of a Redis node.",
        None,
        |it| it.clients,
    ),
    (
        "redis_clients_blocked",
        "Client connections of a Redis node that wait for a blocking command.",
        None,
        |it| it.clients_blocked,
    ),
    (
        "redis_clients_max",
        "Maximum client connections of a Redis node.",
        None,
        |it| it.clients_max,
    ),
    (
        "redis_replicas",
        "Replicas connected to a Redis node.",
        None,
        |it| it.replicas,
    ),
    (
        "redis_operations_per_second",
        "Commands per second of a Redis node, from INFO.",
        None,
        |it| it.operations_per_second,
    ),
    (
        "redis_uptime",
        "Uptime of a Redis node.",
        Some(Unit::Seconds),
        |it| it.uptime,
    ),
];

const COUNTERS: [FigureColumn; 6] = [
    (
        "redis_commands",
        "Commands executed by a Redis node for all clients.",
        |it| it.commands,
    ),
    (
        "redis_keyspace_hits",
        "Key lookups on a Redis node that found a key.",
        |it| it.hits,
    ),
    (
        "redis_keyspace_misses",
        "Key lookups on a Redis node that found no key.",
        |it| it.misses,
    ),
    (
        "redis_keys_evicted",
        "Keys evicted by a Redis node.",
        |it| it.evicted,
    ),
    (
        "redis_keys_expired",
        "Keys expired on a Redis node.",
        |it| it.expired,
    ),
    (
        "redis_connections_rejected",
        "Connections rejected by a Redis node because of its maximum.",
        |it| it.rejected,
    ),
];

/// The nodes, read at scrape time.
#[derive(Debug)]
pub(crate) struct RedisCollector(pub(crate) Arc<Nodes>);

impl Collector for RedisCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let nodes = self.0.all();
        encode_states(&mut encoder, &nodes)?;
        encode_calls(&mut encoder, &nodes)?;
        encode_times(&mut encoder, &nodes)?;
        encode_versions(&mut encoder, &nodes)?;
        encode_figures(&mut encoder, &nodes)
    }
}

/// A flag's name, its help text, and the function that reads it.
type NodeFlag = (&'static str, &'static str, fn(&NodeFigures) -> bool);

fn encode_states(encoder: &mut DescriptorEncoder<'_>, nodes: &[NodeFigures]) -> fmt::Result {
    let states: [NodeFlag; 2] = [
        (
            "redis_node_up",
            "1 if a Redis node is connected, else 0.",
            |node| node.calls.is_connected,
        ),
        (
            "redis_circuit_closed",
            "1 if the circuit breaker of a Redis node is closed; 0 after too many failures, \
             until a probe succeeds.",
            |node| node.calls.is_trusted,
        ),
    ];
    for (name, help, is_so) in states {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for node in nodes {
            let gauge = ConstGauge::new(i64::from(is_so(node)));
            gauge.encode(family.encode_family(&[("node", node.name.as_str())])?)?;
        }
    }
    Ok(())
}

fn encode_calls(encoder: &mut DescriptorEncoder<'_>, nodes: &[NodeFigures]) -> fmt::Result {
    let help = "Decision calls to a Redis node by outcome: answered, failed, timeout, \
        circuit_open (not sent).";
    let mut family =
        encoder.encode_descriptor("redis_node_calls", help, None, MetricType::Counter)?;
    for node in nodes {
        for (outcome, count) in [
            ("answered", node.calls.answered.count()),
            ("failed", node.calls.failed),
            ("timeout", node.calls.given_up),
            ("circuit_open", node.calls.held_back),
        ] {
            let labels = [("node", node.name.as_str()), ("outcome", outcome)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_times(encoder: &mut DescriptorEncoder<'_>, nodes: &[NodeFigures]) -> fmt::Result {
    let help = "Duration of decision calls to a Redis node.";
    let mut family = encoder.encode_descriptor(
        "redis_call_duration",
        help,
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for node in nodes {
        let times = &node.calls.answered;
        let buckets = times.buckets().map(|(bound, count)| {
            let bound = bound.map_or(f64::INFINITY, |it| it.as_secs_f64());
            (bound, count)
        });
        let buckets: Vec<(f64, u64)> = buckets.collect();
        let labels = [("node", node.name.as_str())];
        let mut family = family.encode_family(&labels)?;
        let sum = times.sum().as_secs_f64();
        family.encode_histogram::<NoLabelSet>(sum, times.count(), &buckets, None)?;
    }
    Ok(())
}

fn encode_versions(encoder: &mut DescriptorEncoder<'_>, nodes: &[NodeFigures]) -> fmt::Result {
    let help = "Version and role of a Redis node, from INFO.";
    let mut family =
        encoder.encode_descriptor("redis_server_info", help, None, MetricType::Gauge)?;
    for node in nodes {
        if let Some(said) = &node.said {
            let labels = [
                ("node", node.name.as_str()),
                ("version", said.figures.version.as_str()),
                ("role", said.figures.role.as_str()),
            ];
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_figures(encoder: &mut DescriptorEncoder<'_>, nodes: &[NodeFigures]) -> fmt::Result {
    let help = "Time since the last INFO of a Redis node; absent if INFO is not available.";
    let unit = Some(&Unit::Seconds);
    let mut family = encoder.encode_descriptor("redis_info_age", help, unit, MetricType::Gauge)?;
    for node in nodes {
        if let Some(said) = &node.said {
            let age = ConstGauge::new(said.age.as_secs_f64());
            age.encode(family.encode_family(&[("node", node.name.as_str())])?)?;
        }
    }
    for (name, help, unit, read) in &GAUGES {
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (node, value) in each(nodes, *read) {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&[("node", node)])?)?;
        }
    }
    for (name, help, read) in &COUNTERS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (node, value) in each(nodes, *read) {
            let counter = ConstCounter::new(value);
            counter.encode(family.encode_family(&[("node", node)])?)?;
        }
    }
    Ok(())
}

/// Returns the value of each node that reported it.
fn each(
    nodes: &[NodeFigures],
    read: fn(&ServerFigures) -> Option<u64>,
) -> impl Iterator<Item = (&str, u64)> {
    nodes.iter().filter_map(move |node| {
        let value = read(&node.said.as_ref()?.figures)?;
        Some((node.name.as_str(), value))
    })
}
