//! A histogram of durations that costs two additions.

use prometheus_client::encoding::NoLabelSet;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds, from a decision in memory to a store that hardly responds. A
/// last bucket takes the rest.
const BOUNDS_US: [u64; 16] = [
    1, 2, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000,
    10_000_000,
];

/// A histogram of durations. The crate's own histogram takes a lock for each observation.
#[derive(Debug, Default)]
pub struct Durations {
    /// The count of each bucket, not cumulative; the last bucket is for durations above all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    /// Returns true if nothing was observed yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.load(Relaxed) == 0)
    }

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let nth = BOUNDS_US
            .iter()
            .take_while(|bound| nanos > **bound * 1_000)
            .count();
        // `nth` is at most the number of bounds, which is the index of the last bucket.
        if let Some(bucket) = self.buckets.get(nth) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_ns.fetch_add(nanos, Relaxed);
    }
}

impl EncodeMetric for Durations {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a sum of seconds for people and graphs"
    )]
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS_US.iter().map(|bound| *bound as f64 / 1e6);
        let bounds = bounds.chain([f64::INFINITY]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        // Sum the buckets as just read, so that the last bucket and the count never differ.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.sum_ns.load(Relaxed) as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

/// A metric with another owner as well.
#[derive(Debug)]
pub(super) struct SharedMetric<M>(pub(super) Arc<M>);

impl<M: EncodeMetric> EncodeMetric for SharedMetric<M> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }
}
