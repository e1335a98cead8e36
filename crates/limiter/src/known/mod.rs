//! What a limiter knows of others' making: the lists of guards, which change without a reload.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the lists, by guard; a reload goes on with those that it does not change |
//! | `slot` | one list: the last that could be read, and how it stands with reading it |
//! | `at_hand` | the lists that a thread has at hand |
//! | `source` | from where they are read: files, and sets in Redis |
//! | `ends` | when those leave a list by themselves who do, and that they do |
//! | `keep` | reads them again, for as long as there is a limiter ([`fresh`](crate::fresh)) |

mod at_hand;
mod ends;
mod keep;
mod slot;
mod source;

pub(crate) use at_hand::AtHand;
pub(crate) use ends::set_of_bans;
pub(crate) use slot::GuardList;
pub use slot::ListStatus;
pub(crate) use source::ListSources;

use arc_swap::Guard as Borrowed;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::Guards;
use tidegate_policy::guard::{GuardMembers, ListOrigin};
use tidegate_policy::limit::AddressRules;

/// What is known by the names of one configuration.
#[derive(Debug, Default)]
pub(crate) struct GuardLists {
    /// By the numbers of guards.
    lists: Vec<Arc<GuardList>>,
}

impl GuardLists {
    /// The lists of `guards`. Those of `earlier` go on where a guard still means the same list; where only
    /// its name is another, or it was turned off or on, it begins with what was read last. Reads nothing.
    pub(crate) fn of(guards: &Guards, rules: AddressRules, earlier: &[Arc<GuardList>]) -> Self {
        let slot = |guard| {
            let same = earlier.iter().find(|slot| slot.is_of(guard, rules));
            if let Some(same) = same {
                return Arc::clone(same);
            }
            let like = earlier.iter().find(|slot| slot.is_like(guard, rules));
            Arc::new(match like {
                Some(like) => GuardList::after(like, guard),
                None => GuardList::new(guard, rules),
            })
        };
        Self {
            lists: guards.iter().map(slot).collect(),
        }
    }

    /// Reads the files of enabled guards whose lists are not among `earlier`, each within its guard's
    /// timeout. Blocks this thread.
    pub(crate) fn read_files(&self, guards: &Guards, earlier: &[Arc<GuardList>]) {
        for (guard, slot) in guards.iter().zip(&self.lists) {
            let is_new = !earlier.iter().any(|it| Arc::ptr_eq(it, slot));
            if let (ListOrigin::File(path), true) = (&guard.origin, guard.enabled && is_new) {
                slot.note(source::file(path, slot, guard.timeout), guard);
            }
        }
    }

    /// The list of the guard of this number, as it is now.
    #[inline]
    pub(crate) fn list(&self, guard: usize) -> Option<Borrowed<Arc<GuardMembers>>> {
        Some(self.lists.get(guard)?.list())
    }

    /// How long the guard of this number still keeps this address out, if that has an end. Only asked
    /// once it does.
    #[cold]
    pub(crate) fn left(&self, guard: usize, address: IpAddr) -> Option<Duration> {
        let list = self.list(guard)?;
        ends::left_of(&list, address)
    }

    /// All lists, by the numbers of guards.
    pub(crate) fn slots(&self) -> &[Arc<GuardList>] {
        &self.lists
    }
}
