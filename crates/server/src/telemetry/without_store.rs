//! Decisions taken without the store, counted by policy and by what was done instead.

use arc_swap::ArcSwap;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{DecidedBy, Decision};
use tidegate_policy::Policy;

/// What is done without a store: decided in this process, allowed, refused, answered by an error.
const OUTCOMES: [&str; 4] = ["local", "allow", "deny", "error"];

/// Counters for every policy of a configuration, laid out when it takes effect.
#[derive(Debug)]
pub(crate) struct WithoutStore {
    /// Replaced whole by a reload; policies that stay keep their counters.
    policies: ArcSwap<Layout>,
}

/// In the order written; then the policies that only the configuration before had, as with other
/// [decisions](super::decisions::Layout).
pub(crate) type Layout = Vec<PolicyCounts>;

#[derive(Debug)]
pub(crate) struct PolicyCounts {
    name: Box<str>,
    is_current: bool,
    counts: Arc<Counts>,
}

/// In the order of [`OUTCOMES`].
#[derive(Debug, Default)]
struct Counts([AtomicU64; OUTCOMES.len()]);

impl WithoutStore {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        Self {
            policies: ArcSwap::from_pointee(laid_out(policies, &[])),
        }
    }

    /// Lays them out for `policies`, which are about to take effect, and tells how they were.
    pub(crate) fn lay_out(&self, policies: &[Policy]) -> Arc<Layout> {
        let before = self.policies.load_full();
        self.policies.store(Arc::new(laid_out(policies, &before)));
        before
    }

    /// Puts a layout back, because nothing came of those policies.
    pub(crate) fn put_back(&self, layout: Arc<Layout>) {
        self.policies.store(layout);
    }

    /// Counts a decision, if it is one of these.
    pub(crate) fn count(&self, decision: &Decision) {
        let outcome = match (decision.decided_by(), decision.is_allowed()) {
            (DecidedBy::Store, _) => return,
            (DecidedBy::Local, _) => "local",
            (_, true) => "allow",
            (_, false) => "deny",
        };
        self.add(decision.policy(), outcome);
    }

    /// Counts a question to a policy that had no decision.
    #[cold]
    pub(crate) fn count_error(&self, policy: &str) {
        self.add(policy, "error");
    }

    #[cold]
    fn add(&self, policy: &str, outcome: &str) {
        let policies = self.policies.load();
        if let Some(policy) = policies.iter().find(|it| *it.name == *policy) {
            let counters = OUTCOMES.iter().zip(&policy.counts.0);
            for (_, counter) in counters.filter(|(other, _)| **other == outcome) {
                counter.fetch_add(1, Relaxed);
            }
        }
    }
}

fn laid_out(policies: &[Policy], before: &[PolicyCounts]) -> Layout {
    let current = policies.iter().map(|policy| {
        let mut before = before.iter();
        let known = before.find(|it| *it.name == *policy.name);
        PolicyCounts {
            name: policy.name.as_str().into(),
            is_current: true,
            counts: known.map_or_else(Arc::default, |it| Arc::clone(&it.counts)),
        }
    });
    let is_gone = |it: &&PolicyCounts| {
        it.is_current && !policies.iter().any(|policy| *policy.name == *it.name)
    };
    let gone = before.iter().filter(is_gone).map(|it| PolicyCounts {
        name: it.name.clone(),
        is_current: false,
        counts: Arc::clone(&it.counts),
    });
    current.chain(gone).collect()
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
        for policy in &*self.policies.load_full() {
            for (outcome, counter) in OUTCOMES.iter().zip(&policy.counts.0) {
                let labels = [("policy", &*policy.name), ("outcome", outcome)];
                let count = ConstCounter::new(counter.load(Relaxed));
                count.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
