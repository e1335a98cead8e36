//! Reads lists again, for as long as the limiter exists.

#[cfg(feature = "config")]
use crate::lists::GuardLists;
use crate::lists::{GuardList, ListSources};
use crate::refresh::Refresh;
use crate::rules::Rules;
use crate::state::LimiterState;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use std::sync::Arc;
#[cfg(feature = "config")]
use std::time::Duration;
#[cfg(feature = "config")]
use tidegate_config::Config;
use tidegate_core::{SharedState, Store};
use tidegate_policy::Guard;
#[cfg(feature = "config")]
use tidegate_policy::guard::ListOrigin;
#[cfg(feature = "config")]
use tidegate_policy::limit::AddressRules;
use tokio::time::Instant;
#[cfg(feature = "config")]
use tokio::time::timeout;

/// The longest time that a reload waits for its new lists.
#[cfg(feature = "config")]
const AHEAD_MAX: Duration = Duration::from_secs(5);

/// Reads the lists of a limiter's guards.
#[derive(Clone, Copy)]
pub(crate) struct ListUpdates<'a> {
    pub(crate) rules: &'a ArcSwap<Rules>,
    pub(crate) sources: &'a ListSources,
    pub(crate) state: Option<&'a dyn SharedState>,
}

impl ListUpdates<'_> {
    /// Reads all lists that have never been read, each within the timeout of its guard.
    pub(crate) async fn load(self) {
        let rules = self.rules.load_full();
        let unread = changing(&rules).filter(|(_, slot)| !slot.was_read());
        join_all(unread.map(|(guard, slot)| self.sources.read(self.state, guard, slot))).await;
    }

    /// Reads the lists that `config` adds or turns on again. Addresses are grouped by `address`.
    #[cfg(feature = "config")]
    pub(crate) async fn preload_lists(self, config: &Config, address: AddressRules) {
        let rules = self.rules.load_full();
        let known = GuardLists::of(&config.guards, address, rules.lists.slots());
        let all = config.guards.iter().zip(known.slots());
        // An existing list that could not be read so far is retried by the loop: no reload waits for it once
        // more.
        let is_new = |slot| !rules.lists.slots().iter().any(|it| Arc::ptr_eq(it, slot));
        let is_file = |guard: &Guard| matches!(guard.origin, ListOrigin::File(_));
        let unread = all.filter(|(guard, slot)| {
            is_read(guard) && is_new(*slot) && (is_file(guard) || slot.is_due(guard.refresh))
        });
        let read = unread.map(|(guard, slot)| self.sources.read(self.state, guard, slot));
        // Lists that are not read by then are read later, as without this call.
        timeout(AHEAD_MAX, join_all(read)).await.ok();
        // A file that could not be read is kept as well: a reload would block on it once more.
        let tried = config.guards.iter().zip(known.slots());
        let tried =
            tried.filter(|(guard, slot)| slot.was_read() || (guard.enabled && is_file(guard)));
        let tried = tried.map(|(_, slot)| Arc::clone(slot));
        self.sources.keep_ahead(tried.collect());
    }
}

/// Returns the enabled guards whose lists may change, and these lists.
fn changing(rules: &Rules) -> impl Iterator<Item = (&Guard, &Arc<GuardList>)> {
    let guards = rules.guards.iter().zip(rules.lists.slots());
    guards.filter(|(guard, _)| is_read(guard))
}

/// Returns true if the list of `guard` is read repeatedly.
fn is_read(guard: &Guard) -> bool {
    guard.enabled && guard.origin.changes()
}

/// The lists of guards, as items of [`refresh`](crate::refresh).
pub(crate) struct ListRefresh;

impl<S: Store> Refresh<LimiterState<S>> for ListRefresh {
    type Item = (Guard, Arc<GuardList>);

    fn items(&self, limiter: &LimiterState<S>) -> Vec<(Self::Item, Instant)> {
        let item = |(guard, slot): (&Guard, &Arc<GuardList>)| {
            ((guard.clone(), Arc::clone(slot)), slot.due(guard.refresh))
        };
        changing(&limiter.present()).map(item).collect()
    }

    async fn read(&self, limiter: &LimiterState<S>, (guard, slot): &Self::Item) -> Instant {
        let state = limiter.backend.shared_state();
        limiter.list_sources.read(state, guard, slot).await;
        slot.due(guard.refresh)
    }
}
