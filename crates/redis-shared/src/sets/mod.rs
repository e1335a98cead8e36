//! Sets that others keep and we read whole: lists of whom to refuse.
//!
//! | module | what it has |
//! |---|---|
//! | `walk` | a set, hash or sorted set from beginning to end, piece by piece |
//! | `home` | which server has it at the moment |
//! | `error` | failures of loading one |

mod error;
mod key_owner;
mod walk;

pub use error::LoadError;
pub(crate) use walk::{ScanStep, ScanVerb, SetScan};

use crate::foreign_keys;
use std::time::Duration;
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallEffect, CallError, CallErrorKind, Connection, NodeChoice};
use tokio::time::timeout;

/// The number of members read, added or removed by one command.
const AT_ONCE: usize = 1_000;

/// Sets in Redis. A key that holds something else is an error that names the key.
#[derive(Clone, Debug)]
pub struct RedisSets {
    connection: Connection,
}

impl RedisSets {
    /// Returns the sets of the Redis that `connection` leads to.
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// All members of a set, by `SSCAN` to the end of the cursor; none if there is no such key.
    ///
    /// Members that are in the set during the whole read are returned, regardless of concurrent changes;
    /// members that come or go meanwhile may be. A member may be returned **more than once**: callers
    /// remove duplicates if they need to.
    ///
    /// Never holds more than `max` members for longer than it takes to see that they are too many,
    /// which is [`LoadError::TooMany`]; never takes longer than `time` in all.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let time = Duration::from_secs(5);
    /// let sets = tidegate_redis_shared::RedisSets::new(connection);
    /// let mut banned = sets.members(b"BlacklistIPsSet", 1_000_000, time).await?;
    /// banned.sort_unstable();
    /// banned.dedup();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn members(
        &self,
        key: &[u8],
        max: usize,
        time: Duration,
    ) -> Result<Vec<Vec<u8>>, LoadError> {
        within(time, collect(&self.connection, key, max)).await
    }

    /// Adds members to a set. Returns the number of new ones. Many members are sent in several commands,
    /// one after the other: after an error some may have been added, and it may be called again.
    pub async fn add_members<M>(&self, key: &[u8], members: &[M]) -> Result<u64, CallError>
    where
        M: AsRef<[u8]>,
    {
        change(&self.connection, "SADD", key, members).await
    }

    /// Removes members from a set. Returns the number of members that existed. As
    /// [`add_members`](Self::add_members).
    pub async fn remove_members<M>(&self, key: &[u8], members: &[M]) -> Result<u64, CallError>
    where
        M: AsRef<[u8]>,
    {
        change(&self.connection, "SREM", key, members).await
    }
}

/// Limits the time of a load. A load only reads, so a timeout has had no effect.
pub(crate) async fn within<T>(
    time: Duration,
    load: impl Future<Output = Result<T, LoadError>>,
) -> Result<T, LoadError> {
    timeout(time, load).await.unwrap_or_else(|_| {
        let detail = format!("it was not read to the end within {time:?}");
        Err(CallError::new(CallEffect::NotExecuted, CallErrorKind::Timeout, detail).into())
    })
}

async fn collect(
    connection: &Connection,
    key: &[u8],
    max: usize,
) -> Result<Vec<Vec<u8>>, LoadError> {
    // Asked first: a set that is far too large is not read again and again for nothing.
    let mut size = protocol::cmd("SCARD");
    size.arg(key);
    let size = connection.command(NodeChoice::Key(key), &size).await;
    let size = count(&size.map_err(|error| foreign_keys::named(error, key, "set"))?)?;
    if usize::try_from(size).is_ok_and(|size| size > max) {
        return Err(LoadError::too_many(key, max));
    }
    let mut members = Vec::new();
    let mut walk = SetScan::new(connection, ScanVerb::Set, key);
    loop {
        match walk.next().await? {
            ScanStep::Found(found) => members.extend(found),
            ScanStep::Again => members.clear(),
            ScanStep::End => return Ok(members),
        }
        if members.len() > max {
            members.sort_unstable();
            members.dedup();
        }
        if members.len() > max {
            return Err(LoadError::too_many(key, max));
        }
    }
}

async fn change<M: AsRef<[u8]>>(
    connection: &Connection,
    verb: &str,
    key: &[u8],
    members: &[M],
) -> Result<u64, CallError> {
    let mut changed: u64 = 0;
    for some in members.chunks(AT_ONCE) {
        let mut command = protocol::cmd(verb);
        command.arg(key);
        for member in some {
            command.arg(member.as_ref());
        }
        let reply = connection.command(NodeChoice::Key(key), &command).await;
        let reply = reply.map_err(|error| foreign_keys::named(error, key, "set"))?;
        changed = changed.saturating_add(count(&reply)?);
    }
    Ok(changed)
}

fn count(reply: &Value) -> Result<u64, CallError> {
    match reply {
        Value::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
    .ok_or_else(|| CallError::malformed("unexpected reply: expected a count"))
}

#[cfg(test)]
mod tests;
