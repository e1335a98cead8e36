//! A collection of rules in `MongoDB`.
//!
//! Each document is a rule, and a rule set consists of all rules that name it. The collection is read
//! completely at an interval, and compared with the last reading.

use super::sets::{RuleSetResult, Sets};
use crate::live::origins::BYTES_MAX;
use crate::live::source::{LoadResult, PolicyFetcher, Revision, SourceError};
use crate::mongo::{connect, shown};
use futures_util::future::BoxFuture;
use mongodb::Client;
use mongodb::bson::{Bson, Document as Fields, doc};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::compose::digest;
use tidegate_config::source::MongoRules;
use tidegate_import::{SourceFile, fluxgate_collection};
use tidegate_net::tasks::blocking;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

/// The maximum number of rules.
const RULES_MAX: usize = 100_000;

/// The rule set of rules that name none.
const DEFAULT_SET: &str = "default";

/// A collection of rules.
#[derive(Debug)]
pub(in crate::live::origins) struct MongoSource {
    name: String,
    rules: MongoRules,
    client: OnceCell<Client>,
    time_max: Duration,
    every: Duration,
    sets: Arc<Sets<SourceFile>>,
}

impl MongoSource {
    pub(in crate::live::origins) fn new(
        name: &str,
        rules: &MongoRules,
        time_max: Duration,
        every: Duration,
    ) -> Self {
        Self {
            name: name.to_owned(),
            rules: rules.clone(),
            client: OnceCell::new(),
            time_max,
            every,
            sets: Arc::default(),
        }
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        let rules = self.read().await.map_err(SourceError)?;
        if rules.is_empty() && self.sets.is_known() {
            let name = &self.rules.collection;
            return Err(SourceError(format!(
                "the collection `{name}` is missing or empty"
            )));
        }
        let (name, sets, seen) = (self.name.clone(), Arc::clone(&self.sets), seen.cloned());
        let collection = self.rules.collection.clone();
        let loaded = blocking(move || {
            let now = by_set(&collection, rules);
            let version = Revision(digest(&format!("{now:?}")));
            if seen.as_ref() == Some(&version) {
                return Ok(LoadResult::Unchanged);
            }
            Ok(sets.load(&name, now, version, fluxgate_collection))
        });
        let loaded = loaded.await;
        loaded.unwrap_or_else(|| Err(SourceError("the read did not finish".to_owned())))
    }

    /// Reads all documents of the collection.
    async fn read(&self) -> Result<Vec<Fields>, String> {
        let client = self
            .client
            .get_or_try_init(|| connect(&self.rules.url, self.time_max));
        let client = self.in_time(client).await??;
        let name = &self.rules.collection;
        let wrong = |error| format!("collection `{name}`: {}", shown(error));
        let database = client.database(&self.rules.database);
        let collection = database.collection::<Fields>(name);
        let found = self.in_time(collection.find(doc! {})).await?;
        let mut cursor = found.map_err(wrong)?;
        let mut rules = Vec::new();
        let mut bytes = 0;
        while self.in_time(cursor.advance()).await?.map_err(wrong)? {
            bytes += cursor.current().as_bytes().len();
            if rules.len() == RULES_MAX || bytes > BYTES_MAX {
                return Err(format!(
                    "collection `{name}` has more than {RULES_MAX} rules or {BYTES_MAX} bytes"
                ));
            }
            rules.push(cursor.deserialize_current().map_err(wrong)?);
        }
        Ok(rules)
    }

    /// Awaits a response with a timeout: the driver's timeouts cover the selection of a server, and not
    /// its response.
    async fn in_time<T>(&self, answer: impl IntoFuture<Output = T>) -> Result<T, String> {
        let answer = timeout(self.time_max, answer.into_future()).await;
        answer.map_err(|_| {
            let (name, time_max) = (&self.rules.collection, self.time_max);
            format!("collection `{name}`: no response within {time_max:?}")
        })
    }
}

impl PolicyFetcher for MongoSource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(sleep(self.every))
    }
}

/// Groups the rules by set, one per line, in the order of their ids: a collection has no order.
fn by_set(collection: &str, rules: Vec<Fields>) -> Vec<RuleSetResult<SourceFile>> {
    let mut sets: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for rule in rules {
        let text = |field: &str| rule.get(field).and_then(Bson::as_str).unwrap_or_default();
        let set = match text("ruleSetId") {
            "" => DEFAULT_SET.to_owned(),
            set => set.to_owned(),
        };
        let id = text("id").to_owned();
        sets.entry(set).or_default().push((id, document(rule)));
    }
    let files = sets.into_iter().map(|(set, mut rules)| {
        rules.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut text = String::new();
        for (_, rule) in rules {
            // Writing to a string cannot fail.
            writeln!(text, "{rule}").ok();
        }
        let name = format!("{collection}, rule set {set}");
        (set, Ok(SourceFile { name, text }))
    });
    files.collect()
}

/// Converts a document to JSON.
fn document(fields: Fields) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name, json(value)));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// Converts a value to JSON. A number of any width becomes a number; a type that JSON lacks becomes text.
fn json(value: Bson) -> Value {
    match value {
        Bson::Null | Bson::Undefined => Value::Null,
        Bson::Boolean(flag) => Value::Bool(flag),
        Bson::Int32(number) => Value::from(number),
        Bson::Int64(number) => Value::from(number),
        Bson::Double(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        Bson::String(text) | Bson::Symbol(text) => Value::String(text),
        Bson::Array(items) => items.into_iter().map(json).collect(),
        Bson::Document(fields) => document(fields),
        Bson::ObjectId(id) => Value::String(id.to_hex()),
        other => Value::String(other.to_string()),
    }
}
