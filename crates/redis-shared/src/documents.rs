//! A hash with a document in each field, and a version that counts its changes.

use crate::foreign_keys;
use crate::sets::{ScanStep, ScanVerb, SetScan};
use std::collections::BTreeMap;
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallEffect, CallError, CallErrorKind, Connection, NodeChoice};

/// The field that counts.
const VERSION: &str = "version";

/// The version of a hash that does not exist.
const NOTHING: &str = "0";

/// The number of fields read by one command: a few milliseconds of the server's time.
const AT_ONCE: i64 = 5_000;

/// The most bytes of all documents.
const BYTES_MAX: usize = 256 << 20;

/// The most times that many documents are read while they change.
const READS_MAX: usize = 5;

/// Changes all of it or nothing: only from the version that is expected.
///
/// The version becomes the server's time in microseconds, or rises by one if it is beyond that already.
/// So two servers that both act as master do not reach the same version with different documents, and a
/// hash that is deleted and created again does not reach an earlier version.
///
/// A script that fails is not rolled back. So commands that may fail come before any write. A failed
/// `PUBLISH` is no failure: readers check the version anyway.
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

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It was made; this is the version now.
    To(String),
    /// Another writer was quicker, and nothing was changed; this is the version now.
    Conflict(String),
}

/// A hash of documents in Redis. A key that holds something else is an error that names the key.
#[derive(Clone, Debug)]
pub struct RedisDocuments {
    connection: Connection,
    key: Vec<u8>,
}

impl RedisDocuments {
    /// Returns the documents under `key` in the Redis that `connection` leads to.
    pub fn new(connection: Connection, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        Self { connection, key }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// At which version the documents under `key` are: `0` where there are none.
    pub async fn version(&self) -> Result<String, CallError> {
        let mut command = protocol::cmd("HGET");
        command.arg(&self.key).arg(VERSION);
        let reply = self
            .connection
            .command(NodeChoice::Key(&self.key), &command)
            .await;
        match reply.map_err(|error| foreign_keys::named(error, &self.key, "hash"))? {
            Value::Nil => Ok(NOTHING.to_owned()),
            reply => text(reply),
        }
    }

    /// The documents under `key`, by the names of their fields, and the version that they are at.
    ///
    /// Many documents are read in pieces, so that the server stays free for others. All are of one
    /// version; it is an error if they change faster than they are read.
    pub async fn read(&self) -> Result<(String, Vec<(String, String)>), CallError> {
        let mut command = protocol::cmd("HLEN");
        command.arg(&self.key);
        let count = self
            .connection
            .command(NodeChoice::Key(&self.key), &command)
            .await;
        let count = count.map_err(|error| foreign_keys::named(error, &self.key, "hash"))?;
        if matches!(count, Value::Int(count) if count > AT_ONCE) {
            return self.read_many().await;
        }
        let fields = self.connection.hgetall(&self.key).await;
        let fields = fields.map_err(|error| foreign_keys::named(error, &self.key, "hash"))?;
        sorted_out(fields)
    }

    async fn read_many(&self) -> Result<(String, Vec<(String, String)>), CallError> {
        for _ in 0..READS_MAX {
            let before = self.version().await?;
            let fields = self.walk_through().await?;
            if self.version().await? == before {
                return sorted_out(fields);
            }
        }
        let key = foreign_keys::shown(&self.key);
        let detail = format!("the hash {key} changes faster than it can be read");
        Err(CallError::new(
            CallEffect::NotExecuted,
            CallErrorKind::Disconnected,
            detail,
        ))
    }

    /// All fields of a hash, each once.
    async fn walk_through(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, CallError> {
        let mut walk = SetScan::new(&self.connection, ScanVerb::Hash, &self.key);
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
                let (key, most) = (foreign_keys::shown(&self.key), BYTES_MAX >> 20);
                let detail = format!("the hash {key} holds more than {most} MiB");
                return Err(CallError::malformed(detail));
            }
        }
    }

    /// Sets documents, or removes those without a text, atomically, if the version is `expected`.
    /// Publishes the new version on `channel`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use tidegate_redis_shared::{RedisDocuments, WriteOutcome};
    ///
    /// let documents = RedisDocuments::new(connection, "policies");
    /// let (version, _) = documents.read().await?;
    /// let changes = [("policy/api", Some("{}")), ("policy/old", None)];
    /// let changed = documents
    ///     .change(&version, b"policies:changed", &changes)
    ///     .await?;
    /// assert!(matches!(changed, WriteOutcome::To(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn change(
        &self,
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
        let reply = self.connection.eval(CHANGE, &[&self.key], &args).await;
        let reply = reply.map_err(|error| foreign_keys::named(error, &self.key, "hash"))?;
        let (is_done, version): (u8, String) = protocol::from_redis_value(reply)
            .map_err(|error| CallError::malformed(error.to_string()))?;
        Ok(match is_done {
            0 => WriteOutcome::Conflict(version),
            _ => WriteOutcome::To(version),
        })
    }
}

/// Separates the version from the documents.
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
    protocol::from_redis_value(value).map_err(|error| CallError::malformed(error.to_string()))
}

fn utf8(bytes: Vec<u8>) -> Result<String, CallError> {
    String::from_utf8(bytes).map_err(|_| CallError::malformed("a document is not text in UTF-8"))
}
