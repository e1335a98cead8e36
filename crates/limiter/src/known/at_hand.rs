//! The lists that a thread has at hand, so that asking them is no more than looking at them.

use super::GuardLists;
use std::sync::Arc;
use tidegate_policy::guard::GuardMembers;

/// Lists by the numbers of guards, each with the number that it was known by.
#[derive(Debug, Default)]
pub(crate) struct AtHand(Vec<(u64, Arc<GuardMembers>)>);

impl AtHand {
    /// The list of the guard of this number.
    #[inline]
    pub(crate) fn list(&self, guard: usize) -> Option<&GuardMembers> {
        self.0.get(guard).map(|(_, list)| &**list)
    }

    /// Lets go of all: they may be large, and outdated.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl GuardLists {
    /// Puts the lists as they are now in place of those at hand that are others.
    #[inline]
    pub(crate) fn follow(&self, at_hand: &mut AtHand) {
        let AtHand(lists) = at_hand;
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
    use crate::known::slot::{GuardList, ListRead};
    use tidegate_policy::limit::AddressRules;
    use tidegate_policy::{Config, Guard, Guards};

    fn guards(lists: &[&str]) -> Guards {
        let guards = lists.iter().enumerate().map(|(nth, members)| {
            format!("{{ name: g{nth}, refuse: attr:project, list: [{members}] }}")
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

    fn has(at_hand: &AtHand, guard: usize, member: &str) -> bool {
        at_hand
            .list(guard)
            .is_some_and(|list| list.contains(member))
    }

    fn replace(slot: &GuardList, guard: &Guard, member: &str) {
        let mut list = slot.building();
        list.push(member);
        slot.note(Ok(ListRead::List(list.finish(), None)), guard);
    }

    #[test]
    fn what_is_at_hand_is_followed_by_what_lists_say_now_whoever_it_was_of() {
        let (one, other) = (known(&["a", "b"]), known(&["c"]));
        let mut at_hand = AtHand::default();
        one.follow(&mut at_hand);
        assert!(has(&at_hand, 0, "a") && has(&at_hand, 1, "b"));

        // What is another's is never taken for one's own, nor kept.
        other.follow(&mut at_hand);
        assert!(has(&at_hand, 0, "c") && !has(&at_hand, 0, "a"));
        assert!(at_hand.list(1).is_none());
        one.follow(&mut at_hand);
        assert!(has(&at_hand, 0, "a") && has(&at_hand, 1, "b"));

        let guards = guards(&["a", "b"]);
        replace(&one.slots()[1], guards.get(1).unwrap(), "new");
        one.follow(&mut at_hand);
        assert!(has(&at_hand, 0, "a") && has(&at_hand, 1, "new"));
        assert!(!has(&at_hand, 1, "b"));
    }

    #[test]
    fn a_list_that_was_replaced_is_freed_by_whoever_reads_the_next_one() {
        let known = known(&["a"]);
        let guards = guards(&["a"]);
        let (slot, guard) = (&known.slots()[0], guards.get(0).unwrap());
        let mut at_hand = AtHand::default();
        known.follow(&mut at_hand);
        let seen = Arc::downgrade(&slot.numbered().1);

        replace(slot, guard, "b");
        known.follow(&mut at_hand);
        assert!(seen.upgrade().is_some(), "a decision has freed it");
        slot.note(Ok(ListRead::Same), guard);
        assert!(seen.upgrade().is_none());
    }
}
