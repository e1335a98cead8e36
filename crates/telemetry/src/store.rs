//! Health and size of the store, computed at scrape time.

use super::snapshot;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt::{self, Debug};
use std::time::Duration;
use tidegate::redis::{Connection, RedisStats};
use tidegate::{AnyStore, Clock, Limiter, MemoryStats, OverflowedLimit, Store, StoreHealth};

/// A store that can be served. It may have its own figures.
pub trait StoreStats: Store + Debug + 'static {
    /// Returns the size and capacity of the store, if it is in memory.
    fn memory(&self) -> Option<MemoryStats>;

    /// Returns a limit that has shared overflow buckets within the last `time`, if the store is in memory.
    fn overflowed(&self, _time: Duration) -> Option<OverflowedLimit> {
        None
    }

    /// Returns statistics of calls to Redis, if that is the store.
    fn redis(&self) -> Option<&RedisStats> {
        None
    }

    /// Returns the connection to Redis, if that is the store.
    fn connection(&self) -> Option<&Connection> {
        None
    }
}

impl<C: Clock + Debug + 'static> StoreStats for AnyStore<C> {
    fn memory(&self) -> Option<MemoryStats> {
        match self {
            Self::Memory(store) => Some(store.stats()),
            _ => None,
        }
    }

    fn overflowed(&self, time: Duration) -> Option<OverflowedLimit> {
        match self {
            Self::Memory(store) => store.overflowed(time),
            _ => None,
        }
    }

    fn redis(&self) -> Option<&RedisStats> {
        match self {
            Self::Redis(store) => Some(store.stats()),
            _ => None,
        }
    }

    fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Redis(store) => Some(store.connection()),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct StoreMetrics<S> {
    limiter: Limiter<S>,
}

impl<S> StoreMetrics<S> {
    pub(super) fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }
}

impl<S: StoreStats> Collector for StoreMetrics<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(health) = self.limiter.store_health() {
            encode_health(&mut encoder, &health)?;
        }
        if let Some(stats) = self.limiter.store().redis() {
            encode_redis(&mut encoder, stats)?;
        }
        let unknown = ConstCounter::new(self.limiter.unknown_clients());
        unknown.encode(encoder.encode_descriptor(
            "requests_without_address",
            "Requests without a client address for which a limit needed one.",
            None,
            unknown.metric_type(),
        )?)?;
        if let Some(status) = self.limiter.snapshot() {
            snapshot::encode(&mut encoder, &status)?;
        }
        match self.limiter.store().memory() {
            Some(stats) => encode_memory(&mut encoder, &stats),
            None => Ok(()),
        }
    }
}

fn encode_redis(encoder: &mut DescriptorEncoder<'_>, stats: &RedisStats) -> fmt::Result {
    let counters = [
        (
            "redis_decisions",
            "Checks that Redis decided.",
            &stats.decisions,
        ),
        (
            "redis_calls",
            "Script calls sent to Redis; many checks may travel in one.",
            &stats.calls,
        ),
        (
            "deny_cache_hits",
            "Checks refused by the deny cache, without a call to Redis.",
            &stats.refused_here,
        ),
        (
            "redis_refunds",
            "Charges refunded on a Cluster because another slot refused.",
            &stats.refunds,
        ),
        (
            "redis_refunds_lost",
            "Refunds whose result is unknown because Redis did not respond.",
            &stats.refunds_lost,
        ),
    ];
    for (name, help, counter) in counters {
        let counter = ConstCounter::new(counter.get());
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    Ok(())
}

fn encode_health(encoder: &mut DescriptorEncoder<'_>, health: &StoreHealth) -> fmt::Result {
    let is_up = ConstGauge::new(i64::from(health.is_up));
    is_up.encode(encoder.encode_descriptor(
        "store_up",
        "1 if the store is available, else 0.",
        None,
        is_up.metric_type(),
    )?)?;
    let help = "Failed store calls by kind.";
    let mut encoder = encoder.encode_descriptor("store_errors", help, None, MetricType::Counter)?;
    for (kind, count) in &health.errors {
        let labels = [("kind", kind.as_str())];
        ConstCounter::new(*count).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_memory(encoder: &mut DescriptorEncoder<'_>, stats: &MemoryStats) -> fmt::Result {
    let gauge = |count: usize| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
    let buckets = gauge(stats.buckets);
    buckets.encode(encoder.encode_descriptor(
        "store_buckets",
        "Buckets that are not full.",
        None,
        buckets.metric_type(),
    )?)?;
    let bytes = gauge(stats.record_bytes);
    bytes.encode(encoder.encode_descriptor(
        "store_record",
        "Memory of buckets outside the table.",
        Some(&Unit::Bytes),
        bytes.metric_type(),
    )?)?;
    let slots = gauge(stats.slots);
    slots.encode(encoder.encode_descriptor(
        "store_slots",
        "Slots of the bucket table.",
        None,
        slots.metric_type(),
    )?)?;
    let help = "Checks decided by an overflow bucket, by kind of overflow and outcome.";
    let mut overflow =
        encoder.encode_descriptor("store_overflow", help, None, MetricType::Counter)?;
    for (outcome, count) in [
        ("allowed", stats.shared.allowed),
        ("refused", stats.shared.refused),
    ] {
        let labels = [("kind", "shared"), ("outcome", outcome)];
        ConstCounter::new(count).encode(overflow.encode_family(&labels)?)?;
    }
    let overflowed = ConstCounter::new(stats.shared.total());
    overflowed.encode(encoder.encode_descriptor(
        "store_overflowed",
        "Checks decided by an overflow bucket: the sum of all kinds of overflow.",
        None,
        overflowed.metric_type(),
    )?)?;
    let coarsened = ConstCounter::new(stats.coarsened);
    coarsened.encode(encoder.encode_descriptor(
        "store_logs_coarsened",
        "Sliding logs coarsened because of missing memory.",
        None,
        coarsened.metric_type(),
    )?)
}
