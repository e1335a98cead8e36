//! The permits that requests in flight hold, counted at scrape time.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt::{self, Debug};
use tidegate::{InFlightStatus, Limiter, Store};

#[derive(Debug)]
pub(super) struct InFlightMetrics<S> {
    limiter: Limiter<S>,
}

/// The name and the help of a gauge, and its value.
type PermitGauge = (&'static str, &'static str, fn(&InFlightStatus) -> u64);

const GAUGES: [PermitGauge; 2] = [
    (
        "permits_held",
        "Permits of requests in flight, by limit.",
        |at| at.held,
    ),
    (
        "permits_held_max",
        "The most permits of requests in flight at once since the start, by limit.",
        |at| at.held_max,
    ),
];

impl<S> InFlightMetrics<S> {
    pub(super) fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }
}

impl<S: Store + Debug + 'static> Collector for InFlightMetrics<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let in_flight = self.limiter.in_flight();
        // Omit the series if no limit counts requests in flight.
        if in_flight.is_empty() {
            return Ok(());
        }
        for (name, help, value) in GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for at in &in_flight {
                let labels = [("policy", at.policy.as_str()), ("limit", at.limit.as_str())];
                let value = i64::try_from(value(at)).unwrap_or(i64::MAX);
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
