//! Recognizes the kind of a `FluxGate` document.

use super::rule::{self, RULE, RULE_SET};
use super::{FluxgateFiles, nothing, settings};
use crate::SourceFile;
use crate::document::ImportedFile;
use crate::json::is_json;
use crate::map::ImportMap;
use crate::note::ImportNotes;
use crate::properties::Properties;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{NodeKind, YamlNode};

/// Returns the text as a single document. Lines of JSON, as `mongoexport` writes them, become a list.
/// Of several documents with settings only the first is used, because the others belong to profiles.
pub(super) fn one_document(file: &SourceFile, notes: &mut ImportNotes) -> SourceFile {
    let text = if is_lines(&file.text) {
        list_of(&file.text)
    } else {
        first_document(file, notes)
    };
    SourceFile {
        name: file.name.clone(),
        text,
    }
}

/// Returns true if each line is a separate document.
fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let is_whole = |line: &str| line.trim().starts_with('{') && line.trim().ends_with('}');
    is_json(text) && lines.clone().count() > 1 && lines.all(is_whole)
}

/// Turns lines into a list with the same number of lines.
fn list_of(text: &str) -> String {
    let mut joined = String::from("[");
    let mut lines = text.trim_end().lines().peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        if lines.peek().is_some() && !line.trim().is_empty() {
            joined.push(',');
        }
        joined.push('\n');
    }
    joined.push(']');
    joined
}

/// Returns the text before the second document.
pub(crate) fn first_document(file: &SourceFile, notes: &mut ImportNotes) -> String {
    let is_mark = |line: &str| line == "---" || line.starts_with("--- ");
    let mut has_begun = false;
    let mut text = String::new();
    for (at, line) in file.text.lines().enumerate() {
        if is_mark(line) && has_begun {
            let note = "skipped: a second document for a profile";
            notes.add((&file.name, at.saturating_add(1)), note);
            return text;
        }
        let is_blank = line.trim().is_empty() || line.starts_with('#');
        has_begun = has_begun || is_mark(line) || !is_blank;
        text.push_str(line);
        text.push('\n');
    }
    file.text.clone()
}

/// Reads a document.
pub(super) fn read(document: &mut ImportedFile<'_>, tree: &YamlNode, found: &mut FluxgateFiles) {
    let root = ConfigValue::root(tree);
    match &tree.kind {
        NodeKind::Map(_) => map(document, &root, found),
        NodeKind::List(_) => {
            for item in document.items(&root) {
                map(document, &item, found);
            }
        }
        NodeKind::Broken => {}
        NodeKind::Null | NodeKind::Text(_) => document.error(root.spot(), nothing()),
    }
}

/// Reads a map: settings, a list of rules or of rule sets, a rule set, a hash, or a rule.
fn map(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>, found: &mut FluxgateFiles) {
    let NodeKind::Map(entries) = &value.node.kind else {
        return document.refuse(value, "a rule, which is a map");
    };
    let has = |name: &str| entries.iter().any(|entry| entry.key.text == name);
    let properties = Properties::of(value);
    if properties.has("fluxgate.") || properties.has("spring.") {
        settings::read(document, properties, &mut found.settings);
    } else if has("rules") || has("ruleSets") {
        rule_set(document, value, found);
    } else if has("hash") || (!has("bands") && (has("capacity") || has("windowSeconds"))) {
        found.rules.extend(rule::read_hash(document, value));
    } else {
        found.rules.extend(rule::read(document, value, None));
    }
}

/// Reads a rule set, or a list of them.
fn rule_set(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>, found: &mut FluxgateFiles) {
    let Some(set) = ImportMap::read(document, value, &RULE_SET) else {
        return;
    };
    if let Some(sets) = set.said("ruleSets") {
        for item in document.items(&sets) {
            map(document, &item, found);
        }
    }
    let id = set
        .text(document, "id")
        .or_else(|| set.text(document, "ruleSetId"));
    let Some(rules) = set.said("rules") else {
        return;
    };
    let items = document.items(&rules);
    for item in &items {
        if let NodeKind::Map(_) = item.node.kind {
            found.rules.extend(rule::read(document, item, id));
        } else {
            document.refuse(item, &format!("{}, which is a map", RULE.what));
        }
    }
    if items.is_empty() {
        found.rules.extend(rule::none(document, value, id));
    }
}
