//! Outcomes of packets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Packets to statsd, by outcome.
#[derive(Clone, Debug, Default)]
pub struct StatsdMetrics(Family<[(&'static str, &'static str); 1], Counter>);

impl StatsdMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "statsd_packets",
            "Packets to statsd by outcome: sent; failed (counts are sent later); dropped (a line \
             longer than a packet)",
            self.0.clone(),
        );
    }

    /// Creates all outcomes at zero, so that a rate over the first increase is right.
    pub(super) fn begin(&self) {
        for outcome in ["sent", "failed", "dropped"] {
            drop(self.0.get_or_create(&[("outcome", outcome)]));
        }
    }

    pub(super) fn sent(&self) {
        self.0.get_or_create(&[("outcome", "sent")]).inc();
    }

    pub(super) fn failed(&self) {
        self.0.get_or_create(&[("outcome", "failed")]).inc();
    }

    pub(super) fn dropped(&self) {
        self.0.get_or_create(&[("outcome", "dropped")]).inc();
    }
}
