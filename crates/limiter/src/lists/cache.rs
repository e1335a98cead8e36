//! The guards' lists cached by a thread, so that evaluating them needs no shared pointer.

use super::GuardLists;
use std::sync::Arc;
use tidegate_policy::guard::GuardMembers;

/// Lists by the indexes of guards, each with its version number.
#[derive(Debug, Default)]
pub(crate) struct CachedLists(Vec<(u64, Arc<GuardMembers>)>);

impl CachedLists {
    /// Returns the list of the guard of this index.
    #[inline]
    pub(crate) fn list(&self, guard: usize) -> Option<&GuardMembers> {
        self.0.get(guard).map(|(_, list)| &**list)
    }

    /// Drops all lists: they may be large, and outdated.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl GuardLists {
    /// Replaces the cached lists that are outdated with the current ones.
    #[inline]
    pub(crate) fn follow(&self, cache: &mut CachedLists) {
        let CachedLists(lists) = cache;
        lists.truncate(self.lists.len());
        for (nth, slot) in self.lists.iter().enumerate() {
            match lists.get_mut(nth) {
                Some((number, _)) if *number == slot.number() => {}
                Some(other) => *other = slot.numbered(),
                None => lists.push(slot.numbered()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::list::{GuardList, ListRead};
    use tidegate_config::Config;
    use tidegate_policy::limit::AddressRules;
    use tidegate_policy::{Guard, Guards};

    fn guards(lists: &[&str]) -> Guards {
        let guards = lists.iter().enumerate().map(|(nth, members)| {
            format!("{{ name: g{nth}, deny: attr:project, list: [{members}] }}")
        });
        let guards: Vec<_> = guards.collect();
        let limits = "[{ name: all, rate: 1/s }]";
        let yaml = format!(
            "guards: [{}]\npolicies: [{{ name: api, limits: {limits} }}]",
            guards.join(", ")
        );
        Config::from_yaml(&yaml).unwrap().guards
    }

    fn known(lists: &[&str]) -> GuardLists {
        GuardLists::of(&guards(lists), AddressRules::default(), &[])
    }

    fn has(cache: &CachedLists, guard: usize, member: &str) -> bool {
        cache.list(guard).is_some_and(|list| list.contains(member))
    }

    fn replace(slot: &GuardList, guard: &Guard, member: &str) {
        let mut list = slot.building();
        list.push(member);
        slot.note(Ok(ListRead::List(list.finish(), None)), guard);
    }

    #[test]
    fn cached_lists_are_replaced_by_the_current_ones_of_each_limiter() {
        let (one, other) = (known(&["a", "b"]), known(&["c"]));
        let mut cache = CachedLists::default();
        one.follow(&mut cache);
        assert!(has(&cache, 0, "a") && has(&cache, 1, "b"));

        // Lists of another limiter are neither used nor kept.
        other.follow(&mut cache);
        assert!(has(&cache, 0, "c") && !has(&cache, 0, "a"));
        assert!(cache.list(1).is_none());
        one.follow(&mut cache);
        assert!(has(&cache, 0, "a") && has(&cache, 1, "b"));

        let guards = guards(&["a", "b"]);
        replace(&one.slots()[1], guards.get(1).unwrap(), "new");
        one.follow(&mut cache);
        assert!(has(&cache, 0, "a") && has(&cache, 1, "new"));
        assert!(!has(&cache, 1, "b"));
    }

    #[test]
    fn a_replaced_list_is_freed_by_the_next_reader() {
        let known = known(&["a"]);
        let guards = guards(&["a"]);
        let (slot, guard) = (&known.slots()[0], guards.get(0).unwrap());
        let mut cache = CachedLists::default();
        known.follow(&mut cache);
        let seen = Arc::downgrade(&slot.numbered().1);

        replace(slot, guard, "b");
        known.follow(&mut cache);
        assert!(seen.upgrade().is_some(), "freed by a decision");
        slot.note(Ok(ListRead::Same), guard);
        assert!(seen.upgrade().is_none());
    }
}
