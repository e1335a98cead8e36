//! One list: the last that could be read, and how it stands with reading it.

use crate::fresh::{FILE_RETRY, RefreshError, RefreshHealth, Retry};
use crate::replaced::RetiredValue;
use arc_swap::{ArcSwap, Guard as Borrowed};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;
use tidegate_policy::Guard;
use tidegate_policy::guard::{GuardMembers, ListOrigin};
use tidegate_policy::limit::AddressRules;
use tokio::time::Instant;
use tracing::{info, warn};

/// How it stands with the list of a guard.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListStatus {
    /// The guard's name.
    pub guard: String,
    /// How many are listed.
    pub members: usize,
    /// How many of what was read cannot be listed: no addresses, where addresses are looked up.
    pub skipped: usize,
    /// How long ago it was read last; `None` if it never could be. What is written in the
    /// configuration does not age.
    pub age: Option<Duration>,
    /// For how long it could not be read, if the last time it could not.
    pub failing_for: Option<Duration>,
    /// Why, the last time.
    pub error: Option<String>,
    /// How often it could not be read, since the start.
    pub failures: u64,
    /// Whether its guard is asked. The list of one that is off is kept as it was read last, and not read.
    pub enabled: bool,
}

/// A number that no list of this process has had.
fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    NUMBERS.fetch_add(1, Relaxed)
}

/// What came of reading a list.
#[derive(Debug)]
pub(super) enum ListRead {
    /// A list, and a fingerprint of what it was made of, if there is one.
    List(GuardMembers, Option<[u8; 32]>),
    /// The same as before.
    Same,
}

/// The list of a guard.
#[derive(Debug)]
pub(crate) struct GuardList {
    /// By which it is known again after a reload.
    guard: Guard,
    rules: AddressRules,
    list: ArcSwap<GuardMembers>,
    /// By which the list is known: each of this process has another.
    number: AtomicU64,
    replaced: Mutex<RetiredValue<GuardMembers>>,
    health: Mutex<RefreshHealth>,
    /// Of what the list was made of.
    fingerprint: Mutex<Option<[u8; 32]>>,
}

impl GuardList {
    /// The list of `guard`: what is written in the configuration, else nobody yet.
    pub(super) fn new(guard: &Guard, rules: AddressRules) -> Self {
        let list = match &guard.origin {
            ListOrigin::List(members) => GuardMembers::new(&guard.subject, rules, members.iter()),
            ListOrigin::File(_) | ListOrigin::Redis { .. } => GuardMembers::empty(&guard.subject),
        };
        Self {
            guard: guard.clone(),
            rules,
            list: ArcSwap::from_pointee(list),
            number: AtomicU64::new(next_number()),
            replaced: Mutex::default(),
            health: Mutex::default(),
            fingerprint: Mutex::default(),
        }
    }

    /// Whether `guard` means this list, and has it read as this one has: always, or not at all.
    pub(super) fn is_of(&self, guard: &Guard, rules: AddressRules) -> bool {
        self.guard.shares_list(guard)
            && self.guard.enabled == guard.enabled
            && self.rules.ipv6_prefix == rules.ipv6_prefix
    }

    /// Whether what this list has was read from where `guard` would read it.
    pub(super) fn is_like(&self, guard: &Guard, rules: AddressRules) -> bool {
        self.guard.subject == guard.subject
            && self.guard.origin.is_same_source(&guard.origin)
            && self.rules.ipv6_prefix == rules.ipv6_prefix
            && self.was_read()
    }

    /// The list of `guard`, which is like `before`: what that has read last counts until it is read
    /// again.
    pub(super) fn after(before: &Self, guard: &Guard) -> Self {
        let known = before.health.lock();
        // What is counted is counted by name.
        let is_same = before.guard.name == guard.name;
        Self {
            guard: guard.clone(),
            rules: before.rules,
            list: ArcSwap::new(before.list.load_full()),
            number: AtomicU64::new(next_number()),
            replaced: Mutex::default(),
            health: Mutex::new(RefreshHealth::read_before(
                known.read_at,
                if is_same { known.failures } else { 0 },
            )),
            fingerprint: Mutex::new(before.fingerprint()),
        }
    }

    #[inline]
    pub(super) fn list(&self) -> Borrowed<Arc<GuardMembers>> {
        self.list.load()
    }

    /// The number of the list as it is now.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number.load(Acquire)
    }

    /// The list and a number by which it is known: there is another number as soon as there is another
    /// list.
    pub(super) fn numbered(&self) -> (u64, Arc<GuardMembers>) {
        // In this order: a list that is newer than its number is looked up once more, and no harm is done.
        let number = self.number();
        (number, self.list.load_full())
    }

    /// A list like this one, to be put together.
    pub(super) fn building(&self) -> tidegate_policy::guard::Building {
        tidegate_policy::guard::Building::new(&self.guard.subject, self.rules)
    }

    /// What the list was made of.
    pub(super) fn fingerprint(&self) -> Option<[u8; 32]> {
        *self.fingerprint.lock()
    }

    /// Whether it has ever been read.
    pub(super) fn was_read(&self) -> bool {
        self.health.lock().read_at.is_some()
    }

    /// When it is to be read again, every `refresh` while all is well.
    pub(super) fn due(&self, refresh: Duration) -> Instant {
        self.health.lock().due(refresh)
    }

    /// Whether it is time to read it.
    pub(super) fn is_due(&self, refresh: Duration) -> bool {
        self.due(refresh) <= Instant::now()
    }

    /// Takes note of what came of reading it for `guard`. Whoever asks meanwhile finds the list before
    /// or the one after, whole.
    pub(super) fn note(&self, read: Result<ListRead, RefreshError>, guard: &Guard) {
        match read {
            Ok(ListRead::List(list, fingerprint)) => {
                let (members, skipped) = (list.len(), list.skipped());
                let before = self.list.swap(Arc::new(list));
                // Behind it: who sees the number finds what it belongs to, or later.
                self.number.store(next_number(), Release);
                if skipped > 0 && skipped != before.skipped() {
                    warn!(
                        guard = guard.name,
                        members, skipped, "some of a list cannot be listed"
                    );
                }
                self.replaced.lock().add(before);
                *self.fingerprint.lock() = fingerprint;
                self.read(guard);
            }
            Ok(ListRead::Same) => {
                self.replaced.lock().free();
                self.read(guard);
            }
            Err(why) => {
                // However long it fails: what was replaced before is not kept for as long.
                self.replaced.lock().free();
                self.failed(guard, why);
            }
        }
    }

    fn read(&self, guard: &Guard) {
        if self.health.lock().succeeded() {
            info!(guard = guard.name, "the list of a guard can be read again");
        }
    }

    fn failed(&self, guard: &Guard, why: RefreshError) {
        let refresh = guard.refresh;
        let retry = match (&why, &guard.origin) {
            (RefreshError::Outage(_), _) => Retry::Backoff {
                most: Duration::MAX,
                refresh,
            },
            (RefreshError::Invalid(_), ListOrigin::File(_)) => {
                Retry::After(refresh.min(FILE_RETRY))
            }
            (RefreshError::Invalid(_), ListOrigin::List(_) | ListOrigin::Redis { .. }) => {
                Retry::After(refresh)
            }
        };
        let mut health = self.health.lock();
        let consequence = if health.read_at.is_some() {
            "keeping the last good one"
        } else {
            "nobody is listed until it can be read"
        };
        if let Some(error) = health.failed(why, retry) {
            warn!(
                guard = guard.name,
                error, "the list of a guard cannot be read; {consequence}"
            );
        }
    }

    /// How it stands.
    pub(crate) fn status(&self) -> ListStatus {
        let list = self.list.load();
        let health = self.health.lock();
        let now = Instant::now();
        ListStatus {
            guard: self.guard.name.clone(),
            members: list.len(),
            skipped: list.skipped(),
            age: if self.guard.origin.changes() {
                health.read_at.map(|at| now.duration_since(at))
            } else {
                Some(Duration::ZERO)
            },
            failing_for: health.failing_since.map(|at| now.duration_since(at)),
            error: health.error.clone(),
            failures: health.failures,
            enabled: self.guard.enabled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::Config;

    fn slot() -> (Guard, GuardList) {
        let text = "store: { url: 'redis://127.0.0.1' }
guards: [{ name: out, refuse: user, refresh: 1h, redis: { set: s } }]
policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        let guards = Config::from_yaml(text).unwrap().guards;
        let guard = guards.get(0).unwrap().clone();
        let slot = GuardList::new(&guard, AddressRules::default());
        (guard, slot)
    }

    /// Fails with `why` as often as it is read within `time`, and returns the pauses.
    async fn pauses(why: &RefreshError, time: Duration) -> Vec<Duration> {
        let (guard, slot) = slot();
        let begun = Instant::now();
        let mut pauses = Vec::new();
        while begun.elapsed() < time {
            slot.note(Err(why.clone()), &guard);
            let due = slot.due(guard.refresh);
            pauses.push(due - Instant::now());
            tokio::time::sleep_until(due).await;
        }
        pauses
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_followed_up_quickly_for_three_minutes_and_then_at_its_own_pace() {
        let pauses = pauses(
            &RefreshError::Outage("away".to_owned()),
            Duration::from_hours(3),
        )
        .await;
        let hour = Duration::from_hours(1);
        let quick: Vec<&Duration> = pauses.iter().filter(|it| **it < hour).collect();
        assert!(
            quick.iter().all(|it| **it <= Duration::from_secs(30)),
            "{quick:?}"
        );
        assert!((8..=20).contains(&quick.len()), "{quick:?}");
        assert!(pauses.ends_with(&[hour, hour]), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_no_set_was_taken_for_an_outage() {
        let invalid = RefreshError::Invalid("it does not hold a set".to_owned());
        let pauses = pauses(&invalid, Duration::from_hours(2)).await;
        assert_eq!(pauses, [Duration::from_hours(1); 2]);
    }
}
