//! The sources of lists: files, and sets in Redis.

use super::bans::{BanEnds, BanExpiry, set_of_bans};
use super::list::{GuardList, ListRead};
use crate::process::list_file;
use crate::refresh::{RefreshError, within};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::SharedState;
use tidegate_core::shared_state::SharedSets;
use tidegate_policy::Guard;
use tidegate_policy::guard::{GuardMembers, GuardMembersBuilder, ListOrigin};
use tidegate_policy::store::RedisSettings;
use tokio::task::yield_now;

/// The number of members to add to a list before yielding the thread to other tasks.
const AT_ONCE: usize = 4_096;

/// The sources of a limiter's lists.
#[derive(Debug, Default)]
pub(crate) struct ListSources {
    expiry: BanExpiry,
    /// Lists that were read ahead for a configuration that is not loaded yet.
    ahead: Mutex<Vec<Arc<GuardList>>>,
    /// Sets in a Redis other than the store's, by connection settings. As many as all configurations so far
    /// name.
    elsewhere: Mutex<Vec<(RedisSettings, Arc<dyn SharedSets>)>>,
}

impl ListSources {
    /// Keeps lists that were read ahead for a configuration that is not loaded yet, in place of earlier ones.
    pub(crate) fn keep_ahead(&self, slots: Vec<Arc<GuardList>>) {
        *self.ahead.lock() = slots;
    }

    /// Takes the lists that were read ahead, for the reload of that configuration.
    pub(crate) fn take_preloaded_lists(&self) -> Vec<Arc<GuardList>> {
        std::mem::take(&mut *self.ahead.lock())
    }

    /// Returns the number of bans that have been seen to end.
    pub(crate) fn lifted(&self) -> u64 {
        self.expiry.lifted()
    }

    /// Reads the list of `guard` within its timeout, and publishes it. Cleanup comes after that, within the
    /// same time again, so that no list waits for it.
    pub(crate) async fn read(
        &self,
        state: Option<&dyn SharedState>,
        guard: &Guard,
        slot: &Arc<GuardList>,
    ) {
        let mut has_orphans = false;
        let list = self.list(state, guard, slot, &mut has_orphans);
        let read = within(guard.timeout, "it was not read", list, RefreshError::Outage).await;
        slot.note(read, guard);
        if has_orphans
            && let Some(sets) = state.and_then(|state| state.sets())
            && let Some(set) = set_of_bans(guard)
        {
            self.expiry.forget(sets, set, guard.timeout).await;
        }
    }

    async fn list(
        &self,
        state: Option<&dyn SharedState>,
        guard: &Guard,
        slot: &Arc<GuardList>,
        has_orphans: &mut bool,
    ) -> Result<ListRead, RefreshError> {
        match &guard.origin {
            ListOrigin::List(_) => Ok(ListRead::Same),
            ListOrigin::File(path) => {
                let (path, slot) = (path.clone(), Arc::clone(slot));
                let deadline = guard.timeout;
                // Reading a file may block without bound, and a long list takes a while to build.
                let read = tokio::task::spawn_blocking(move || file(&path, &slot, deadline)).await;
                read.unwrap_or_else(|_| {
                    Err(RefreshError::Outage("reading it was aborted".to_owned()))
                })
            }
            ListOrigin::Redis { set, at } => {
                let elsewhere;
                let sets = match at {
                    None => state.and_then(|state| state.sets()).ok_or_else(|| {
                        let why = "the store is not Redis; set `url`";
                        RefreshError::Outage(why.to_owned())
                    })?,
                    Some(settings) => {
                        elsewhere = self.elsewhere(settings).map_err(RefreshError::Outage)?;
                        &*elsewhere
                    }
                };
                // A new connection is not ready immediately; its own error is the most precise one.
                let ready = sets.ready().await;
                ready.map_err(|error| RefreshError::Outage(error.to_string()))?;
                // A little less than the whole, so that the error names Redis as late.
                let time = guard.timeout.saturating_sub(Duration::from_millis(1));
                let ends = match set_of_bans(guard) {
                    // Half of it is left for the set itself.
                    Some(bans) => self.expiry.lift(sets, bans, time / 2).await,
                    None => BanEnds::default(),
                };
                let members = sets.read(set, GuardMembers::MOST, time).await;
                let members = members.map_err(|error| {
                    let why = error.to_string();
                    if error.is_transient() {
                        RefreshError::Outage(why)
                    } else {
                        RefreshError::Invalid(why)
                    }
                })?;
                *has_orphans = ends.has_other_members(&members);
                let list = put_together(slot.building(), members, &ends).await;
                let list = list.map_err(RefreshError::Outage)?;
                Ok(ListRead::List(list, None))
            }
        }
    }

    /// Returns the sets in the Redis with these connection settings.
    fn elsewhere(&self, settings: &RedisSettings) -> Result<Arc<dyn SharedSets>, String> {
        let mut elsewhere = self.elsewhere.lock();
        if let Some((_, sets)) = elsewhere.iter().find(|(known, _)| known == settings) {
            return Ok(Arc::clone(sets));
        }
        let sets = open(settings)?;
        elsewhere.push((settings.clone(), Arc::clone(&sets)));
        Ok(sets)
    }
}

/// Starts to connect to a Redis that is used only for its sets.
#[cfg(feature = "redis")]
fn open(settings: &RedisSettings) -> Result<Arc<dyn SharedSets>, String> {
    use crate::redis::{Connection, RedisSets, connection};

    let started = Connection::start(connection(settings), Vec::new());
    let connection = started.map_err(|error| error.to_string())?;
    Ok(Arc::new(RedisSets::new(connection)))
}

#[cfg(not(feature = "redis"))]
fn open(_: &RedisSettings) -> Result<Arc<dyn SharedSets>, String> {
    Err("sets in Redis need the feature `redis` of the crate `tidegate`".to_owned())
}

/// Reads the list in a file: one member per line; ignores blank lines and comments after a `#`.
pub(super) fn file(
    path: &str,
    slot: &GuardList,
    deadline: Duration,
) -> Result<ListRead, RefreshError> {
    let bytes = list_file(path, deadline).map_err(RefreshError::Invalid)?;
    let fingerprint = *blake3::hash(&bytes).as_bytes();
    if slot.fingerprint() == Some(fingerprint) {
        return Ok(ListRead::Same);
    }
    let mut list = slot.building();
    for line in bytes.split(|byte| *byte == b'\n') {
        push_line(&mut list, line);
    }
    Ok(ListRead::List(list.finish(), Some(fingerprint)))
}

fn push_line(list: &mut GuardMembersBuilder, line: &[u8]) {
    let Ok(line) = std::str::from_utf8(line) else {
        return list.skip();
    };
    // Only after white space or at the start of the line: `a#b` may be a valid name.
    let comment = line.match_indices('#').find(|(at, _)| {
        line.get(..*at)
            .is_some_and(|it| it.trim_end().len() < *at || *at == 0)
    });
    let member = comment.map_or(line, |(at, _)| line.get(..at).unwrap_or(line));
    let member = member.trim();
    if !member.is_empty() {
        list.push(member);
    }
}

/// Builds a list, and yields to other tasks now and then. The last step of a long list has no pauses, and
/// runs on a blocking thread.
async fn put_together(
    mut list: GuardMembersBuilder,
    members: Vec<Vec<u8>>,
    ends: &BanEnds,
) -> Result<GuardMembers, String> {
    let is_long = members.len() > AT_ONCE;
    list.reserve(members.len());
    for (nth, member) in members.into_iter().enumerate() {
        match std::str::from_utf8(&member) {
            Ok(text) => list.push_until(text, ends.of(&member)),
            Err(_) => list.skip(),
        }
        if nth % AT_ONCE == AT_ONCE - 1 {
            yield_now().await;
        }
    }
    if !is_long {
        return Ok(list.finish());
    }
    let finished = tokio::task::spawn_blocking(move || list.finish()).await;
    finished.map_err(|_| "building it did not finish".to_owned())
}
