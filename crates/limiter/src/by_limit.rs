//! Something that each of some limits has one of, under any policy that contains the limit. A reload keeps it as
//! long as the limit keeps its name.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_policy::{Limit, Policy};

/// One `T` for each limit that has one, by the indexes of policy and limit.
#[derive(Debug)]
pub(crate) struct ByLimit<T> {
    items: Vec<Vec<Option<Arc<T>>>>,
}

/// Items by the names of policy and limit; for a joined policy, by the name of its origin.
type ItemsByName<T> = BTreeMap<(String, String), Arc<T>>;

impl<T> Default for ByLimit<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: Default> ByLimit<T> {
    /// Returns the items of `policies`, for the limits that `has` selects; reuses those of `earlier` policies with the
    /// same names. A limit has one item in its own policy and in all policies it was joined into, just as it has
    /// one bucket per subject.
    pub(crate) fn of(
        policies: &[Policy],
        earlier: Option<(&[Policy], &Self)>,
        has: impl Fn(&Policy, &Limit) -> bool,
    ) -> Self {
        let known = earlier.map(|(policies, items)| items.by_name(policies));
        let mut known: ItemsByName<T> = known.unwrap_or_default();
        let items = policies.iter().map(|policy| {
            let limits = policy.limits.iter().enumerate();
            let item = |(nth, limit): (usize, &Limit)| {
                has(policy, limit).then(|| {
                    let name = (policy.origin(nth).to_owned(), limit.name.clone());
                    Arc::clone(known.entry(name).or_default())
                })
            };
            limits.map(item).collect()
        });
        Self {
            items: items.collect(),
        }
    }

    /// Returns the items by name; they must be those of `policies`.
    fn by_name(&self, policies: &[Policy]) -> ItemsByName<T> {
        let policies = policies.iter().zip(&self.items);
        let items = policies.flat_map(|(policy, items)| {
            let limits = policy.limits.iter().zip(items).enumerate();
            limits.filter_map(|(nth, (limit, item))| {
                let name = (policy.origin(nth).to_owned(), limit.name.clone());
                Some((name, Arc::clone(item.as_ref()?)))
            })
        });
        items.collect()
    }

    /// Returns each item with the names of its policy and limit, in the order of `policies`, which must be those of
    /// these items. Joined policies have none of their own.
    pub(crate) fn each<'a>(
        &'a self,
        policies: &'a [Policy],
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a T)> {
        let policies = policies.iter().zip(&self.items);
        let written = policies.filter(|(policy, _)| !policy.is_joined());
        written.flat_map(|(policy, items)| {
            let limits = policy.limits.iter().zip(items);
            limits.filter_map(|(limit, item)| {
                Some((policy.name.as_str(), limit.name.as_str(), &**item.as_ref()?))
            })
        })
    }

    pub(crate) fn get(&self, policy: usize, limit: usize) -> Option<&Arc<T>> {
        self.items.get(policy)?.get(limit)?.as_ref()
    }
}
