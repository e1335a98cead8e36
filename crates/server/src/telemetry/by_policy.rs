//! Counters for each policy of a configuration, laid out when it takes effect.

use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_policy::Policy;

/// Counters for policies, by name. Replaced whole by a reload; policies that stay keep theirs.
#[derive(Debug)]
pub(super) struct ByPolicy<C> {
    policies: ArcSwap<PolicyCounterSet<C>>,
    /// Which policies are counted at all.
    counts: fn(&Policy) -> bool,
}

/// In the order written; then the policies that only the configuration before had, as with other
/// [decisions](super::decisions::DecisionCounters).
pub(crate) type PolicyCounterSet<C> = Vec<PolicyCounter<C>>;

#[derive(Debug)]
pub(crate) struct PolicyCounter<C> {
    pub(super) name: Box<str>,
    is_current: bool,
    pub(super) counts: Arc<C>,
}

impl<C: Default> ByPolicy<C> {
    /// Counters for those of `policies` that `counts` wants.
    pub(super) fn new(policies: &[Policy], counts: fn(&Policy) -> bool) -> Self {
        Self {
            policies: ArcSwap::from_pointee(laid_out(policies, counts, &[])),
            counts,
        }
    }

    /// Lays them out for `policies`, which are about to take effect, and tells how they were.
    pub(super) fn lay_out(&self, policies: &[Policy]) -> Arc<PolicyCounterSet<C>> {
        let before = self.all();
        let layout = laid_out(policies, self.counts, &before);
        self.policies.store(Arc::new(layout));
        before
    }

    /// Puts a layout back, because nothing came of those policies.
    pub(super) fn put_back(&self, layout: Arc<PolicyCounterSet<C>>) {
        self.policies.store(layout);
    }

    /// All of them, as they are now.
    pub(super) fn all(&self) -> Arc<PolicyCounterSet<C>> {
        self.policies.load_full()
    }

    /// Counts something of the policy of this name, if that is counted.
    pub(super) fn with(&self, policy: &str, count: impl FnOnce(&C)) {
        let policies = self.policies.load();
        if let Some(policy) = policies.iter().find(|it| *it.name == *policy) {
            count(&policy.counts);
        }
    }
}

/// Adds one to the counter of `word`, where `counters` are in the order of `words`.
pub(super) fn add(words: &[&str], counters: &[AtomicU64], word: &str) {
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
