//! The location of `FluxGate`'s rules: rule sets in Redis, or a collection in `MongoDB`. The collection
//! may hold Tidegate's own documents instead.

use super::origin::{SourceEndpoint, asked};
use super::shelf::{self, DOCUMENTS, sound};
use super::table::{TIMEOUT, WRITABLE};
use crate::config::fault::ConfigFault;
use crate::config::fields::{optional, required};
use crate::config::plans::not_empty;
use crate::config::reader::{ConfigReader, ConfigValue};
use crate::config::store::StoreSettings;
use crate::config::table::Shape::Text;
use crate::config::table::{FieldReader, FieldRow, FieldTable};
use crate::source::{MongoRules, PolicyOrigin, PolicySource, RuleSets};

/// The prefix of the keys of rule sets.
pub(super) const RULESETS: FieldRow = optional(
    "rulesets",
    Text("fluxgate"),
    "Reads rule sets of FluxGate in place of a hash of ours: what their keys begin with, before `:ruleset:`.",
);

/// The channel that announces changes to rule sets.
pub(super) const CHANNEL: FieldRow = optional(
    "channel",
    Text("fluxgate:rule-reload"),
    "With `rulesets`: where changes are told; what keys begin with and `:rule-reload` unless told.",
);

/// The fields of a collection of rules, or of Tidegate's own documents.
pub(super) static MONGODB: FieldTable = FieldTable {
    what: "`sources.mongodb`",
    fields: &[
        optional(
            "url",
            Text("mongodb://127.0.0.1:27017"),
            "`mongodb://` or `mongodb+srv://`; better kept in `url_file` or a variable.",
        ),
        optional(
            "url_file",
            Text("/run/secrets/mongodb"),
            "The file that holds the URL.",
        ),
        required("database", Text("fluxgate"), "The database."),
        optional(
            "collection",
            Text("rate_limit_rules"),
            "FluxGate's collection, a rule in each document; `rate_limit_rules` unless told.",
        ),
        optional(
            DOCUMENTS,
            Text("tidegate_policies"),
            "Reads documents of ours in place of FluxGate's rules: the collection that has them.",
        ),
        WRITABLE,
        optional(
            "refresh",
            Text("5s"),
            "How often it is asked, 100ms to 24h; 30s unless told, or 5s with `documents`.",
        ),
        TIMEOUT,
    ],
    exactly_one: &["url", "url_file"],
};

/// Fields of a hash that do not apply to rule sets.
const HASH_ONLY: [&str; 2] = ["key", "writable"];

/// Reports `channel` for a source without rule sets.
pub(super) fn no_rule_sets(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    if let Some(channel) = fields.get(CHANNEL.name) {
        let fault = ConfigFault::new("`channel` is for rule sets, and these are documents of ours");
        let fault = fault.help("write `rulesets` as well, or leave it out");
        reader.error(channel.key_spot(), fault);
    }
}

/// Reads the location of rule sets. `said` is the prefix of their keys.
pub(super) fn rule_sets(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    said: &ConfigValue<'_>,
    target: Option<&StoreSettings>,
) -> Option<SourceEndpoint> {
    for name in HASH_ONLY {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!("`{name}` is not for rule sets"));
            let fault = fault.help("they are read where FluxGate keeps them, and never written");
            reader.error(value.key_spot(), fault);
        }
    }
    let prefix = reader.parse(said, |text| sound(text, "`fluxgate`"));
    let prefix = prefix.map(|prefix| prefix.trim_end_matches(':').to_owned());
    let told = reader.setting(fields, CHANNEL.name, |text| {
        sound(text, "`fluxgate:rule-reload`")
    });
    let origin = target.zip(prefix).map(|(redis, prefix)| {
        PolicyOrigin::RuleSets(Box::new(RuleSets {
            redis: redis.clone(),
            channel: told.unwrap_or_else(|| format!("{prefix}:rule-reload")),
            prefix,
        }))
    });
    let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
    asked(reader, fields, usual, origin)
}

/// Reads the location of a collection of rules, or of Tidegate's own documents.
pub(super) fn mongodb(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &MONGODB)?;
    if let Some(said) = fields.get(DOCUMENTS) {
        shelf::nothing_else(reader, &fields, ["collection"]);
        let shelf = shelf::mongodb(reader, &fields, &said, "tidegate_policies");
        let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
        return asked(reader, &fields, usual, shelf.map(PolicyOrigin::Shelf));
    }
    shelf::nothing_written(reader, &fields);
    let (url, database) = shelf::mongodb_database(reader, &fields);
    let collection = reader.setting(&fields, "collection", |text| {
        not_empty(text, "a collection")
    });
    let origin = url.zip(database).map(|(url, database)| {
        PolicyOrigin::MongoDb(Box::new(MongoRules {
            url,
            database,
            collection: collection.unwrap_or_else(|| "rate_limit_rules".to_owned()),
        }))
    });
    let usual = (PolicySource::REFRESH, PolicySource::TIMEOUT);
    asked(reader, &fields, usual, origin)
}
