//! The snapshot of a store in memory, read at scrape time.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;
use tidegate::SnapshotStatus;

/// Writes the metrics of a snapshot.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, status: &SnapshotStatus) -> fmt::Result {
    let seconds = [
        (
            "snapshot_age",
            "Time of charges that a crash would lose now.",
            status.age,
        ),
        (
            "snapshot_write_duration",
            "Duration of the last write of the snapshot.",
            status.took,
        ),
    ];
    for (name, help, time) in seconds {
        let gauge = ConstGauge::new(time.as_secs_f64());
        let unit = Some(&Unit::Seconds);
        gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
    }
    let gauge = |count: u64| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
    let buckets = gauge(status.buckets);
    buckets.encode(encoder.encode_descriptor(
        "snapshot_buckets",
        "Buckets in the snapshot.",
        None,
        buckets.metric_type(),
    )?)?;
    let bytes = gauge(status.bytes);
    bytes.encode(encoder.encode_descriptor(
        "snapshot",
        "Size of the snapshot.",
        Some(&Unit::Bytes),
        bytes.metric_type(),
    )?)?;
    let help = "Writes of the snapshot by outcome.";
    let mut writes =
        encoder.encode_descriptor("snapshot_writes", help, None, MetricType::Counter)?;
    for (outcome, count) in [
        ("written", status.written),
        ("unchanged", status.unchanged),
        ("failed", status.failed),
    ] {
        let labels = [("outcome", outcome)];
        ConstCounter::new(count).encode(writes.encode_family(&labels)?)?;
    }
    Ok(())
}
