//! A hash with a document in each field, and a version that counts its changes.

use crate::connection::{Connection, NodeChoice};
use crate::error::{CallEffect, CallError, CallErrorKind};
use crate::sets::{ScanStep, ScanVerb, SetScan};
use crate::typed;
use redis::Value;
use std::collections::BTreeMap;

/// The field that counts.
const VERSION: &str = "version";

/// What a hash is at that is not there.
const NOTHING: &str = "0";

/// How many fields are read by one command: a few milliseconds of the server's time.
const AT_ONCE: i64 = 5_000;

/// The most bytes of all documents.
const BYTES_MAX: usize = 256 << 20;

/// How often many documents are read that change meanwhile.
const READS_MAX: usize = 5;

/// Changes all of it or nothing: only from the version that is expected.
///
/// The version goes on to the server's time in microseconds, or by one where it is beyond that already.
/// So two servers that each believed to be the master do not come to the same version by different
/// documents, nor does a hash that is made anew come to one that another of its name had.
///
/// A script is not undone where it fails. So what may fail comes before anything is set, and that
/// nobody can be told is no failure: the version is looked at anyway.
const CHANGE: &str = "
local now = redis.call('HGET', KEYS[1], 'version') or '0'
if now ~= ARGV[1] then return {0, now} end
local time = redis.call('TIME')
local by = (tonumber(time[1]) * 1000000 + tonumber(time[2])) - (tonumber(now) or 0)
if by < 1 then by = 1 end
redis.call('HINCRBY', KEYS[1], 'version', string.format('%.0f', by))
for i = 3, #ARGV, 3 do
  if ARGV[i + 1] == '1' then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
  else
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
-- Read again: as a number of Lua it would lose its last digits.
local version = redis.call('HGET', KEYS[1], 'version')
redis.pcall('PUBLISH', ARGV[2], version)
return {1, version}
";

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It was made; this is the version now.
    To(String),
    /// Somebody else was quicker, and nothing was changed; this is the version now.
    Conflict(String),
}

/// Documents. A key that holds something else is an error that names the key.
impl Connection {
    /// At which version the documents under `key` are: `0` where there are none.
    pub async fn documents_version(&self, key: &[u8]) -> Result<String, CallError> {
        let mut command = redis::cmd("HGET");
        command.arg(key).arg(VERSION);
        let reply = self.command(NodeChoice::Key(key), &command).await;
        match reply.map_err(|error| typed::named(error, key, "hash"))? {
            Value::Nil => Ok(NOTHING.to_owned()),
            reply => text(reply),
        }
    }

    /// The documents under `key`, by the names of their fields, and the version that they are at.
    ///
    /// Many are read piece by piece, so that nobody else waits for the server meanwhile: all of one
    /// version, or an error where that changes faster than they are read.
    pub async fn documents(
        &self,
        key: &[u8],
    ) -> Result<(String, Vec<(String, String)>), CallError> {
        let mut command = redis::cmd("HLEN");
        command.arg(key);
        let count = self.command(NodeChoice::Key(key), &command).await;
        let count = count.map_err(|error| typed::named(error, key, "hash"))?;
        if matches!(count, Value::Int(count) if count > AT_ONCE) {
            return self.many_documents(key).await;
        }
        let fields = self.hgetall(key).await;
        let fields = fields.map_err(|error| typed::named(error, key, "hash"))?;
        sorted_out(fields)
    }

    async fn many_documents(
        &self,
        key: &[u8],
    ) -> Result<(String, Vec<(String, String)>), CallError> {
        for _ in 0..READS_MAX {
            let before = self.documents_version(key).await?;
            let fields = self.walk_through(key).await?;
            if self.documents_version(key).await? == before {
                return sorted_out(fields);
            }
        }
        let key = typed::shown(key);
        let detail = format!("the hash {key} changes faster than it can be read");
        Err(CallError::new(
            CallEffect::NotExecuted,
            CallErrorKind::Disconnected,
            detail,
        ))
    }

    /// All fields of a hash, each once.
    async fn walk_through(&self, key: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, CallError> {
        let mut walk = SetScan::new(self, ScanVerb::Hash, key);
        let (mut fields, mut bytes) = (BTreeMap::new(), 0_usize);
        loop {
            match walk.next().await? {
                ScanStep::Found(found) => {
                    let mut found = found.into_iter();
                    while let (Some(field), Some(value)) = (found.next(), found.next()) {
                        bytes = bytes.saturating_add(field.len() + value.len());
                        fields.insert(field, value);
                    }
                }
                ScanStep::Again => (fields, bytes) = (BTreeMap::new(), 0),
                ScanStep::End => return Ok(fields),
            }
            if bytes > BYTES_MAX {
                let (key, most) = (typed::shown(key), BYTES_MAX >> 20);
                let detail = format!("the hash {key} holds more than {most} MiB");
                return Err(CallError::malformed(detail));
            }
        }
    }

    /// Sets documents under `key`, or removes those without a text, if they are at the version
    /// `expected`: all of it in one step. Whoever listens to `channel` is told.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use tidegate_redis::WriteOutcome;
    ///
    /// let (version, _) = connection.documents(b"policies").await?;
    /// let changes = [("policy/api", Some("{}")), ("policy/old", None)];
    /// let changed = connection
    ///     .change_documents(b"policies", &version, b"policies:changed", &changes)
    ///     .await?;
    /// assert!(matches!(changed, WriteOutcome::To(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn change_documents(
        &self,
        key: &[u8],
        expected: &str,
        channel: &[u8],
        changes: &[(impl AsRef<str>, Option<&str>)],
    ) -> Result<WriteOutcome, CallError> {
        let mut args: Vec<&[u8]> = vec![expected.as_bytes(), channel];
        for (field, document) in changes {
            let flag: &[u8] = if document.is_some() { b"1" } else { b"0" };
            let document = document.unwrap_or_default();
            args.extend([field.as_ref().as_bytes(), flag, document.as_bytes()]);
        }
        let reply = self.eval(CHANGE, &[key], &args).await;
        let reply = reply.map_err(|error| typed::named(error, key, "hash"))?;
        let (is_done, version): (u8, String) = redis::from_redis_value(reply)
            .map_err(|error| CallError::malformed(error.to_string()))?;
        Ok(match is_done {
            0 => WriteOutcome::Conflict(version),
            _ => WriteOutcome::To(version),
        })
    }
}

/// The version, and the documents beside it.
fn sorted_out(
    fields: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<(String, Vec<(String, String)>), CallError> {
    let mut version = NOTHING.to_owned();
    let mut documents = Vec::new();
    for (field, value) in fields {
        let (field, value) = (utf8(field)?, utf8(value)?);
        if field == VERSION {
            version = value;
        } else {
            documents.push((field, value));
        }
    }
    Ok((version, documents))
}

fn text(value: Value) -> Result<String, CallError> {
    redis::from_redis_value(value).map_err(|error| CallError::malformed(error.to_string()))
}

fn utf8(bytes: Vec<u8>) -> Result<String, CallError> {
    String::from_utf8(bytes).map_err(|_| CallError::malformed("a document is not text in UTF-8"))
}
