//! Rule sets in hashes of Redis.
//!
//! A set, `fluxgate:rulesets`, has their ids, and a hash for each, `fluxgate:ruleset:<id>`, has the
//! values. A writer announces changes on a channel. Changes are not counted, so everything is read at an
//! interval, and compared with the last reading: this finds changes that were announced while Tidegate
//! was not subscribed.

use super::sets::{RuleSetResult, Sets};
use crate::docstore::Channel;
use crate::live::origins::BYTES_MAX;
use crate::live::source::{LoadResult, PolicyFetcher, Revision, SourceError};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;
use std::time::Duration;
use tidegate::redis::{CallError, Connection, KeyRules, RedisSets};
use tidegate_config::compose::digest;
use tidegate_config::source::RuleSets;
use tidegate_import::{RuleSetRecord, fluxgate_rule_sets};
use tidegate_net::tasks::blocking;

/// The maximum number of ids to read. Those beyond the number of rule sets that may be served are
/// reported as left out.
const IDS_MAX: usize = 10_000;

/// The number of hashes to read concurrently.
const AT_ONCE: usize = 32;

/// The field that repeats the id.
const ID: &str = "ruleSetId";

/// The error code of a server for a key of another type.
const WRONG_TYPE: &str = "WRONGTYPE";

/// The content of a Redis hash.
type RedisHash = Vec<(Vec<u8>, Vec<u8>)>;

/// Rule sets in Redis.
#[derive(Debug)]
pub(in crate::live::origins) struct RuleSetSource {
    name: String,
    connection: Connection,
    prefix: String,
    channel: Channel,
    time_max: Duration,
    every: Duration,
    sets: Arc<Sets<RuleSetRecord>>,
}

impl RuleSetSource {
    pub(in crate::live::origins) fn new(
        name: &str,
        rule_sets: &RuleSets,
        time_max: Duration,
        every: Duration,
    ) -> Result<Self, String> {
        let settings = tidegate::redis::settings(&rule_sets.redis, &[], &KeyRules::default());
        let (settings, _) = settings.map_err(|it| it.to_string())?;
        let settings = settings.connections(1).timeout(time_max);
        let connection = Connection::start(settings, Vec::new()).map_err(|it| it.to_string())?;
        Ok(Self {
            name: name.to_owned(),
            connection,
            prefix: rule_sets.prefix.clone(),
            channel: Channel::new(rule_sets.channel.as_str()),
            time_max,
            every,
            sets: Arc::default(),
        })
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        let settled = self.connection.settled().await;
        settled.map_err(|error| SourceError(error.to_string()))?;
        let ids = self.ids().await?;
        if ids.is_empty() && self.sets.is_known() {
            let prefix = &self.prefix;
            return Err(SourceError(format!(
                "the set `{prefix}:rulesets` is missing, so there are no rule sets"
            )));
        }
        let mut now: Vec<RuleSetResult<RuleSetRecord>> = stream::iter(ids)
            .map(|id| self.read(id))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        now.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (name, sets, seen) = (self.name.clone(), Arc::clone(&self.sets), seen.cloned());
        let loaded = blocking(move || {
            let version = Revision(digest(&format!("{now:?}")));
            if seen.as_ref() == Some(&version) {
                return LoadResult::Unchanged;
            }
            sets.load(&name, now, version, fluxgate_rule_sets)
        });
        loaded
            .await
            .ok_or_else(|| SourceError("the read did not finish".to_owned()))
    }

    /// Returns the ids of all rule sets, without duplicates.
    async fn ids(&self) -> Result<Vec<String>, SourceError> {
        let index = format!("{}:rulesets", self.prefix);
        // Reads more than the maximum, so that an excess can be reported.
        let sets = RedisSets::new(self.connection.clone());
        let ids = sets.members(index.as_bytes(), IDS_MAX, self.time_max);
        let ids = ids.await.map_err(|error| SourceError(error.to_string()))?;
        let ids = ids.into_iter().map(String::from_utf8);
        let ids: Result<Vec<String>, _> = ids.collect();
        let not_text = |_| SourceError(format!("an id in `{index}` is not text in UTF-8"));
        let mut ids = ids.map_err(not_text)?;
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Reads the hash of a rule set. A missing hash is an error: to remove a rule set, its id is removed
    /// from the set. A hash alone disappears if it was evicted, expired, or lost.
    async fn read(&self, id: String) -> Result<RuleSetResult<RuleSetRecord>, SourceError> {
        let key = format!("{}:ruleset:{id}", self.prefix);
        let hash = match self.connection.hgetall(key.as_bytes()).await {
            Ok(hash) if hash.is_empty() => {
                let prefix = &self.prefix;
                let why = format!(
                    "the hash `{key}` is missing, but the set `{prefix}:rulesets` lists it"
                );
                return Ok((id, Err(why)));
            }
            Ok(hash) => hash,
            Err(error) if error.code() == Some(WRONG_TYPE) => {
                let why = format!("the key `{key}` does not hold a hash");
                return Ok((id, Err(why)));
            }
            Err(error) => return Err(unreachable(&key, &error)),
        };
        let rules = record(key, &id, hash);
        Ok((id, rules))
    }
}

impl PolicyFetcher for RuleSetSource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn notified(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.channel.message(&self.connection))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        // The content of a message, an id, `*` or a document, does not matter: everything is compared.
        Box::pin(self.channel.wait_for_change(&self.connection, self.every))
    }
}

/// Converts the hash of the rule set with this id to text.
fn record(key: String, id: &str, hash: RedisHash) -> Result<RuleSetRecord, String> {
    let length: usize = hash
        .iter()
        .map(|(field, value)| field.len() + value.len())
        .sum();
    if length > BYTES_MAX {
        return Err(format!("{key}: it has more than {BYTES_MAX} bytes"));
    }
    let mut fields = Vec::new();
    for (field, value) in hash {
        let shown = field.escape_ascii().to_string();
        let not_text = |_| format!("{key}: field `{shown}` is not text in UTF-8");
        let field = String::from_utf8(field).map_err(not_text)?;
        let value = String::from_utf8(value).map_err(not_text)?;
        fields.push((field, value));
    }
    // Redis returns them in any order.
    fields.sort_unstable();
    match fields.iter().find(|(field, _)| field == ID) {
        Some((_, found)) if found != id => {
            return Err(format!(
                "{key}: field `{ID}` is {found:?}, but the id of the rule set is {id:?}"
            ));
        }
        Some(_) => {}
        None => fields.push((ID.to_owned(), id.to_owned())),
    }
    Ok(RuleSetRecord { key, fields })
}

fn unreachable(key: &str, error: &CallError) -> SourceError {
    SourceError(format!("{key}: {error}"))
}
