//! The location of `FluxGate`'s rules: rule sets in Redis, or a collection in `MongoDB`. The collection
//! may hold Tidegate's own documents instead.

use super::origin::{SourceEndpoint, timed};
use super::shelf::{self, sound};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::language::words::FORMAT;
use crate::sections::plans::not_empty;
use crate::source::{DocumentFormat, MongoRules, PolicyOrigin, PolicySource, RuleSets};
use crate::tables::sources::{CHANNEL, MONGODB, WRITABLE};
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;

/// Fields of a hash that do not apply to rule sets.
const HASH_ONLY: [&str; 2] = ["key", "writable"];

/// Reports `channel` for a source without rule sets.
pub(super) fn no_rule_sets(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    if let Some(channel) = fields.get(CHANNEL.name) {
        let fault = ConfigFault::new("`channel` is only for `rulesets`");
        let fault = fault.help("add `rulesets`, or remove it");
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
            let fault = ConfigFault::new(format!("`{name}` conflicts with `rulesets`"));
            let fault = fault.help("remove it: FluxGate rule sets are read-only");
            reader.error(value.key_spot(), fault);
        }
    }
    let prefix = reader.parse(said, |text| sound(text, "`fluxgate`"));
    let prefix = prefix.map(|prefix| prefix.trim_end_matches(':').to_owned());
    let written = reader.setting(fields, CHANNEL.name, |text| {
        sound(text, "`fluxgate:rule-reload`")
    });
    let origin = target.zip(prefix).map(|(redis, prefix)| {
        PolicyOrigin::RuleSets(Box::new(RuleSets {
            redis: redis.clone(),
            channel: written.unwrap_or_else(|| format!("{prefix}:rule-reload")),
            prefix,
        }))
    });
    let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
    timed(origin, usual)
}

/// Reads the location of a collection of Tidegate's own documents, or of rules.
pub(super) fn mongodb(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &MONGODB)?;
    let format = reader.setting(&fields, "format", |word| match FORMAT.parse(word)? {
        DocumentFormat::TraefikPlugin => {
            let fault = ConfigFault::new("MongoDB has no documents of this format");
            Err(fault.help("use `tidegate` or `fluxgate`"))
        }
        format => Ok(format),
    });
    if format != Some(DocumentFormat::Fluxgate) {
        let shelf = shelf::mongodb(reader, &fields, "collection", "tidegate_policies");
        let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
        return timed(shelf.map(PolicyOrigin::Shelf), usual);
    }
    if let Some(value) = fields.get(WRITABLE.name) {
        let fault = ConfigFault::new("`writable` is only for `format: tidegate`");
        let help = "FluxGate rules are never written; remove it";
        reader.error(value.key_spot(), fault.help(help));
    }
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
    timed(origin, usual)
}
