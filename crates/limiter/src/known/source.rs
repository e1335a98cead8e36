//! From where lists are read: files, and sets in Redis.

use super::ends::Lifting;
use super::slot::{Read, Slot};
use crate::fresh::{RefreshError, within};
use crate::process::list_file;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::Guard;
use tidegate_policy::guard::{Building, Origin};

#[cfg(feature = "redis")]
use {
    super::ends::{Ends, bans},
    std::sync::OnceLock,
    tidegate_policy::config::RedisSettings,
    tidegate_policy::guard::List,
    tidegate_redis::{Bans, Connection},
    tokio::task::yield_now,
};

/// How many members are added to a list before others have their turn on the same thread.
#[cfg(feature = "redis")]
const AT_ONCE: usize = 4_096;

/// From where the lists of a limiter are read.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    lifting: Arc<Lifting>,
    /// Lists that were read for a configuration that is yet to come.
    ahead: Mutex<Vec<Arc<Slot>>>,
    #[cfg(feature = "redis")]
    redis: Arc<Connections>,
}

/// What keeping lists takes besides the lists.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    #[cfg(feature = "redis")]
    lifting: Arc<Lifting>,
    #[cfg(feature = "redis")]
    redis: Arc<Connections>,
}

/// What is left to do once a list is known.
#[derive(Debug, Default)]
struct Left {
    /// The bans of which some have ends and no members.
    #[cfg(feature = "redis")]
    over: Option<Bans>,
}

/// Connections to Redis, for lists alone.
#[cfg(feature = "redis")]
#[derive(Debug, Default)]
struct Connections {
    /// The store's own.
    store: OnceLock<Connection>,
    /// Those to others, by how they are reached: as many as the configurations so far name.
    others: Mutex<Vec<(RedisSettings, Connection)>>,
}

// === impl Sources ===

impl Sources {
    #[cfg_attr(
        not(feature = "redis"),
        expect(
            clippy::unused_self,
            reason = "with the feature, it has what they need"
        )
    )]
    pub(super) fn reach(&self) -> Reach {
        Reach {
            #[cfg(feature = "redis")]
            lifting: Arc::clone(&self.lifting),
            #[cfg(feature = "redis")]
            redis: Arc::clone(&self.redis),
        }
    }

    /// Keeps lists that were read for a configuration that is yet to come, and none from before.
    pub(super) fn keep_ahead(&self, slots: Vec<Arc<Slot>>) {
        *self.ahead.lock() = slots;
    }

    /// The lists that were read ahead, for whoever brings the configuration.
    pub(crate) fn take_ahead(&self) -> Vec<Arc<Slot>> {
        std::mem::take(&mut *self.ahead.lock())
    }

    /// How many bans have been seen to end.
    pub(crate) fn lifted(&self) -> u64 {
        self.lifting.lifted()
    }

    /// The store's own connection, where it has one.
    #[cfg(feature = "redis")]
    pub(crate) fn connection(&self) -> Option<Connection> {
        self.redis.store.get().cloned()
    }

    /// Lets sets be read through the store's own connection.
    #[cfg(feature = "redis")]
    pub(crate) fn share(&self, connection: &Connection) {
        // Told twice, it is the same.
        self.redis.store.set(connection.clone()).ok();
    }
}

// === impl Reach ===

impl Reach {
    /// Reads the list of `guard`, within the time that it has, and lets it be known. What is left to tidy
    /// up comes after that, within as long again: no list waits for it.
    pub(super) async fn read(&self, guard: &Guard, slot: &Arc<Slot>) {
        let mut left = Left::default();
        let list = self.list(guard, slot, &mut left);
        let read = within(guard.timeout, "it was not read", list, RefreshError::Outage).await;
        slot.note(read, guard);
        #[cfg(feature = "redis")]
        if let Some(bans) = left.over {
            self.lifting.forget(&bans, guard.timeout).await;
        }
    }

    #[cfg_attr(
        not(feature = "redis"),
        expect(
            unused_variables,
            reason = "with the feature, sets leave something to do"
        )
    )]
    async fn list(
        &self,
        guard: &Guard,
        slot: &Arc<Slot>,
        left: &mut Left,
    ) -> Result<Read, RefreshError> {
        match &guard.origin {
            Origin::List(_) => Ok(Read::Same),
            Origin::File(path) => {
                let (path, slot) = (path.clone(), Arc::clone(slot));
                let deadline = guard.timeout;
                // Files have no end of waiting, and a long list takes a while to put together.
                let read = tokio::task::spawn_blocking(move || file(&path, &slot, deadline)).await;
                read.unwrap_or_else(|_| {
                    Err(RefreshError::Outage("reading it was aborted".to_owned()))
                })
            }
            #[cfg(feature = "redis")]
            Origin::Redis { set, at } => {
                let connection = self.redis.of(at.as_deref()).map_err(RefreshError::Outage)?;
                // One that was just begun is not there at once; and who it never was says best why.
                if let Err(error) = connection.settled().await
                    && !connection.is_connected()
                {
                    return Err(RefreshError::Outage(error.to_string()));
                }
                // A little less than the whole, so that it is Redis that is said to be late.
                let time = guard.timeout.saturating_sub(Duration::from_millis(1));
                let bans = bans(guard, &connection);
                let ends = match &bans {
                    // Half of it is left for the set itself.
                    Some(bans) => self.lifting.lift(bans, time / 2).await,
                    None => Ends::default(),
                };
                let members = connection.members(set.as_bytes(), List::MOST, time).await;
                let members = members.map_err(|error| {
                    let why = error.to_string();
                    if error.is_transient() {
                        RefreshError::Outage(why)
                    } else {
                        RefreshError::Invalid(why)
                    }
                })?;
                left.over = bans.filter(|_| ends.are_of_others(&members));
                let list = put_together(slot.building(), members, &ends).await;
                let list = list.map_err(RefreshError::Outage)?;
                Ok(Read::List(list, None))
            }
            #[cfg(not(feature = "redis"))]
            Origin::Redis { .. } => {
                let why = "sets in Redis need the feature `redis` of the crate `tidegate`";
                Err(RefreshError::Outage(why.to_owned()))
            }
        }
    }
}

/// Reads the list in a file: a member a line, without what follows a `#`, and without blank lines.
pub(super) fn file(path: &str, slot: &Slot, deadline: Duration) -> Result<Read, RefreshError> {
    let bytes = list_file(path, deadline).map_err(RefreshError::Invalid)?;
    let fingerprint = *blake3::hash(&bytes).as_bytes();
    if slot.fingerprint() == Some(fingerprint) {
        return Ok(Read::Same);
    }
    let mut list = slot.building();
    for line in bytes.split(|byte| *byte == b'\n') {
        push_line(&mut list, line);
    }
    Ok(Read::List(list.finish(), Some(fingerprint)))
}

fn push_line(list: &mut Building, line: &[u8]) {
    let Ok(line) = std::str::from_utf8(line) else {
        return list.skip();
    };
    // Only where it stands apart: `a#b` may well be somebody's name.
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

/// Puts a list together, with a pause now and then in which others have their turn. The end of a long one
/// has no pauses, and is left to a thread that may be kept.
#[cfg(feature = "redis")]
async fn put_together(
    mut list: Building,
    members: Vec<Vec<u8>>,
    ends: &Ends,
) -> Result<List, String> {
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
    finished.map_err(|_| "putting it together came to no end".to_owned())
}

// === impl Connections ===

#[cfg(feature = "redis")]
impl Connections {
    /// The connection to the Redis that is reached so, or to the store's.
    fn of(&self, at: Option<&RedisSettings>) -> Result<Connection, String> {
        let Some(settings) = at else {
            let none = || "the store is not in Redis; say where the set is with `url`".to_owned();
            return self.store.get().cloned().ok_or_else(none);
        };
        let mut others = self.others.lock();
        if let Some((_, connection)) = others.iter().find(|(known, _)| known == settings) {
            return Ok(connection.clone());
        }
        let started = Connection::start(crate::redis::connection(settings), Vec::new());
        let connection = started.map_err(|error| error.to_string())?;
        others.push((settings.clone(), connection.clone()));
        Ok(connection)
    }
}
