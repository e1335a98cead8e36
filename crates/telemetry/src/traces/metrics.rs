//! Outcomes of spans.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Outcomes of spans.
#[derive(Clone, Debug, Default)]
pub struct TraceMetrics(Family<[(&'static str, &'static str); 1], Counter>);

const SENT: &str = "sent";
const DROPPED: &str = "dropped";
const FAILED: &str = "failed";
const REJECTED: &str = "rejected";

impl TraceMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "spans",
            "Trace spans by outcome: sent, rejected by the collector, failed after retries, \
             dropped because the queue was full",
            self.0.clone(),
        );
    }

    /// Creates all outcomes at zero, so that a rate over the first increase is right.
    pub(super) fn begin(&self) {
        for outcome in [SENT, DROPPED, FAILED, REJECTED] {
            self.add(outcome, 0);
        }
    }

    pub(super) fn sent(&self, spans: u64) {
        self.add(SENT, spans);
    }

    pub(super) fn rejected(&self, spans: u64) {
        self.add(REJECTED, spans);
    }

    pub(super) fn failed(&self, spans: u64) {
        self.add(FAILED, spans);
    }

    pub(super) fn dropped(&self, spans: usize) {
        self.add(DROPPED, u64::try_from(spans).unwrap_or(u64::MAX));
    }

    fn add(&self, outcome: &'static str, count: u64) {
        let labels = [("outcome", outcome)];
        self.0.get_or_create(&labels).inc_by(count);
    }

    #[cfg(test)]
    pub(super) fn counted(&self) -> [u64; 4] {
        [SENT, REJECTED, FAILED, DROPPED]
            .map(|outcome| self.0.get_or_create(&[("outcome", outcome)]).get())
    }
}
