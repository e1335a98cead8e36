//! The lists of guards, which other programs maintain and which change without a reload.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the lists by guard; a reload keeps those that it does not change |
//! | `list` | one list: its last good version, and the status of its reads |
//! | `cache` | the lists cached by a thread |
//! | `sources` | the sources of lists: files, and sets in Redis |
//! | `bans` | bans that end automatically |
//!
//! [`upkeep`](crate::upkeep) reads the lists again, for as long as the limiter exists.

mod bans;
mod cache;
mod list;
mod sources;

pub(crate) use bans::set_of_bans;
pub(crate) use cache::CachedLists;
pub(crate) use list::GuardList;
pub use list::ListStatus;
pub(crate) use sources::ListSources;

use arc_swap::Guard as Borrowed;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::Guards;
use tidegate_policy::guard::{GuardMembers, ListOrigin};
use tidegate_policy::limit::AddressRules;

/// The lists of the guards of one configuration.
#[derive(Debug, Default)]
pub(crate) struct GuardLists {
    /// Indexed like the guards.
    lists: Vec<Arc<GuardList>>,
}

impl GuardLists {
    /// Returns the lists of `guards`. A list of `earlier` stays in use if a guard still means the same list.
    /// If only its name changed, or it was turned off or on, its new list starts with the entries read last.
    /// Reads nothing.
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
                slot.note(sources::file(path, slot, guard.timeout), guard);
            }
        }
    }

    /// Returns the current list of the guard of this index.
    #[inline]
    pub(crate) fn list(&self, guard: usize) -> Option<Borrowed<Arc<GuardMembers>>> {
        Some(self.lists.get(guard)?.list())
    }

    /// Returns the remaining time for which the guard of this index bans this address, if the ban has an end.
    /// Call it only for a banned address.
    #[cold]
    pub(crate) fn left(&self, guard: usize, address: IpAddr) -> Option<Duration> {
        let list = self.list(guard)?;
        bans::left_of(&list, address)
    }

    /// Returns all lists, indexed like the guards.
    pub(crate) fn slots(&self) -> &[Arc<GuardList>] {
        &self.lists
    }
}
