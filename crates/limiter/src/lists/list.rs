//! One list: its last good version, and the status of its reads.

use crate::refresh::{FILE_RETRY, RefreshError, RefreshHealth, Retry};
use crate::retired_value::RetiredValue;
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

/// The status of the list of a guard: from [`Limiter::lists`](crate::Limiter::lists).
///
/// A list that cannot be read keeps its last good version: alert on [`failing_for`](Self::failing_for), which
/// grows until a read succeeds, rather than on a single failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListStatus {
    /// The guard's name.
    pub guard: String,
    /// The number of members.
    pub members: usize,
    /// The number of entries that are invalid: not an address, in a list of addresses.
    pub skipped: usize,
    /// The time since the list was last read; `None` if it never could be. Zero for a list written in the
    /// configuration.
    pub age: Option<Duration>,
    /// The time for which reads have failed, if the last one did.
    pub failing_for: Option<Duration>,
    /// The reason of the last failure.
    pub error: Option<String>,
    /// The number of failed reads since the start.
    pub failures: u64,
    /// True if its guard is enabled. The list of a guard that is off keeps its last entries, and is not read.
    pub enabled: bool,
}

/// Returns a version number that no other list of this process has.
fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    NUMBERS.fetch_add(1, Relaxed)
}

/// The result of reading a list.
#[derive(Debug)]
pub(super) enum ListRead {
    /// A list, and a fingerprint of its source text, if there is one.
    List(GuardMembers, Option<[u8; 32]>),
    /// The list is unchanged.
    Same,
}

/// The list of a guard.
#[derive(Debug)]
pub(crate) struct GuardList {
    /// Identifies the list after a reload.
    guard: Guard,
    rules: AddressRules,
    list: ArcSwap<GuardMembers>,
    /// The version number of the current list, unique in this process.
    number: AtomicU64,
    replaced: Mutex<RetiredValue<GuardMembers>>,
    health: Mutex<RefreshHealth>,
    /// The fingerprint of the list's source text.
    fingerprint: Mutex<Option<[u8; 32]>>,
}

impl GuardList {
    /// Creates the list of `guard`: with the members in the configuration, otherwise empty.
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

    /// Returns true if `guard` means this list, and is enabled exactly if this list's guard is.
    pub(super) fn is_of(&self, guard: &Guard, rules: AddressRules) -> bool {
        self.guard.shares_list(guard)
            && self.guard.enabled == guard.enabled
            && self.rules.ipv6_prefix == rules.ipv6_prefix
    }

    /// Returns true if this list was read from the same source that `guard` has.
    pub(super) fn is_like(&self, guard: &Guard, rules: AddressRules) -> bool {
        self.guard.subject == guard.subject
            && self.guard.origin.is_same_source(&guard.origin)
            && self.rules.ipv6_prefix == rules.ipv6_prefix
            && self.was_read()
    }

    /// Creates the list of `guard`, which has the same source as `before`, with the entries that `before`
    /// read last.
    pub(super) fn after(before: &Self, guard: &Guard) -> Self {
        let known = before.health.lock();
        // Failures are counted by the guard's name.
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

    /// Returns the version number of the current list.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number.load(Acquire)
    }

    /// Returns the current list and its version number, which changes with every new list.
    pub(super) fn numbered(&self) -> (u64, Arc<GuardMembers>) {
        // In this order: a list that is newer than its number is only loaded once more.
        let number = self.number();
        (number, self.list.load_full())
    }

    /// Returns a builder for a new version of this list.
    pub(super) fn building(&self) -> tidegate_policy::guard::GuardMembersBuilder {
        tidegate_policy::guard::GuardMembersBuilder::new(&self.guard.subject, self.rules)
    }

    /// Returns the fingerprint of the list's source text.
    pub(super) fn fingerprint(&self) -> Option<[u8; 32]> {
        *self.fingerprint.lock()
    }

    /// Returns true if it has ever been read.
    pub(crate) fn was_read(&self) -> bool {
        self.health.lock().read_at.is_some()
    }

    /// Returns the time of the next read, every `refresh` while reads succeed.
    pub(crate) fn due(&self, refresh: Duration) -> Instant {
        self.health.lock().due(refresh)
    }

    /// Returns true if a read is due.
    pub(crate) fn is_due(&self, refresh: Duration) -> bool {
        self.due(refresh) <= Instant::now()
    }

    /// Records the result of reading the list for `guard`. Concurrent requests see the previous list or the
    /// new one, each complete.
    pub(super) fn note(&self, read: Result<ListRead, RefreshError>, guard: &Guard) {
        match read {
            Ok(ListRead::List(list, fingerprint)) => {
                let (members, skipped) = (list.len(), list.skipped());
                let before = self.list.swap(Arc::new(list));
                // After the swap: a reader that sees this number finds its list, or a later one.
                self.number.store(next_number(), Release);
                if skipped > 0 && skipped != before.skipped() {
                    warn!(
                        event = "guard_list_partial",
                        guard = guard.name,
                        members,
                        skipped,
                        "guard list has invalid members; skipping them"
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
                // Even if reads fail for a long time: replaced lists must not be kept for as long.
                self.replaced.lock().free();
                self.failed(guard, why);
            }
        }
    }

    fn read(&self, guard: &Guard) {
        if self.health.lock().succeeded() {
            info!(
                event = "guard_list_recovered",
                guard = guard.name,
                "guard list refresh works again"
            );
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
            "using the last good list"
        } else {
            "the list is empty until a read succeeds"
        };
        if let Some(error) = health.failed(why, retry) {
            warn!(
                event = "guard_list_failed",
                guard = guard.name,
                error,
                "guard list refresh failed; {consequence}"
            );
        }
    }

    /// Returns the status of the list.
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
    use tidegate_config::Config;

    fn slot() -> (Guard, GuardList) {
        let text = "store: { url: 'redis://127.0.0.1' }
guards: [{ name: out, deny: user, refresh: 1h, redis: { set: s } }]
policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        let guards = Config::from_yaml(text).unwrap().guards;
        let guard = guards.get(0).unwrap().clone();
        let slot = GuardList::new(&guard, AddressRules::default());
        (guard, slot)
    }

    /// Fails with `why` on every read within `time`, and returns the pauses.
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
            Duration::from_secs(10_800),
        )
        .await;
        let hour = Duration::from_secs(3_600);
        let quick: Vec<&Duration> = pauses.iter().filter(|it| **it < hour).collect();
        assert!(
            quick.iter().all(|it| **it <= Duration::from_secs(30)),
            "{quick:?}"
        );
        assert!((8..=20).contains(&quick.len()), "{quick:?}");
        assert!(pauses.ends_with(&[hour, hour]), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_of_another_type_was_taken_for_an_outage() {
        let invalid = RefreshError::Invalid("it does not hold a set".to_owned());
        let pauses = pauses(&invalid, Duration::from_secs(7_200)).await;
        assert_eq!(pauses, [Duration::from_secs(3_600); 2]);
    }
}
