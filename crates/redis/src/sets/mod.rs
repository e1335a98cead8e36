//! Sets that others keep and we read whole: lists of whom to refuse.
//!
//! | module | what it has |
//! |---|---|
//! | `walk` | a set, hash or sorted set from beginning to end, piece by piece |
//! | `home` | which server has it at the moment |
//! | `error` | what can go wrong with loading one |

mod error;
mod home;
mod walk;

pub use error::LoadError;
pub(crate) use walk::{ScanStep, ScanVerb, SetScan};

use crate::connection::{Connection, NodeChoice};
use crate::error::{CallEffect, CallError, CallErrorKind};
use crate::typed;
use redis::Value;
use std::time::Duration;
use tokio::time::timeout;

/// How many members are looked at, added or removed by one command.
const AT_ONCE: usize = 1_000;

/// Sets. A key that holds something else is an error that names the key.
impl Connection {
    /// All members of a set, by `SSCAN` to the end of the cursor; none if there is no such key.
    ///
    /// What is a member from beginning to end is among them, whatever others add and remove
    /// meanwhile; what came or went meanwhile may be. A member may be handed on **more than once**:
    /// whoever needs each only once removes the others.
    ///
    /// Never holds more than `max` members for longer than it takes to see that they are too many,
    /// which is [`LoadError::TooMany`]; never takes longer than `time` in all.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let time = Duration::from_secs(5);
    /// let mut banned = connection.members(b"BlacklistIPsSet", 1_000_000, time).await?;
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
        within(time, collect(self, key, max)).await
    }

    /// Adds members to a set; tells how many are new. Many are sent in several commands, one after
    /// the other: after an error some may have been added, and it may be called again.
    pub async fn add_members<M>(&self, key: &[u8], members: &[M]) -> Result<u64, CallError>
    where
        M: AsRef<[u8]>,
    {
        change(self, "SADD", key, members).await
    }

    /// Removes members from a set; tells how many were there. As [`Connection::add_members`].
    pub async fn remove_members<M>(&self, key: &[u8], members: &[M]) -> Result<u64, CallError>
    where
        M: AsRef<[u8]>,
    {
        change(self, "SREM", key, members).await
    }
}

/// What a load makes of its time being up: it only reads, so nothing has happened.
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
    let mut size = redis::cmd("SCARD");
    size.arg(key);
    let size = connection.command(NodeChoice::Key(key), &size).await;
    let size = count(&size.map_err(|error| typed::named(error, key, "set"))?)?;
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
        let mut command = redis::cmd(verb);
        command.arg(key);
        for member in some {
            command.arg(member.as_ref());
        }
        let reply = connection.command(NodeChoice::Key(key), &command).await;
        let reply = reply.map_err(|error| typed::named(error, key, "set"))?;
        changed = changed.saturating_add(count(&reply)?);
    }
    Ok(changed)
}

fn count(reply: &Value) -> Result<u64, CallError> {
    match reply {
        Value::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
    .ok_or_else(|| CallError::malformed("a count was expected"))
}

#[cfg(test)]
mod tests;
