//! Decisions, counted by policy, limit, outcome, decider and reason.
//!
//! | module | what it is |
//! |---|---|
//! | `layout` | counters for every name of a configuration |
//! | `by_decider` | one count, by decider |
//! | `by_reason` | one count of refusals, by reason |
//! | `hits` | the hits of one limit, by mode and result |
//! | `pending` | statistics for statsd that are not sent yet |
//! | `timing` | durations of decisions |

mod by_decider;
mod by_reason;
mod hits;
mod layout;
mod pending;
mod timing;

#[cfg(test)]
mod tests;

pub(crate) use layout::DecisionCounters;
pub use pending::StatisticIncrease;
pub use timing::Timing;

use arc_swap::ArcSwap;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;
use std::sync::Arc;
use tidegate::{Decision, Request};
use tidegate_policy::Policy;

/// Counters for every policy and limit of a configuration, created when it takes effect: to count is to find
/// and to add. Only names from the configuration become labels, so the number of series is bounded by the
/// limits of the current and the previous configuration.
#[derive(Debug)]
pub struct DecisionMetrics {
    /// Replaced as a whole by a reload. Two layouts with the same name share its counters, so a decision may
    /// be counted in either of them meanwhile.
    layout: ArcSwap<DecisionCounters>,
}

impl DecisionMetrics {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        Self {
            layout: ArcSwap::from_pointee(DecisionCounters::new(policies, None)),
        }
    }

    /// Creates the counters for `policies`, which are about to take effect, and returns the previous layout.
    /// Counters of names that remain keep their values.
    pub(crate) fn lay_out(&self, policies: &[Policy]) -> Arc<DecisionCounters> {
        let before = self.layout.load_full();
        let layout = DecisionCounters::new(policies, Some(&before));
        self.layout.store(Arc::new(layout));
        before
    }

    /// Restores a layout because its successor's policies did not take effect.
    pub(crate) fn put_back(&self, layout: Arc<DecisionCounters>) {
        self.layout.store(layout);
    }

    /// Returns the statistics of all limits that have grown since they were last sent.
    pub(crate) fn pending(&self) -> Vec<StatisticIncrease> {
        self.layout.load_full().pending()
    }

    /// Counts the decision of a request, the hits of its limits, and its duration if it was timed.
    pub fn count(&self, decision: &Decision, request: &Request<'_>, timing: Timing) {
        let layout = self.layout.load();
        layout.count(decision, request, timing.took(decision));
    }
}

impl Collector for DecisionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Decisions by policy, limit, outcome and reason; shadow_refused counts \
            refusals of limits in shadow mode, in addition to the decision.";
        // A full reference, not a guard: it is held while the page is encoded, and guards are few.
        let layout = self.layout.load_full();
        let mut family = encoder.encode_descriptor("decisions", help, None, MetricType::Counter)?;
        layout.encode(&mut family)?;
        let help = "Hits (cost) of every limit that a request matches: allowed; refused; \
            not_charged (had room, but another limit refused). mode=shadow: not enforced.";
        let mut family =
            encoder.encode_descriptor("limit_hits", help, None, MetricType::Counter)?;
        layout.encode_hits(|hits, of| hits.encode(&mut family, of))?;
        let help = "Allowed hits (cost) that used more than 80 % of the limit; part of limit_hits.";
        let kind = MetricType::Counter;
        let mut family = encoder.encode_descriptor("limit_near_hits", help, None, kind)?;
        layout.encode_hits(|hits, of| hits.encode_near(&mut family, of))?;
        let help = "Duration of decisions, without the time in a queue. The memory store times \
            one of 64 decisions.";
        let (unit, kind) = (Some(&Unit::Seconds), MetricType::Histogram);
        let mut family = encoder.encode_descriptor("decision_duration", help, unit, kind)?;
        layout.encode_durations(&mut family)
    }
}
