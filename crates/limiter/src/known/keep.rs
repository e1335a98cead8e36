//! Reads lists again, for as long as there is a limiter.

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

/// The longest that a reload waits for lists that it brings.
const AHEAD_MAX: Duration = Duration::from_secs(5);

impl<S: Store> Limiter<S> {
    /// Reads the lists of guards that are in files and in Redis, and reads them again whenever their
    /// `refresh` has passed, for as long as there is a limiter; a reload is followed. Somebody has to
    /// drive it, once for all clones: a task of its own, most often. `tidegate serve` does so by itself.
    ///
    /// Requests never wait for it: they are decided by the last list that could be read. The first failure
    /// is logged. A file that cannot be read is tried again after two seconds, or `refresh` if that is
    /// shorter; a key that is no set, after `refresh`. If Redis cannot be reached, it is tried again after a
    /// second, then twice as long each time up to half a minute, for three minutes in all; then after
    /// `refresh`. See [`lists`](Self::lists).
    ///
    /// Who is banned for a time is let go with that, whoever has banned them: before the set of a guard is
    /// read that keeps addresses out and lies in the store's Redis.
    ///
    /// It needs a runtime of `tokio` with its timers.
    pub fn keep_lists(&self) -> impl Future<Output = ()> + Send + use<S> {
        fresh::keep(self.downgrade(), self.reloads(), ListRefresh)
    }

    /// Reads all lists that have never been read, each within the time that its guard has. What cannot
    /// be read lists nobody. [`LimiterBuilder::start`](crate::LimiterBuilder::start) has done this already.
    pub async fn load_lists(&self) {
        let rules = self.present();
        let (sources, state) = (self.sources(), self.shared_state());
        let unread = changing(&rules).filter(|(_, slot)| !slot.was_read());
        join_all(unread.map(|(guard, slot)| sources.read(state, guard, slot))).await;
    }

    /// Reads the lists that `config` names and what is there does not, or has only from before their guard
    /// was turned off, each within the time that its guard
    /// has and all within five seconds, so that a [reload](Self::reload) with it begins with them as a start would. Without this,
    /// nobody is listed there until [`keep_lists`](Self::keep_lists) has read them, a moment later.
    ///
    /// Nothing changes until then. What cannot be read lists nobody, or whom it listed last.
    pub async fn read_ahead(&self, config: &Config) {
        let rules = self.present();
        let address = self.address_rules_of(config);
        let known = GuardLists::of(&config.guards, address, rules.known.slots());
        let (sources, state) = (self.sources(), self.shared_state());
        let all = config.guards.iter().zip(known.slots());
        // One that is there and could not be read so far is tried again by whoever keeps it: no reload
        // waits for it once more.
        let is_new = |slot| !rules.known.slots().iter().any(|it| Arc::ptr_eq(it, slot));
        let is_file = |guard: &Guard| matches!(guard.origin, ListOrigin::File(_));
        let unread = all.filter(|(guard, slot)| {
            is_read(guard) && is_new(*slot) && (is_file(guard) || slot.is_due(guard.refresh))
        });
        let read = unread.map(|(guard, slot)| sources.read(state, guard, slot));
        // What has not come by then is read later, as without this.
        timeout(AHEAD_MAX, join_all(read)).await.ok();
        // A file that could not be read is kept as well: a reload would block on it once more.
        let tried = config.guards.iter().zip(known.slots());
        let tried =
            tried.filter(|(guard, slot)| slot.was_read() || (guard.enabled && is_file(guard)));
        let tried = tried.map(|(_, slot)| Arc::clone(slot));
        self.sources().keep_ahead(tried.collect());
    }

    /// How it stands with the list of each guard, in the order of the configuration.
    pub fn lists(&self) -> Vec<ListStatus> {
        let rules = self.present();
        let slots = rules.known.slots().iter();
        slots.map(|slot| slot.status()).collect()
    }
}

/// The guards that are asked and whose lists may say something else later.
fn changing(rules: &Rules) -> impl Iterator<Item = (&Guard, &Arc<GuardList>)> {
    let guards = rules.guards.iter().zip(rules.known.slots());
    guards.filter(|(guard, _)| is_read(guard))
}

/// Whether the list of `guard` is read, and read again.
fn is_read(guard: &Guard) -> bool {
    guard.enabled && guard.origin.changes()
}

/// The lists of guards, as [`fresh`] keeps them.
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
