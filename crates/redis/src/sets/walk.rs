//! A set, hash or sorted set from beginning to end, piece by piece, while others change it.

use super::home::KeyOwner;
use crate::connection::{Connection, NodeChoice};
use crate::error::{CallEffect, CallError, CallErrorKind};
use crate::typed;
use redis::Value;
use tokio::sync::watch;

/// How many entries a server looks at for one answer: a fraction of a millisecond of its time.
const COUNT: usize = 1_000;

/// How often a walk begins anew before it is given up.
const RESTARTS_MAX: u32 = 10;

/// What is walked through.
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

/// What came next.
#[derive(Debug)]
pub(crate) enum ScanStep {
    /// These, perhaps none.
    Found(Vec<Vec<u8>>),
    /// What was found so far may lack something: forget it, it comes again.
    Again,
    /// That was all.
    End,
}

/// What is there from beginning to end is found, perhaps twice.
#[derive(Debug)]
pub(crate) struct SetScan<'a> {
    connection: &'a Connection,
    verb: ScanVerb,
    key: &'a [u8],
    /// `None` at the end.
    cursor: Option<Vec<u8>>,
    /// A cursor means something only to the server that gave it: another one, or the same after a
    /// restart, would pass over entries without a word.
    changes: watch::Receiver<u64>,
    /// Where the key was at the beginning.
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
        let mut command = redis::cmd(self.verb.command());
        command.arg(self.key).arg(cursor.as_slice());
        command.arg("COUNT").arg(COUNT);
        let reply = self.connection.command(NodeChoice::Key(self.key), &command);
        let kind = self.verb.kind();
        let reply = reply
            .await
            .map_err(|error| typed::named(error, self.key, kind))?;
        let (cursor, found) = read(reply).ok_or_else(|| CallError::malformed("a scan"))?;
        let next = Some(cursor).filter(|cursor| cursor != b"0");
        // The sender lives as long as the connection.
        if self.changes.has_changed().unwrap_or(false)
            || (next.is_none() && self.has_moved().await?)
        {
            return self.begin_anew();
        }
        self.cursor = next;
        Ok(ScanStep::Found(found))
    }

    /// Whether the key has left on the way, which no change tells while its slot is half way.
    async fn has_moved(&self) -> Result<bool, CallError> {
        let home = KeyOwner::of(self.connection, self.key).await?;
        Ok(self.home.as_ref() != Some(&home))
    }

    fn begin_anew(&mut self) -> Result<ScanStep, CallError> {
        self.changes.mark_unchanged();
        self.home = None;
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            let key = typed::shown(self.key);
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
    Some((cursor, typed::strings(entries).ok()?))
}
