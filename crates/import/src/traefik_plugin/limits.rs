//! The document of limits, and a limit.

use super::rule::{self, PluginRule};
use crate::document::{ImportedFile, line};
use crate::map::{AMOUNT_MAX, ImportMap, ImportMapFields, positive};
use std::collections::BTreeMap;
use tidegate_config::reading::{ConfigValue, LIMITS_MAX};
use tidegate_core::Algorithm;
use tidegate_policy::band::Band;
use tidegate_policy::text::{ConfigFault, NodeKind};

static DOCUMENT: ImportMapFields = ImportMapFields {
    what: "a document of limits",
    fields: &["limits"],
};

static LIMIT: ImportMapFields = ImportMapFields {
    what: "a limit",
    fields: &["rules", "limit"],
};

/// The limits that remain, in order.
#[derive(Debug, Default)]
pub(super) struct PluginLimits(pub(super) Vec<PluginLimit>);

/// A limit.
#[derive(Debug)]
pub(super) struct PluginLimit {
    /// The rules, of which any must match.
    pub(super) rules: Vec<PluginRule>,
    /// The number of requests that pass per second.
    pub(super) amount: u64,
}

/// The rules so far, with the line of each.
type RuleLines = BTreeMap<String, usize>;

/// Reads a document.
pub(super) fn read(document: &mut ImportedFile<'_>, root: &ConfigValue<'_>) -> PluginLimits {
    let Some(map) = ImportMap::read(document, root, &DOCUMENT) else {
        return PluginLimits::default();
    };
    // An empty list means that nothing is limited. A missing list is an error.
    let Some(list) = map.required(document, "limits", &DOCUMENT) else {
        return PluginLimits::default();
    };
    let items = document.items(&list);
    if let Some(first) = items.get(LIMITS_MAX) {
        let count = items.len();
        let message = format!("there are {count} limits; at most {LIMITS_MAX} are supported");
        document.error(first.spot(), ConfigFault::new(message));
    }
    let mut seen = RuleLines::new();
    let limits = items.iter();
    let limits = limits.filter_map(|item| limit(document, item, &mut seen));
    PluginLimits(limits.collect())
}

/// Reads a limit; `None` after an error, or if all its rules are duplicates.
fn limit(
    document: &mut ImportedFile<'_>,
    item: &ConfigValue<'_>,
    seen: &mut RuleLines,
) -> Option<PluginLimit> {
    let map = ImportMap::read(document, item, &LIMIT)?;
    let rules = rules(document, &map);
    let amount = map.required(document, "limit", &LIMIT);
    let amount = amount.and_then(|value| amount_of(document, &value));
    let (rules, amount) = (rules?, amount?);
    let mut own = Vec::new();
    for rule in rules {
        if let Some(first) = seen.get(&rule.identity()) {
            let text = format!("skipped: this rule repeats the one on line {first}");
            document.notes.warn((document.file(), rule.line), text);
        } else {
            seen.insert(rule.identity(), rule.line);
            own.push(rule);
        }
    }
    if own.is_empty() {
        let text = "skipped: all rules of this limit repeat earlier ones";
        document
            .notes
            .warn((document.file(), line(item.node.place)), text);
        return None;
    }
    Some(PluginLimit { rules: own, amount })
}

/// Reads the rules of a limit. There must be at least one, and all must be valid.
fn rules(document: &mut ImportedFile<'_>, map: &ImportMap<'_>) -> Option<Vec<PluginRule>> {
    let list = map.required(document, "rules", &LIMIT)?;
    if let NodeKind::List(items) = &list.node.kind
        && items.is_empty()
    {
        let fault = ConfigFault::new("`rules` is an empty list")
            .help(r#"a limit needs a rule; for every request, write { "urlpathpattern": "/" }"#);
        document.error(list.spot(), fault);
        return None;
    }
    let NodeKind::List(_) = &list.node.kind else {
        document.refuse(&list, "a list");
        return None;
    };
    let items = document.items(&list);
    let read: Vec<Option<PluginRule>> = items.iter().map(|it| rule::read(document, it)).collect();
    read.into_iter().collect()
}

/// Reads the number of requests per second, if Tidegate can count it.
fn amount_of(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<u64> {
    let amount = positive(document, value, AMOUNT_MAX)?;
    match Band::parse(&format!("{amount}/s"), Algorithm::BucketedWindow) {
        Ok(_) => Some(amount),
        Err(why) => {
            document.error(value.spot(), ConfigFault::new(why));
            None
        }
    }
}
