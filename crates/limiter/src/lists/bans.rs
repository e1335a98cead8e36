//! Bans that end automatically.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use std::fmt::Display;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::shared_state::SharedSets;
use tidegate_policy::guard::{GuardEffect, GuardMembers, ListOrigin};
use tidegate_policy::{Guard, KeyPart};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

/// The time origin of lists, which have no clock.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The shortest wait to report: at the end of a ban, a client is unbanned with the next refresh.
const SOON: Duration = Duration::from_secs(1);

/// Converts an instant to the form in lists: milliseconds from the origin, rounded up.
fn at(instant: Instant) -> u64 {
    let since = instant.saturating_duration_since(*BEGINNING).as_micros();
    u64::try_from(since.div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Returns the time until `end`.
fn left(end: u64) -> Duration {
    let end = Duration::from_millis(end);
    end.saturating_sub(BEGINNING.elapsed()).max(SOON)
}

/// Returns the time for which `list` still contains this address, if it leaves automatically.
pub(super) fn left_of(list: &GuardMembers, address: std::net::IpAddr) -> Option<Duration> {
    list.end_of(address).map(left)
}

/// Returns the set in the store's Redis that holds bans with an end, if `guard` uses one.
pub(crate) fn set_of_bans(guard: &Guard) -> Option<&str> {
    match &guard.origin {
        ListOrigin::Redis { set, at: None }
            if guard.effect == GuardEffect::Refuse && guard.subject == KeyPart::Ip =>
        {
            Some(set)
        }
        ListOrigin::List(_) | ListOrigin::File(_) | ListOrigin::Redis { .. } => None,
    }
}

/// Removes bans that have ended, regardless of the instance that made them.
#[derive(Debug, Default)]
pub(super) struct BanExpiry {
    lifted: AtomicU64,
    /// Problems that have been logged, by set: a few times as many as there are guards.
    in_trouble: Mutex<HashSet<(String, ListProblem), RandomState>>,
}

/// The operation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ListProblem {
    Ending,
    Listing,
    Forgetting,
}

impl BanExpiry {
    /// Returns the number of bans removed.
    pub(super) fn lifted(&self) -> u64 {
        self.lifted.load(Relaxed)
    }

    /// Removes the bans in `set` that have ended, and returns the ends of the others, within `time`. Call it
    /// before reading the set, which then contains no ended ban.
    ///
    /// Neither operation prevents the other, nor the read of the set. All errors are logged.
    pub(super) async fn lift(&self, sets: &dyn SharedSets, set: &str, time: Duration) -> BanEnds {
        let begun = Instant::now();
        // First, and not by the list of all ends: that may be too long to read in time, and ended bans are
        // found without it. Half of the time is left for it.
        let expired = timeout(time / 2, sets.expire(set)).await;
        self.note(set, ListProblem::Ending, expired);
        let ends = sets.ends(
            set,
            GuardMembers::MOST,
            time.saturating_sub(begun.elapsed()),
        );
        match ends.await {
            Ok(ends) => {
                self.clear_problem(set, ListProblem::Listing);
                let now = Instant::now();
                let ends = ends.into_iter();
                BanEnds(ends.map(|(it, left)| (it, at(now + left))).collect())
            }
            Err(error) => {
                self.trouble(set, ListProblem::Listing, &error);
                BanEnds::default()
            }
        }
    }

    /// Removes the ends of bans that were lifted by hand, within `time`. The set has no such members, and one
    /// that is added by hand again must stay.
    pub(super) async fn forget(&self, sets: &dyn SharedSets, set: &str, time: Duration) {
        let expired = timeout(time, sets.expire_and_tidy(set)).await;
        self.note(set, ListProblem::Forgetting, expired);
    }

    fn note<E: Display, L: Display>(
        &self,
        set: &str,
        what: ListProblem,
        expired: Result<Result<Vec<Vec<u8>>, E>, L>,
    ) {
        match expired {
            Ok(Ok(lifted)) => {
                self.report_lifted(lifted);
                self.clear_problem(set, what);
            }
            Ok(Err(error)) => self.trouble(set, what, &error),
            Err(late) => self.trouble(set, what, &late),
        }
    }

    fn report_lifted(&self, lifted: Vec<Vec<u8>>) {
        let count = u64::try_from(lifted.len()).unwrap_or(u64::MAX);
        self.lifted.fetch_add(count, Relaxed);
        for address in lifted {
            info!(event = "ban_ended", address = %String::from_utf8_lossy(&address), "ban ended");
        }
    }

    fn trouble(&self, set: &str, what: ListProblem, error: &dyn Display) {
        if self.in_trouble.lock().insert((set.to_owned(), what)) {
            what.log_failure(set, error);
        }
    }

    fn clear_problem(&self, set: &str, what: ListProblem) {
        let mut in_trouble = self.in_trouble.lock();
        if !in_trouble.is_empty() && in_trouble.remove(&(set.to_owned(), what)) {
            what.log_recovery(set);
        }
    }
}

impl ListProblem {
    fn log_failure(self, set: &str, error: &dyn Display) {
        match self {
            Self::Ending => warn!(
                event = "ban_expiry_failed",
                set,
                %error,
                "cannot end expired bans; they stay until this works again"
            ),
            Self::Listing => warn!(
                event = "ban_times_failed",
                set,
                %error,
                "cannot read when bans end; refusals have no Retry-After"
            ),
            Self::Forgetting => warn!(
                event = "ban_cleanup_failed",
                set,
                %error,
                "cannot delete the end times of lifted bans; a new ban may end early"
            ),
        }
    }

    fn log_recovery(self, set: &str) {
        match self {
            Self::Ending => info!(
                event = "ban_expiry_recovered",
                set, "ending bans works again"
            ),
            Self::Listing => info!(
                event = "ban_times_recovered",
                set, "reading when bans end works again"
            ),
            Self::Forgetting => info!(
                event = "ban_cleanup_recovered",
                set, "deleting the end times of lifted bans works again"
            ),
        }
    }
}

/// The ends of bans, by member.
#[derive(Debug, Default)]
pub(super) struct BanEnds(HashMap<Vec<u8>, u64, RandomState>);

impl BanEnds {
    /// Returns the time when this member leaves, if it does.
    pub(super) fn of(&self, member: &[u8]) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(member).copied()
    }

    /// Returns true if any end belongs to no member of `members`, which may contain duplicates.
    pub(super) fn has_other_members(&self, members: &[Vec<u8>]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let known: HashSet<&[u8], RandomState> = members
            .iter()
            .map(Vec::as_slice)
            .filter(|member| self.0.contains_key(*member))
            .collect();
        known.len() < self.0.len()
    }
}
