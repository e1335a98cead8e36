//! Outcomes of counting addresses, read at scrape time.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt::{self, Debug};
use tidegate::{Limiter, Store};

#[derive(Debug)]
pub(super) struct CountingMetrics<S> {
    limiter: Limiter<S>,
}

impl<S> CountingMetrics<S> {
    pub(super) fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }
}

impl<S: Store + Debug + 'static> Collector for CountingMetrics<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Omit the series if addresses are not counted: they would be noise.
        let Some(status) = self.limiter.counting() else {
            return Ok(());
        };
        for (name, help, count) in [
            (
                "address_requests",
                "Requests counted by address in Redis.",
                status.sent,
            ),
            (
                "address_counts_unconfirmed",
                "Requests whose Redis count is unconfirmed.",
                status.doubtful,
            ),
            (
                "address_count_failures",
                "Failed writes of address counts.",
                status.failures,
            ),
            (
                "address_periods_closed",
                "Count periods closed by this instance.",
                status.closed,
            ),
            (
                "address_bans",
                "Addresses banned by this instance.",
                status.banned,
            ),
            (
                "address_shadow_bans",
                "Addresses that this instance would have banned without shadow mode.",
                status.would_ban,
            ),
            (
                "address_bans_ended",
                "Bans ended by this instance.",
                status.lifted,
            ),
        ] {
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(encoder)?;
        }
        Ok(())
    }
}
