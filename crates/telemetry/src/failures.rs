//! Decisions made without the store, counted by policy and by outcome.

use super::by_policy::{self, ByPolicy, add};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{DecidedBy, Decision};
use tidegate_policy::Policy;

/// The outcomes without a store: decided in memory, allowed, refused, failed with an error.
const OUTCOMES: [&str; 4] = ["local", "allow", "deny", "error"];

/// Counters for every policy of a configuration.
#[derive(Debug)]
pub struct WithoutStore {
    policies: ByPolicy<FailureCounters>,
}

pub(crate) type FailureCounterSet = by_policy::PolicyCounterSet<FailureCounters>;

/// Counters in the order of [`OUTCOMES`].
#[derive(Debug, Default)]
pub(crate) struct FailureCounters([AtomicU64; OUTCOMES.len()]);

impl WithoutStore {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        Self {
            policies: ByPolicy::new(policies, |_| true),
        }
    }

    /// Creates the counters for `policies`, which are about to take effect, and returns the previous layout.
    pub(crate) fn lay_out(&self, policies: &[Policy]) -> Arc<FailureCounterSet> {
        self.policies.lay_out(policies)
    }

    /// Restores a layout because its successor's policies did not take effect.
    pub(crate) fn put_back(&self, layout: Arc<FailureCounterSet>) {
        self.policies.put_back(layout);
    }

    /// Counts a decision, if it was made without the store.
    pub fn count(&self, decision: &Decision) {
        let outcome = match (decision.decided_by(), decision.is_allowed()) {
            (DecidedBy::Store, _) => return,
            (DecidedBy::Local, _) => "local",
            (_, true) => "allow",
            (_, false) => "deny",
        };
        self.add(decision.policy(), outcome);
    }

    /// Counts a check request to a policy that got no decision.
    #[cold]
    pub fn count_error(&self, policy: &str) {
        self.add(policy, "error");
    }

    #[cold]
    fn add(&self, policy: &str, outcome: &str) {
        self.policies
            .with(policy, |counts| add(&OUTCOMES, &counts.0, outcome));
    }
}

impl Collector for WithoutStore {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Decisions without the store because it was unavailable, by policy and \
            outcome.";
        let mut encoder = encoder.encode_descriptor(
            "decisions_without_store",
            help,
            None,
            MetricType::Counter,
        )?;
        for policy in &*self.policies.all() {
            for (outcome, counter) in OUTCOMES.iter().zip(&policy.counts.0) {
                let labels = [("policy", &*policy.name), ("outcome", outcome)];
                let count = ConstCounter::new(counter.load(Relaxed));
                count.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
