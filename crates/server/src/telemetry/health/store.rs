//! The status of the Redis that holds the buckets.

use crate::telemetry::redis::{NodeFigures, Nodes};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tidegate::StoreHealth;

/// Returns the status of `nodes`, whose figures are `all`, and whose overall status is `status`.
pub(super) fn of(
    nodes: &Nodes,
    all: &[NodeFigures],
    status: &str,
    health: Option<&StoreHealth>,
) -> Value {
    let answered = nodes.answered();
    let latency = |percent| answered.percentile(percent).map(millis);
    json!({
        "kind": "redis",
        "status": status,
        "mode": nodes.mode(),
        "calls": answered.count(),
        // Upper bounds from the buckets of a histogram, over all calls since the start.
        "latency_ms_at_most": { "p50": latency(50), "p95": latency(95), "p99": latency(99) },
        "errors": health.map(errors),
        "nodes": all.iter().map(of_node).collect::<Vec<Value>>(),
    })
}

/// Returns the number of store errors by kind, without zeros.
fn errors(health: &StoreHealth) -> Value {
    let each = health.errors.iter().filter(|(_, count)| *count > 0);
    let each = each.map(|(kind, count)| (kind.as_str().to_owned(), json!(count)));
    Value::Object(each.collect())
}

fn of_node(node: &NodeFigures) -> Value {
    let calls = &node.calls;
    let word = if calls.is_connected { "UP" } else { "DOWN" };
    let known = [
        ("address", json!(node.name)),
        ("status", json!(word)),
        ("trusted", json!(calls.is_trusted)),
        ("failed", json!(calls.failed.saturating_add(calls.given_up))),
    ];
    let said = node.said.iter().flat_map(|said| {
        let figures = &said.figures;
        [
            ("latency_ms", json!(millis(said.took))),
            ("version", json!(figures.version)),
            ("role", json!(figures.role)),
            ("memory_used_bytes", json!(figures.memory_used)),
            ("memory_max_bytes", json!(figures.memory_max)),
            ("keys", json!(figures.keys)),
            ("clients", json!(figures.clients)),
            ("replicas", json!(figures.replicas)),
            (
                "operations_per_second",
                json!(figures.operations_per_second),
            ),
        ]
    });
    let fields = known.into_iter().chain(said);
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// Returns milliseconds, rounded to hundredths.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}
