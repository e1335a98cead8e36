//! When those leave a list by themselves who do.

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

/// From when lists count: they know no clock.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The least that anybody is told to wait: who has reached the end of a ban is let in with the next
/// refresh.
const SOON: Duration = Duration::from_secs(1);

/// An instant as lists have it: milliseconds from the beginning, rounded up.
fn at(instant: Instant) -> u64 {
    let since = instant.saturating_duration_since(*BEGINNING).as_micros();
    u64::try_from(since.div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// How long it is until then.
fn left(end: u64) -> Duration {
    let end = Duration::from_millis(end);
    end.saturating_sub(BEGINNING.elapsed()).max(SOON)
}

/// How long `list` still has this address, if it leaves by itself.
pub(super) fn left_of(list: &GuardMembers, address: std::net::IpAddr) -> Option<Duration> {
    list.end_of(address).map(left)
}

/// The set in the store's Redis that has bans with an end, if `guard` is kept by one.
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

/// Letting those go whose ban has ended, whoever has banned them.
#[derive(Debug, Default)]
pub(super) struct BanExpiry {
    lifted: AtomicU64,
    /// What has been said aloud not to work, by set: a few times as many as there are guards.
    in_trouble: Mutex<HashSet<(String, ListProblem), RandomState>>,
}

/// What does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ListProblem {
    Ending,
    Listing,
    Forgetting,
}

impl BanExpiry {
    /// How many were let go.
    pub(super) fn lifted(&self) -> u64 {
        self.lifted.load(Relaxed)
    }

    /// Lets those go whose ban in `set` has ended, and tells when the others end, within `time`. Before
    /// the set is read: what is read then has nobody whose ban had ended.
    ///
    /// Neither hinders the other, nor anybody from reading the set; whatever goes wrong is said aloud.
    pub(super) async fn lift(&self, sets: &dyn SharedSets, set: &str, time: Duration) -> Ends {
        let begun = Instant::now();
        // First, and not by the list of all ends: that may be too long to be read in time, and who has
        // ended is found without it. Half of the time is left for it.
        let expired = timeout(time / 2, sets.expire(set)).await;
        self.note(set, ListProblem::Ending, expired);
        let ends = sets.ends(
            set,
            GuardMembers::MOST,
            time.saturating_sub(begun.elapsed()),
        );
        match ends.await {
            Ok(ends) => {
                self.no_trouble(set, ListProblem::Listing);
                let now = Instant::now();
                let ends = ends.into_iter();
                Ends(ends.map(|(it, left)| (it, at(now + left))).collect())
            }
            Err(error) => {
                self.trouble(set, ListProblem::Listing, &error);
                Ends::default()
            }
        }
    }

    /// Forgets the ends of those whom somebody has let go by hand, within `time`: the set has none of
    /// them, and who is added by hand again stays.
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
                self.told(lifted);
                self.no_trouble(set, what);
            }
            Ok(Err(error)) => self.trouble(set, what, &error),
            Err(late) => self.trouble(set, what, &late),
        }
    }

    fn told(&self, lifted: Vec<Vec<u8>>) {
        let count = u64::try_from(lifted.len()).unwrap_or(u64::MAX);
        self.lifted.fetch_add(count, Relaxed);
        for address in lifted {
            info!(address = %String::from_utf8_lossy(&address), "its ban has ended");
        }
    }

    fn trouble(&self, set: &str, what: ListProblem, error: &dyn Display) {
        if self.in_trouble.lock().insert((set.to_owned(), what)) {
            warn!(set, %error, "{}", what.trouble());
        }
    }

    fn no_trouble(&self, set: &str, what: ListProblem) {
        let mut in_trouble = self.in_trouble.lock();
        if !in_trouble.is_empty() && in_trouble.remove(&(set.to_owned(), what)) {
            info!(set, "{}", what.no_trouble());
        }
    }
}

impl ListProblem {
    fn trouble(self) -> &'static str {
        match self {
            Self::Ending => {
                "bans cannot be ended: whoever is in the set is kept out until they can"
            }
            Self::Listing => {
                "the ends of bans cannot be listed: nobody who is kept out is told until when"
            }
            Self::Forgetting => {
                "the ends of bans that were lifted by hand cannot be forgotten: who is added again leaves by them"
            }
        }
    }

    fn no_trouble(self) -> &'static str {
        match self {
            Self::Ending => "bans end again",
            Self::Listing => "the ends of bans can be listed again",
            Self::Forgetting => "the ends of bans that were lifted by hand are forgotten again",
        }
    }
}

/// When bans end, by member.
#[derive(Debug, Default)]
pub(super) struct Ends(HashMap<Vec<u8>, u64, RandomState>);

impl Ends {
    /// When this member leaves, if it does.
    pub(super) fn of(&self, member: &[u8]) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(member).copied()
    }

    /// Whether any is of nobody among `members`, which may name some twice.
    pub(super) fn are_of_others(&self, members: &[Vec<u8>]) -> bool {
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
