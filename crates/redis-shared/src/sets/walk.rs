//! A set, hash or sorted set from beginning to end, piece by piece, while others change it.

use super::key_owner::KeyOwner;
use crate::foreign_keys;
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallEffect, CallError, CallErrorKind, Connection, NodeChoice};
use tokio::sync::watch;

/// The number of entries that a server visits for one reply: a fraction of a millisecond of its time.
const COUNT: usize = 1_000;

/// The most times that a scan starts from the beginning.
const RESTARTS_MAX: u32 = 10;

/// The kind of key that is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanVerb {
    /// Members.
    Set,
    /// Fields and values in turn.
    Hash,
    /// Members and scores in turn.
    Sorted,
}

impl ScanVerb {
    fn command(self) -> &'static str {
        match self {
            Self::Set => "SSCAN",
            Self::Hash => "HSCAN",
            Self::Sorted => "ZSCAN",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Hash => "hash",
            Self::Sorted => "sorted set",
        }
    }
}

/// The next step of a scan.
#[derive(Debug)]
pub(crate) enum ScanStep {
    /// These, perhaps none.
    Found(Vec<Vec<u8>>),
    /// The entries so far may be incomplete: discard them, the scan starts from the beginning.
    Again,
    /// That was all.
    End,
}

/// Entries that exist during the whole scan are found, perhaps twice.
#[derive(Debug)]
pub(crate) struct SetScan<'a> {
    connection: &'a Connection,
    verb: ScanVerb,
    key: &'a [u8],
    /// `None` at the end.
    cursor: Option<Vec<u8>>,
    /// A cursor is valid only on the server that returned it: another one, or the same after a restart,
    /// would skip entries silently.
    changes: watch::Receiver<u64>,
    /// The location of the key at the start.
    home: Option<KeyOwner>,
    restarts: u32,
}

impl<'a> SetScan<'a> {
    pub(crate) fn new(connection: &'a Connection, verb: ScanVerb, key: &'a [u8]) -> Self {
        let mut changes = connection.changes();
        changes.mark_unchanged();
        Self {
            connection,
            verb,
            key,
            cursor: Some(b"0".to_vec()),
            changes,
            home: None,
            restarts: 0,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<ScanStep, CallError> {
        let Some(cursor) = self.cursor.clone() else {
            return Ok(ScanStep::End);
        };
        if self.home.is_none() {
            self.home = Some(KeyOwner::of(self.connection, self.key).await?);
        }
        let mut command = protocol::cmd(self.verb.command());
        command.arg(self.key).arg(cursor.as_slice());
        command.arg("COUNT").arg(COUNT);
        let reply = self.connection.command(NodeChoice::Key(self.key), &command);
        let kind = self.verb.kind();
        let reply = reply
            .await
            .map_err(|error| foreign_keys::named(error, self.key, kind))?;
        let (cursor, found) = read(reply).ok_or_else(|| CallError::malformed("a scan"))?;
        let next = Some(cursor).filter(|cursor| cursor != b"0");
        // The sender lives as long as the connection.
        if self.changes.has_changed().unwrap_or(false)
            || (next.is_none() && self.has_moved().await?)
        {
            return self.restart_scan();
        }
        self.cursor = next;
        Ok(ScanStep::Found(found))
    }

    /// Returns true if the key has moved during the scan. The topology does not show that while its slot
    /// migrates.
    async fn has_moved(&self) -> Result<bool, CallError> {
        let home = KeyOwner::of(self.connection, self.key).await?;
        Ok(self.home.as_ref() != Some(&home))
    }

    fn restart_scan(&mut self) -> Result<ScanStep, CallError> {
        self.changes.mark_unchanged();
        self.home = None;
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            let key = foreign_keys::shown(self.key);
            let detail = format!("the servers changed again and again while {key} was read");
            return Err(CallError::new(
                CallEffect::NotExecuted,
                CallErrorKind::Disconnected,
                detail,
            ));
        }
        self.cursor = Some(b"0".to_vec());
        Ok(ScanStep::Again)
    }
}

/// `[cursor, [entry…]]`.
fn read(reply: Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let [cursor, entries] = <[Value; 2]>::try_from(parts).ok()?;
    let Value::BulkString(cursor) = cursor else {
        return None;
    };
    Some((cursor, foreign_keys::strings(entries).ok()?))
}
