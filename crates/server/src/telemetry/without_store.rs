//! Decisions taken without the store, counted by policy and by what was done instead.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{DecidedBy, Decision};
use tidegate_policy::Policy;

/// What is done without a store: decided in this process, allowed, refused, answered by an error.
const OUTCOMES: [&str; 4] = ["local", "allow", "deny", "error"];

/// Counters for every policy of a configuration, in the order written.
#[derive(Debug)]
pub(crate) struct WithoutStore {
    policies: Vec<(Box<str>, Counts)>,
}

/// In the order of [`OUTCOMES`].
#[derive(Debug, Default)]
struct Counts([AtomicU64; OUTCOMES.len()]);

impl WithoutStore {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let named = |policy: &Policy| (policy.name.as_str().into(), Counts::default());
        Self {
            policies: policies.iter().map(named).collect(),
        }
    }

    /// Counts a decision, if it is one of these.
    pub(crate) fn count(&self, decision: &Decision) {
        let outcome = match (decision.decided_by(), decision.is_allowed()) {
            (DecidedBy::Store, _) => return,
            (DecidedBy::Local, _) => "local",
            (_, true) => "allow",
            (_, false) => "deny",
        };
        self.add(Some(decision.policy()), outcome);
    }

    /// Counts a question to a policy, the first one where it names none, that had no decision.
    #[cold]
    pub(crate) fn count_error(&self, policy: Option<&str>) {
        self.add(policy, "error");
    }

    #[cold]
    fn add(&self, policy: Option<&str>, outcome: &str) {
        let is_meant = |named: &&(Box<str>, Counts)| policy.is_none_or(|name| *named.0 == *name);
        if let Some((_, counts)) = self.policies.iter().find(is_meant) {
            let counters = OUTCOMES.iter().zip(&counts.0);
            for (_, counter) in counters.filter(|(other, _)| **other == outcome) {
                counter.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Collector for WithoutStore {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Decisions taken without the store, because it did not answer, by policy and by \
                    what was done instead.";
        let mut encoder = encoder.encode_descriptor(
            "decisions_without_store",
            help,
            None,
            MetricType::Counter,
        )?;
        for (policy, counts) in &self.policies {
            for (outcome, counter) in OUTCOMES.iter().zip(&counts.0) {
                let labels = [("policy", &**policy), ("outcome", outcome)];
                let count = ConstCounter::new(counter.load(Relaxed));
                count.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
