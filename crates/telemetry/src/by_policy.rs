//! Counters for each policy of a configuration, created when the configuration takes effect.

use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_policy::Policy;

/// Counters for policies, by name. A reload replaces the whole set; policies that remain keep their counters.
#[derive(Debug)]
pub(super) struct ByPolicy<C> {
    policies: ArcSwap<PolicyCounterSet<C>>,
    /// Selects the policies that are counted.
    counts: fn(&Policy) -> bool,
}

/// Counters in configuration order, then those of policies that only the previous configuration had, as with
/// other [decisions](super::decisions::DecisionCounters).
pub(crate) type PolicyCounterSet<C> = Vec<PolicyCounter<C>>;

/// The counters of one policy.
#[derive(Debug)]
pub struct PolicyCounter<C> {
    pub(super) name: Box<str>,
    is_current: bool,
    pub(super) counts: Arc<C>,
}

impl<C: Default> ByPolicy<C> {
    /// Creates counters for those of `policies` that `counts` selects.
    pub(super) fn new(policies: &[Policy], counts: fn(&Policy) -> bool) -> Self {
        Self {
            policies: ArcSwap::from_pointee(laid_out(policies, counts, &[])),
            counts,
        }
    }

    /// Creates the counters for `policies`, which are about to take effect, and returns the previous layout.
    pub(super) fn lay_out(&self, policies: &[Policy]) -> Arc<PolicyCounterSet<C>> {
        let before = self.all();
        let layout = laid_out(policies, self.counts, &before);
        self.policies.store(Arc::new(layout));
        before
    }

    /// Restores a layout because its successor's policies did not take effect.
    pub(super) fn put_back(&self, layout: Arc<PolicyCounterSet<C>>) {
        self.policies.store(layout);
    }

    /// Returns all current counters.
    pub(super) fn all(&self) -> Arc<PolicyCounterSet<C>> {
        self.policies.load_full()
    }

    /// Calls `count` with the counters of the policy of this name, if that policy is counted.
    pub(super) fn with(&self, policy: &str, count: impl FnOnce(&C)) {
        let policies = self.policies.load();
        if let Some(policy) = policies.iter().find(|it| *it.name == *policy) {
            count(&policy.counts);
        }
    }
}

/// Adds one to the counter of `word`. `counters` are in the order of `words`.
pub fn add(words: &[&str], counters: &[AtomicU64], word: &str) {
    let counters = words.iter().zip(counters);
    for (_, counter) in counters.filter(|(other, _)| **other == word) {
        counter.fetch_add(1, Relaxed);
    }
}

fn laid_out<C: Default>(
    policies: &[Policy],
    counts: fn(&Policy) -> bool,
    before: &[PolicyCounter<C>],
) -> PolicyCounterSet<C> {
    let counted = || policies.iter().filter(|policy| counts(policy));
    let current = counted().map(|policy| {
        let mut before = before.iter();
        let known = before.find(|it| *it.name == *policy.name);
        PolicyCounter {
            name: policy.name.as_str().into(),
            is_current: true,
            counts: known.map_or_else(Arc::default, |it| Arc::clone(&it.counts)),
        }
    });
    let is_gone =
        |it: &&PolicyCounter<C>| it.is_current && !counted().any(|policy| *policy.name == *it.name);
    let gone = before.iter().filter(is_gone).map(|it| PolicyCounter {
        name: it.name.clone(),
        is_current: false,
        counts: Arc::clone(&it.counts),
    });
    current.chain(gone).collect()
}
