//! Reads lists again, for as long as the limiter exists.

use super::GuardLists;
use super::slot::{GuardList, ListStatus};
use crate::fresh::{self, Refresh};
use crate::limiter::Limiter;
use crate::rules::Rules;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::Store;
use tidegate_policy::guard::ListOrigin;
use tidegate_policy::{Config, Guard};
use tokio::time::{Instant, timeout};

/// The longest time that a reload waits for its new lists.
const AHEAD_MAX: Duration = Duration::from_secs(5);

impl<S: Store> Limiter<S> {
    /// Reads the lists of guards that are in files and in Redis, and reads them again after every `refresh`,
    /// for as long as the limiter exists. Follows reloads. The caller must drive the future once for all
    /// clones, usually as a separate task. `tidegate serve` does so automatically.
    ///
    /// Requests never wait for it: they are decided by the last list that could be read. The first failure is
    /// logged. A file that cannot be read is retried after two seconds, or `refresh` if that is shorter; a
    /// key that is not a set, after `refresh`. If Redis cannot be reached, the read is retried after a
    /// second, then after twice as long each time, up to 30 seconds, for three minutes in all; then after
    /// `refresh`. See [`lists`](Self::lists).
    ///
    /// It also removes bans that have ended, regardless of the instance that made them. That happens before
    /// each read of a set in the store's Redis by which a guard refuses addresses.
    ///
    /// Requires a `tokio` runtime with timers.
    pub fn keep_lists(&self) -> impl Future<Output = ()> + Send + use<S> {
        fresh::keep(self.downgrade(), self.reloads(), ListRefresh)
    }

    /// Reads all lists that have never been read, each within the timeout of its guard. A list that cannot be
    /// read is empty. [`LimiterBuilder::start`](crate::LimiterBuilder::start) has already called this.
    pub async fn load_lists(&self) {
        let rules = self.present();
        let (sources, state) = (self.sources(), self.shared_state());
        let unread = changing(&rules).filter(|(_, slot)| !slot.was_read());
        join_all(unread.map(|(guard, slot)| sources.read(state, guard, slot))).await;
    }

    /// Reads the lists that `config` adds, and those of guards that it turns on again, each within the
    /// timeout of its guard and all within five seconds. A [reload](Self::reload) with `config` then starts
    /// with them. Otherwise they are empty until [`keep_lists`](Self::keep_lists) has read them, a moment
    /// later.
    ///
    /// Nothing changes until that reload. A list that cannot be read is empty, or keeps its last entries.
    pub async fn read_ahead(&self, config: &Config) {
        let rules = self.present();
        let address = self.address_rules_of(config);
        let known = GuardLists::of(&config.guards, address, rules.known.slots());
        let (sources, state) = (self.sources(), self.shared_state());
        let all = config.guards.iter().zip(known.slots());
        // An existing list that could not be read so far is retried by `keep_lists`: no reload waits for it
        // once more.
        let is_new = |slot| !rules.known.slots().iter().any(|it| Arc::ptr_eq(it, slot));
        let is_file = |guard: &Guard| matches!(guard.origin, ListOrigin::File(_));
        let unread = all.filter(|(guard, slot)| {
            is_read(guard) && is_new(*slot) && (is_file(guard) || slot.is_due(guard.refresh))
        });
        let read = unread.map(|(guard, slot)| sources.read(state, guard, slot));
        // Lists that are not read by then are read later, as without this call.
        timeout(AHEAD_MAX, join_all(read)).await.ok();
        // A file that could not be read is kept as well: a reload would block on it once more.
        let tried = config.guards.iter().zip(known.slots());
        let tried =
            tried.filter(|(guard, slot)| slot.was_read() || (guard.enabled && is_file(guard)));
        let tried = tried.map(|(_, slot)| Arc::clone(slot));
        self.sources().keep_ahead(tried.collect());
    }

    /// Returns the status of the list of each guard, in the order of the configuration.
    pub fn lists(&self) -> Vec<ListStatus> {
        let rules = self.present();
        let slots = rules.known.slots().iter();
        slots.map(|slot| slot.status()).collect()
    }
}

/// Returns the enabled guards whose lists may change, and these lists.
fn changing(rules: &Rules) -> impl Iterator<Item = (&Guard, &Arc<GuardList>)> {
    let guards = rules.guards.iter().zip(rules.known.slots());
    guards.filter(|(guard, _)| is_read(guard))
}

/// Returns true if the list of `guard` is read repeatedly.
fn is_read(guard: &Guard) -> bool {
    guard.enabled && guard.origin.changes()
}

/// The lists of guards, as items of [`fresh`].
struct ListRefresh;

impl<S: Store> Refresh<S> for ListRefresh {
    type Item = (Guard, Arc<GuardList>);

    fn items(&self, limiter: &Limiter<S>) -> Vec<(Self::Item, Instant)> {
        let item = |(guard, slot): (&Guard, &Arc<GuardList>)| {
            ((guard.clone(), Arc::clone(slot)), slot.due(guard.refresh))
        };
        changing(&limiter.present()).map(item).collect()
    }

    async fn read(&self, limiter: &Limiter<S>, (guard, slot): &Self::Item) -> Instant {
        let state = limiter.shared_state();
        limiter.sources().read(state, guard, slot).await;
        slot.due(guard.refresh)
    }
}
