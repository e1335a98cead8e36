//! Decisions, counted by policy, limit, outcome and who decided.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{DecidedBy, Decision, Mode};
use tidegate_policy::{Limit, Policy};

/// Counters for every policy and limit of a configuration, laid out once: to count is to find and
/// to add. Only names from the configuration become labels, so there are no more series than it
/// has limits.
#[derive(Debug)]
pub(crate) struct Decisions {
    policies: BTreeMap<Box<str>, PolicyCounts>,
}

#[derive(Debug)]
struct PolicyCounts {
    unlimited: ByDecider,
    limits: BTreeMap<Box<str>, LimitCounts>,
    /// Whether any of its limits is only watched: most policies have none to look for.
    has_shadow: bool,
}

#[derive(Debug)]
struct LimitCounts {
    /// A limit that is only watched decides nothing: it has refusals of its own kind.
    is_shadow: bool,
    allowed: ByDecider,
    refused: ByDecider,
}

/// In the order of [`DECIDERS`].
#[derive(Debug, Default)]
struct ByDecider([AtomicU64; 3]);

const DECIDERS: [DecidedBy; 3] = [DecidedBy::Store, DecidedBy::Local, DecidedBy::Failure];

// === impl Decisions ===

impl Decisions {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let named = |policy: &Policy| (policy.name.as_str().into(), PolicyCounts::new(policy));
        Self {
            policies: policies.iter().map(named).collect(),
        }
    }

    /// Counts a decision.
    pub(crate) fn count(&self, decision: &Decision) {
        let Some(policy) = self.policies.get(decision.policy()) else {
            return;
        };
        let by = decision.decided_by();
        match decision.binding() {
            None => policy.unlimited.add(by),
            Some(binding) => match policy.limits.get(binding.limit()) {
                Some(limit) if decision.is_allowed() => limit.allowed.add(by),
                Some(limit) => limit.refused.add(by),
                None => {}
            },
        }
        if policy.has_shadow {
            policy.count_shadows(decision);
        }
    }
}

impl Collector for Decisions {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Decisions by policy, limit and outcome; shadow_refused counts what a watched \
                    limit would have refused, beside the decision itself.";
        let mut encoder =
            encoder.encode_descriptor("decisions", help, None, MetricType::Counter)?;
        for (policy, counts) in &self.policies {
            counts
                .unlimited
                .encode(&mut encoder, (policy, "", "unlimited"))?;
            for (limit, counts) in &counts.limits {
                counts.encode(&mut encoder, (policy, limit))?;
            }
        }
        Ok(())
    }
}

// === impl PolicyCounts ===

impl PolicyCounts {
    fn new(policy: &Policy) -> Self {
        let named = |limit: &Limit| (limit.name.as_str().into(), LimitCounts::new(limit));
        let limits: BTreeMap<_, _> = policy.limits.iter().map(named).collect();
        Self {
            unlimited: ByDecider::default(),
            has_shadow: limits.values().any(|limit| limit.is_shadow),
            limits,
        }
    }

    #[cold]
    fn count_shadows(&self, decision: &Decision) {
        // A limit of several bands refuses once, and its bands stand together.
        let mut last = None;
        for applied in decision.applied() {
            if applied.is_shadow() && !applied.is_allowed() && last != Some(applied.limit()) {
                last = Some(applied.limit());
                if let Some(limit) = self.limits.get(applied.limit()) {
                    limit.refused.add(decision.decided_by());
                }
            }
        }
    }
}

// === impl LimitCounts ===

impl LimitCounts {
    fn new(limit: &Limit) -> Self {
        Self {
            is_shadow: limit.mode == Mode::Shadow,
            allowed: ByDecider::default(),
            refused: ByDecider::default(),
        }
    }

    fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        (policy, limit): (&str, &str),
    ) -> fmt::Result {
        if self.is_shadow {
            return self
                .refused
                .encode(encoder, (policy, limit, "shadow_refused"));
        }
        self.allowed.encode(encoder, (policy, limit, "allowed"))?;
        self.refused.encode(encoder, (policy, limit, "refused"))
    }
}

// === impl ByDecider ===

impl ByDecider {
    fn add(&self, by: DecidedBy) {
        let counters = DECIDERS.iter().zip(&self.0);
        for (_, counter) in counters.filter(|(decider, _)| **decider == by) {
            counter.fetch_add(1, Relaxed);
        }
    }

    fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        (policy, limit, outcome): (&str, &str, &str),
    ) -> fmt::Result {
        for (by, counter) in DECIDERS.iter().zip(&self.0) {
            let count = counter.load(Relaxed);
            // Series of a store that never failed would be noise; the others start at zero, so
            // that a rate over their first increase is right.
            if count == 0 && *by != DecidedBy::Store {
                continue;
            }
            let labels = [
                ("policy", policy),
                ("limit", limit),
                ("outcome", outcome),
                ("decided_by", by.as_str()),
            ];
            ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
