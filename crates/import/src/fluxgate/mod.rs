//! Imports `FluxGate`: its rules from `MongoDB` and Redis, and its settings, `fluxgate.*` in an
//! `application.yml`.
//!
//! | module | contents |
//! |---|---|
//! | `forms` | the kind of a document |
//! | `rule` | a rule, and the rule set in a hash of Redis |
//! | `record` | such a hash, field by field |
//! | `band` | a band |
//! | `number` | numbers of any width |
//! | `settings` | `fluxgate.*` |
//! | `translate` | rule sets as policies |
//!
//! A rule set becomes a policy, and all its rules must allow: `evaluate: all`. In `FluxGate`, the
//! charges of earlier rules and bands remain if a later one refuses. In Tidegate, all of them are
//! decided atomically.

mod band;
mod forms;
mod number;
mod record;
mod rule;
mod settings;
#[cfg(test)]
mod tests;
mod translate;

use super::document::{ImportErrors, ImportedFile};
use super::note::ImportNotes;
use super::text::quote;
use super::{ImportedConfig, SourceFile};
pub(super) use forms::first_document;
pub use record::RuleSetRecord;
use settings::FluxgateSettings;
use tidegate_config::ConfigErrors;
use tidegate_policy::text::ConfigFault;

/// The contents of all files.
#[derive(Debug, Default)]
struct FluxgateFiles {
    rules: Vec<rule::FluxgateRule>,
    settings: FluxgateSettings,
}

/// Translates files of `FluxGate`: documents of rules, and `application.yml`.
///
/// ```
/// use tidegate_import::{SourceFile, fluxgate};
///
/// let file = SourceFile {
///     name: "rules.json".to_owned(),
///     text: r#"[{ "ruleSetId": "api-limits", "id": "per-ip", "scope": "PER_IP",
///       "bands": [{ "windowSeconds": 60, "capacity": 100, "label": "100-per-minute" }] }]"#
///         .to_owned(),
/// };
/// let yaml = fluxgate(&[file])?.to_yaml();
/// assert!(yaml.contains("- name: api-limits"));
/// assert!(yaml.contains("bands: [{ rate: 100/min, label: \"100-per-minute\" }]"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns the errors of all files together.
pub fn fluxgate(files: &[SourceFile]) -> Result<ImportedConfig, ConfigErrors> {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let whole = names.join(", ");
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let mut found = FluxgateFiles::default();
    for file in files {
        read(file, &mut notes, &mut wrong, &mut found);
    }
    wrong.finish(&whole)?;
    if found.rules.is_empty() && found.settings.mongodb.is_none() {
        let text = "no rules found: every request passes. Export the collection of rules and \
            import it together with the settings";
        notes.warn((&whole, 1), text);
        found.rules.push(rule::FluxgateRule::none(&whole));
    }
    let base = translate::base(&found, &mut notes);
    finish(found, base, &whole, notes)
}

/// Translates a document of rules from an HTTP server: a list of rules, one rule per line, or rule
/// sets. Without rules, there is no policy. Messages call the document `name`.
///
/// ```
/// use tidegate_import::fluxgate_rules;
///
/// let text = r#"{ "id": "all", "scope": "GLOBAL", "bands": [{ "windowSeconds": 1, "capacity": 5 }] }"#;
/// let part = fluxgate_rules("http", text)?.to_part();
/// assert!(part.contains("- name: default"));
/// assert!(part.contains("bands: [{ rate: 5/s, label: default }]"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the document.
pub fn fluxgate_rules(name: &str, text: &str) -> Result<ImportedConfig, ConfigErrors> {
    let file = SourceFile {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    fluxgate_collection(name, &[file])
}

/// Translates rules from a collection of `MongoDB` as [`fluxgate_rules`] does, with a file for each
/// rule set.
///
/// # Errors
///
/// Returns the errors of all files together.
pub fn fluxgate_collection(
    name: &str,
    files: &[SourceFile],
) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let mut found = FluxgateFiles::default();
    for file in files {
        read(file, &mut notes, &mut wrong, &mut found);
    }
    wrong.finish(name)?;
    finish(found, String::new(), name, notes)
}

/// Translates rule sets from Redis. Each is a hash: a rule with one band, or the JSON lists in its
/// fields `bands` or `rules`. Messages call the whole `name`, and each hash by its key.
///
/// ```
/// use tidegate_import::{RuleSetRecord, fluxgate_rule_sets};
///
/// let record = RuleSetRecord {
///     key: "fluxgate:ruleset:api-limits".to_owned(),
///     fields: [("ruleSetId", "api-limits"), ("capacity", "100"), ("windowSeconds", "60")]
///         .map(|(field, value)| (field.to_owned(), value.to_owned()))
///         .to_vec(),
/// };
/// let part = fluxgate_rule_sets("redis", &[record])?.to_part();
/// assert!(part.contains("- name: api-limits-rule"));
/// assert!(part.contains("key: ip"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns the errors of all rule sets together.
pub fn fluxgate_rule_sets(
    name: &str,
    records: &[RuleSetRecord],
) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let mut found = FluxgateFiles::default();
    for record in records {
        record.read(&mut notes, &mut wrong, &mut found);
    }
    wrong.finish(name)?;
    finish(found, String::new(), name, notes)
}

/// Returns text in quotes, so that YAML always reads it as text, even if it is empty.
fn in_quotes(text: &str) -> String {
    match quote(text) {
        quoted if quoted.starts_with('"') => quoted,
        plain => format!("\"{plain}\""),
    }
}

/// Reads a file of any kind.
fn read(
    file: &SourceFile,
    notes: &mut ImportNotes,
    wrong: &mut ImportErrors,
    found: &mut FluxgateFiles,
) {
    let file = forms::one_document(file, notes);
    let (mut document, tree) = ImportedFile::open(&file, "", nothing(), notes);
    document.note_loose_commas();
    if let Some(tree) = &tree {
        forms::read(&mut document, tree, found);
    }
    document.close(wrong);
}

fn finish(
    found: FluxgateFiles,
    base: String,
    whole: &str,
    mut notes: ImportNotes,
) -> Result<ImportedConfig, ConfigErrors> {
    let policies = translate::policies(found, whole, &mut notes)?;
    ImportedConfig {
        from: format!("FluxGate: {whole}"),
        base,
        policies,
        notes: notes.into_notes(),
    }
    .checked(whole)
}

fn nothing() -> ConfigFault {
    ConfigFault::new("no rules found").help(
        "expected rules, each with `id`, `ruleSetId`, `scope` and `bands`, or `fluxgate.redis` of an application.yml",
    )
}
