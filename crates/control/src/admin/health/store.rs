//! The status of the Redis that holds the buckets.

use super::body::{
    LatencyBounds, PeerStatus, RedisNodeInfo, RedisNodeItem, RedisReport, StoreStatus,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::StoreHealth;
use tidegate_telemetry::redis::{NodeFigures, NodeWord, Nodes};

/// Returns the status of `nodes`, whose figures are `all`, and whose overall status is `status`.
pub(super) fn of(
    nodes: &Nodes,
    all: Vec<NodeFigures>,
    status: StoreStatus,
    health: Option<&StoreHealth>,
) -> RedisReport {
    let answered = nodes.answered();
    let latency = |percent| answered.percentile(percent).map(millis);
    RedisReport {
        status,
        topology: nodes.mode(),
        calls: answered.count(),
        latency_ms_at_most: LatencyBounds {
            p50: latency(50),
            p95: latency(95),
            p99: latency(99),
        },
        errors: health.map(errors),
        nodes: all.into_iter().map(of_node).collect(),
    }
}

/// Returns the number of store errors by kind, without zeros.
fn errors(health: &StoreHealth) -> BTreeMap<&'static str, u64> {
    let each = health.errors.iter().filter(|(_, count)| *count > 0);
    each.map(|(kind, count)| (kind.as_str(), *count)).collect()
}

fn of_node(node: NodeFigures) -> RedisNodeItem {
    let calls = &node.calls;
    RedisNodeItem {
        address: node.name,
        status: PeerStatus::of(calls.is_connected),
        circuit_closed: calls.is_trusted,
        failed: calls.failed.saturating_add(calls.given_up),
        info: node.said.map(info),
    }
}

fn info(report: NodeWord) -> RedisNodeInfo {
    let figures = report.figures;
    RedisNodeInfo {
        latency_ms: millis(report.took),
        version: figures.version,
        role: figures.role,
        memory_used_bytes: figures.memory_used,
        memory_max_bytes: figures.memory_max,
        keys: figures.keys,
        clients: figures.clients,
        replicas: figures.replicas,
        operations_per_second: figures.operations_per_second,
    }
}

/// Returns milliseconds, rounded to hundredths.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}
