//! A rule set in a hash of Redis.
//!
//! `FluxGate` writes a single rule with one band: `capacity`, `windowSeconds`, `keyStrategyId`. For
//! more than that, Tidegate has two further fields, `bands` and `rules`: JSON lists with the same
//! contents as in `MongoDB`. `FluxGate` ignores these fields. Here they take precedence over the
//! others.

use super::rule::{self, FluxgateLimit, FluxgateRule};
use super::{FluxgateFiles, in_quotes, nothing};
use crate::SourceFile;
use crate::document::{ImportErrors, ImportedFile, line};
use crate::note::ImportNotes;
use crate::text::{line as write_line, quote};
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind};

/// Tidegate's own fields.
const LISTS: [&str; 2] = ["rules", "bands"];

/// A rule set in Redis: a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSetRecord {
    /// The key of the hash, such as `fluxgate:ruleset:api-limits`. Messages name it.
    pub key: String,
    /// Its fields, in any order.
    pub fields: Vec<(String, String)>,
}

impl RuleSetRecord {
    /// Reads the rule set.
    pub(super) fn read(
        &self,
        notes: &mut ImportNotes,
        wrong: &mut ImportErrors,
        found: &mut FluxgateFiles,
    ) {
        let [rules, bands] = LISTS.map(|field| self.field_text(field));
        match (rules, bands) {
            (Some(rules), _) => self.read_rules(rules, (notes, wrong), found),
            (None, Some(bands)) if lists_nothing(bands) && self.has_band() => {
                let text = "`bands` is empty: `capacity` and `windowSeconds` are used";
                notes.warn((&self.key, 1), text);
                super::read(&self.file(), notes, wrong, found);
            }
            (None, Some(bands)) => self.read_bands(bands, (notes, wrong), found),
            (None, None) => super::read(&self.file(), notes, wrong, found),
        }
    }

    /// Writes the hash as a file, so that errors have a position.
    fn file(&self) -> SourceFile {
        let mut text = String::new();
        write_line(&mut text, 0, &format!("hash: {}", in_quotes(&self.key)));
        // Empty lists count as absent.
        let fields = self.fields.iter();
        let fields = fields.filter(|(field, _)| !LISTS.contains(&field.as_str()));
        for (field, value) in fields {
            write_line(
                &mut text,
                0,
                &format!("{}: {}", quote(field), in_quotes(value)),
            );
        }
        SourceFile {
            name: self.key.clone(),
            text,
        }
    }

    /// Returns the value of a field, unless it is blank.
    fn field_text(&self, field: &str) -> Option<&str> {
        let of = |(name, _): &&(String, String)| name == field;
        let value = self.fields.iter().find(of).map(|(_, value)| value.as_str());
        value.filter(|value| !value.trim().is_empty())
    }

    /// Returns true if the hash has the band that `FluxGate` writes.
    fn has_band(&self) -> bool {
        self.field_text("capacity").is_some() || self.field_text("windowSeconds").is_some()
    }

    /// Returns the id of the rule set, from its field or from the key.
    fn set(&self) -> &str {
        let last = || self.key.rsplit(':').next().unwrap_or(&self.key);
        self.field_text("ruleSetId").unwrap_or_else(last)
    }

    /// Returns a field that is a document itself.
    fn inner(&self, field: &str, text: &str) -> SourceFile {
        SourceFile {
            name: format!("{}, {field}", self.key),
            text: text.to_owned(),
        }
    }

    /// Reads `rules`.
    fn read_rules(
        &self,
        text: &str,
        (notes, wrong): (&mut ImportNotes, &mut ImportErrors),
        found: &mut FluxgateFiles,
    ) {
        let file = self.inner("rules", text);
        let (mut document, tree) = ImportedFile::open(&file, "", nothing(), notes);
        document.note_loose_commas();
        if let Some(tree) = &tree {
            let root = ConfigValue::root(tree);
            let items = list(&mut document, &root, "a list of rules");
            for item in &items {
                let rule = rule::read(&mut document, item, Some(self.set()));
                found
                    .rules
                    .extend(rule.and_then(|rule| self.own(&mut document, item, rule)));
            }
            if items.is_empty() {
                found
                    .rules
                    .extend(rule::none(&document, &root, Some(self.set())));
            }
        }
        document.close(wrong);
    }

    /// Returns the rule, or reports it if it names another set. It would be unknown which of the two
    /// hashes applies.
    fn own(
        &self,
        document: &mut ImportedFile<'_>,
        item: &ConfigValue<'_>,
        rule: FluxgateRule,
    ) -> Option<FluxgateRule> {
        let set = self.set();
        if rule.set == set {
            return Some(rule);
        }
        let fault = ConfigFault::new(format!(
            "`ruleSetId` of this rule is {}, but it is in rule set {}",
            ConfigFault::quote(&rule.set),
            ConfigFault::quote(set)
        ));
        document.error(item.spot(), fault.help("remove `ruleSetId`"));
        None
    }

    /// Reads `bands`, which all belong to one rule.
    fn read_bands(
        &self,
        text: &str,
        (notes, wrong): (&mut ImportNotes, &mut ImportErrors),
        found: &mut FluxgateFiles,
    ) {
        let file = self.inner("bands", text);
        let (mut document, tree) = ImportedFile::open(&file, "", nothing(), notes);
        document.note_loose_commas();
        if let Some(tree) = &tree {
            let root = ConfigValue::root(tree);
            list(&mut document, &root, "a list of bands");
            let strategy = self.field_text("keyStrategyId").unwrap_or(rule::BY_ADDRESS);
            let scope = rule::scope_of(&mut document, tree.place, strategy);
            let bands = rule::band_list(&mut document, &root).unwrap_or_default();
            let limit = (!bands.is_empty()).then(|| FluxgateLimit {
                id: format!("{}-rule", self.set()),
                enabled: true,
                scope,
                waits: false,
                bands,
            });
            found.rules.push(FluxgateRule {
                set: self.set().to_owned(),
                limit,
                place: (file.name.clone(), line(tree.place)),
            });
        }
        document.close(wrong);
    }
}

/// Returns true if a text is an empty list.
fn lists_nothing(text: &str) -> bool {
    let inside = text.trim().strip_prefix('[');
    let inside = inside.and_then(|text| text.strip_suffix(']'));
    inside.is_some_and(|text| text.trim().is_empty())
}

/// Returns the items of a list, or reports that it is none.
fn list<'v>(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'v>,
    what: &str,
) -> Vec<ConfigValue<'v>> {
    if let NodeKind::List(items) = &value.node.kind {
        return value.items(items);
    }
    document.refuse(value, what);
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::RuleSetRecord;
    use crate::fluxgate_rule_sets;

    const KEY: &str = "fluxgate:ruleset:api-limits";

    fn record(fields: &[(&str, &str)]) -> RuleSetRecord {
        let fields = fields.iter();
        RuleSetRecord {
            key: KEY.to_owned(),
            fields: fields
                .map(|(field, value)| ((*field).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    fn part(fields: &[(&str, &str)]) -> String {
        let imported = fluxgate_rule_sets("redis", &[record(fields)]);
        imported.expect("a valid config").to_part()
    }

    fn errors(fields: &[(&str, &str)]) -> String {
        let imported = fluxgate_rule_sets("redis", &[record(fields)]);
        imported.expect_err("an invalid document").to_string()
    }

    #[test]
    fn a_hash_is_one_rule_with_one_band_and_default_size() {
        let part = part(&[("keyStrategyId", "userId"), ("createdAt", "1700000000")]);
        for said in [
            "- name: api-limits",
            "name: api-limits-rule",
            "key: user",
            "rate: 10/min",
            "label: default",
        ] {
            assert!(part.contains(said), "{said}: {part}");
        }
    }

    #[test]
    fn bands_override_capacity_and_window() {
        let bands = r#"[{ "windowSeconds": 1, "capacity": 10, "label": "10-per-second" },
                        { "windowSeconds": 60, "capacity": "100", "label": "100-per-minute" }]"#;
        let part = part(&[("capacity", "7"), ("windowSeconds", "7"), ("bands", bands)]);
        for said in [
            "name: api-limits-rule",
            "key: ip",
            "10/s",
            "10-per-second",
            "100/min",
            "100-per-minute",
        ] {
            assert!(part.contains(said), "{said}: {part}");
        }
        assert!(!part.contains("7/7s"), "{part}");
    }

    #[test]
    fn rules_override_all_other_fields_and_keep_their_order() {
        let rules = r#"[
            { "id": "rule-1", "scope": "PER_IP", "bands": [{ "windowSeconds": 1, "capacity": 10 }] },
            { "id": "rule-2", "scope": "PER_USER", "bands": [{ "windowSeconds": 60, "capacity": 100 }], "enabled": false },
            { "id": "rule-3", "scope": "GLOBAL", "bands": [] }]"#;
        let part = part(&[
            ("capacity", "none of it"),
            ("bands", "[]"),
            ("rules", rules),
        ]);
        let at = |said: &str| part.find(said).unwrap_or_else(|| panic!("{said}: {part}"));
        assert!(
            at("rule-1") < at("key: ip") && at("key: ip") < at("rule-2"),
            "{part}"
        );
        assert!(at("rule-2") < at("key: user"), "{part}");
        assert!(part.contains("mode: off"), "{part}");
        assert!(!part.contains("rule-3"), "it limits nothing: {part}");
    }

    #[test]
    fn an_empty_list_of_rules_allows_everything() {
        for fields in [[("rules", "[]")], [("bands", "[]")]] {
            let part = part(&fields);
            assert!(part.contains("- name: api-limits"), "{part}");
            assert!(part.contains("mode: off"), "{part}");
        }
    }

    #[test]
    fn a_band_next_to_an_empty_list_of_bands_was_ignored() {
        let part = part(&[
            ("capacity", "7"),
            ("windowSeconds", "60"),
            ("bands", " [ ] "),
        ]);
        assert!(part.contains("rate: 7/min"), "{part}");
        assert!(!part.contains("mode: off"), "{part}");
    }

    #[test]
    fn errors_name_the_key_and_the_field() {
        let other = r#"[{ "id": "a", "ruleSetId": "other", "bands": [{ "windowSeconds": 1, "capacity": 1 }] }]"#;
        for (fields, expected) in [
            (
                vec![("capacity", "ten"), ("windowSeconds", "0")],
                vec![KEY, "`capacity` is `ten`", "`windowSeconds` is `0`"],
            ),
            (
                vec![("capcity", "10")],
                vec!["capcity", "did you mean `capacity`?"],
            ),
            (
                vec![("rules", "{}")],
                vec!["fluxgate:ruleset:api-limits, rules", "a list of rules"],
            ),
            (
                vec![("rules", "[{")],
                vec!["fluxgate:ruleset:api-limits, rules:2"],
            ),
            (vec![("rules", "[1]")], vec!["a rule, which is a map"]),
            (
                vec![("rules", other)],
                vec!["of this rule is `other`", "`api-limits`"],
            ),
            (
                vec![("bands", "nonsense")],
                vec!["fluxgate:ruleset:api-limits, bands", "a list of bands"],
            ),
            (
                vec![("bands", r#"[{ "windowSeconds": 1 }]"#)],
                vec!["a band needs `capacity`"],
            ),
        ] {
            let message = errors(&fields);
            for part in expected {
                assert!(message.contains(part), "{fields:?}: {message}");
            }
        }
    }

    #[test]
    fn an_empty_list_equals_an_absent_one() {
        let part = part(&[("capacity", "5"), ("rules", " "), ("bands", "")]);
        assert!(part.contains("5/min"), "{part}");
    }

    #[test]
    fn field_values_cannot_inject_yaml() {
        let rules = "[] }, { \"ruleSetId\": \"stolen\", \"rules\": []";
        assert!(errors(&[("rules", rules)]).contains(", rules:1"));
        let part = part(&[("createdAt", "x\nruleSetId: stolen"), ("capacity", "5")]);
        assert!(
            part.contains("- name: api-limits") && !part.contains("stolen"),
            "{part}"
        );
    }
}
