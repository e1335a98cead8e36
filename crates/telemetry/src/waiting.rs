//! The number of requests that are queued by limits, counted at scrape time.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt::{self, Debug};
use tidegate::{Limiter, Store};

#[derive(Debug)]
pub(super) struct WaitingMetrics<S> {
    limiter: Limiter<S>,
}

impl<S> WaitingMetrics<S> {
    pub(super) fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }
}

impl<S: Store + Debug + 'static> Collector for WaitingMetrics<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let waiting = self.limiter.waiting();
        // Omit the series if no limit queues requests: they would be noise.
        if waiting.is_empty() {
            return Ok(());
        }
        let help = "Requests queued by a limit.";
        let mut encoder =
            encoder.encode_descriptor("waiting_requests", help, None, MetricType::Gauge)?;
        for at in &waiting {
            let labels = [("policy", at.policy.as_str()), ("limit", at.limit.as_str())];
            ConstGauge::new(i64::from(at.count)).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
