//! When those leave a list by themselves who do.

use std::sync::LazyLock;
use std::time::Duration;
use tidegate_policy::guard::List;
use tokio::time::Instant;

#[cfg(feature = "redis")]
use {
    foldhash::fast::RandomState,
    hashbrown::HashMap,
    hashbrown::HashSet,
    parking_lot::Mutex,
    std::sync::atomic::{AtomicU64, Ordering::Relaxed},
    tidegate_policy::guard::{Effect, Origin},
    tidegate_policy::{Guard, KeyPart},
    tidegate_redis::{Bans, Connection},
    tracing::{info, warn},
};

/// From when lists count: they know no clock.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The least that anybody is told to wait: who has reached the end of a ban is let in with the next
/// refresh.
const SOON: Duration = Duration::from_secs(1);

/// An instant as lists have it: milliseconds from the beginning, rounded up.
#[cfg(feature = "redis")]
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
pub(super) fn left_of(list: &List, address: std::net::IpAddr) -> Option<Duration> {
    list.end_of(address).map(left)
}

/// The set in the store's Redis that has bans with an end, if `guard` is kept by one.
#[cfg(feature = "redis")]
pub(crate) fn set_of_bans(guard: &Guard) -> Option<&str> {
    match &guard.origin {
        Origin::Redis { set, at: None }
            if guard.effect == Effect::Refuse && guard.subject == KeyPart::Ip =>
        {
            Some(set)
        }
        _ => None,
    }
}

/// Letting those go whose ban has ended, whoever has banned them.
#[derive(Debug, Default)]
pub(super) struct Lifting {
    #[cfg(feature = "redis")]
    lifted: AtomicU64,
    /// The sets of which it has been said aloud that it does not work: as many as there are guards.
    #[cfg(feature = "redis")]
    in_trouble: Mutex<HashSet<String, RandomState>>,
}

#[cfg(feature = "redis")]
impl Lifting {
    /// How many were let go.
    pub(super) fn lifted(&self) -> u64 {
        self.lifted.load(Relaxed)
    }

    /// Lets those go whose ban in `bans` has ended, and tells when the others end. Before the set is
    /// read: what is read then has nobody whose ban has ended.
    ///
    /// Whatever goes wrong is said aloud, and hinders nobody from reading the set.
    pub(super) async fn lift(&self, bans: &Bans, time: Duration) -> Ends {
        let ends = match bans.ends(List::MOST, time).await {
            Ok(ends) => ends,
            Err(error) => {
                self.trouble(bans, &error);
                return Ends::default();
            }
        };
        let now = Instant::now();
        let has_ended = ends.iter().any(|(_, left)| left.is_zero());
        let ends = ends.into_iter().filter(|(_, left)| !left.is_zero());
        let ends = Ends(
            ends.map(|(member, left)| (member, at(now + left)))
                .collect(),
        );
        if has_ended {
            match bans.expire_ended().await {
                Ok(lifted) => self.told(lifted),
                Err(error) => {
                    self.trouble(bans, &error);
                    return ends;
                }
            }
        }
        self.no_trouble(bans);
        ends
    }

    /// Forgets the ends of those whom somebody has let go by hand: the set has none of them, and who is
    /// added by hand again stays.
    pub(super) async fn forget(&self, bans: &Bans) {
        match bans.expire().await {
            Ok(lifted) => self.told(lifted),
            Err(error) => self.trouble(bans, &error),
        }
    }

    fn told(&self, lifted: Vec<Vec<u8>>) {
        let count = u64::try_from(lifted.len()).unwrap_or(u64::MAX);
        self.lifted.fetch_add(count, Relaxed);
        for address in lifted {
            info!(address = %String::from_utf8_lossy(&address), "its ban has ended");
        }
    }

    fn trouble(&self, bans: &Bans, error: &dyn std::fmt::Display) {
        let set = String::from_utf8_lossy(bans.set()).into_owned();
        if self.in_trouble.lock().insert(set.clone()) {
            warn!(
                set,
                %error,
                "bans cannot be ended: whoever is in the set is kept out until they can"
            );
        }
    }

    fn no_trouble(&self, bans: &Bans) {
        let set = String::from_utf8_lossy(bans.set());
        if self.in_trouble.lock().remove(&*set) {
            info!(%set, "bans end again");
        }
    }
}

#[cfg(not(feature = "redis"))]
impl Lifting {
    #[expect(clippy::unused_self, reason = "with the feature, it knows")]
    pub(super) fn lifted(&self) -> u64 {
        0
    }
}

/// When bans end, by member.
#[cfg(feature = "redis")]
#[derive(Debug, Default)]
pub(super) struct Ends(HashMap<Vec<u8>, u64, RandomState>);

#[cfg(feature = "redis")]
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

/// The bans of `guard`, where it has any that end.
#[cfg(feature = "redis")]
pub(super) fn bans(guard: &Guard, connection: &Connection) -> Option<Bans> {
    let set = set_of_bans(guard)?;
    Some(Bans::new(connection.clone(), set))
}
