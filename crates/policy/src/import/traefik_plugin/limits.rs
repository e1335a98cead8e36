//! The document of limits, and one limit.

use super::rule::{self, Rule};
use crate::config::{Fault, Kind, LIMITS_MAX, Value, parse_band};
use crate::import::document::{Document, line};
use crate::import::map::{AMOUNT_MAX, Known, Map, positive};
use std::collections::BTreeMap;
use tidegate_core::Algorithm;

static DOCUMENT: Known = Known {
    what: "a document of limits",
    fields: &["limits"],
};

static LIMIT: Known = Known {
    what: "a limit",
    fields: &["rules", "limit"],
};

/// The limits that are left, in order.
#[derive(Debug, Default)]
pub(super) struct Found(pub(super) Vec<Limit>);

/// A limit.
#[derive(Debug)]
pub(super) struct Limit {
    /// Any of these.
    pub(super) rules: Vec<Rule>,
    /// How many pass in a second.
    pub(super) amount: u64,
}

/// Rules that there were, and the line of each.
type Seen = BTreeMap<String, usize>;

/// Reads a document.
pub(super) fn read(document: &mut Document<'_>, root: &Value<'_>) -> Found {
    let Some(map) = Map::read(document, root, &DOCUMENT) else {
        return Found::default();
    };
    // No limits at all is a way to say that nothing is limited; not to speak of them is none.
    let Some(list) = map.required(document, "limits", &DOCUMENT) else {
        return Found::default();
    };
    let items = document.items(&list);
    if let Some(first) = items.get(LIMITS_MAX) {
        let count = items.len();
        let message = format!("there are {count} limits; at most {LIMITS_MAX} are supported");
        document.error(first.spot(), Fault::new(message));
    }
    let mut seen = Seen::new();
    let limits = items.iter();
    let limits = limits.filter_map(|item| limit(document, item, &mut seen));
    Found(limits.collect())
}

/// Reads a limit; `None` where something is wrong, or where all of its rules were there before.
fn limit(document: &mut Document<'_>, item: &Value<'_>, seen: &mut Seen) -> Option<Limit> {
    let map = Map::read(document, item, &LIMIT)?;
    let rules = rules(document, &map);
    let amount = map.required(document, "limit", &LIMIT);
    let amount = amount.and_then(|value| amount_of(document, &value));
    let (rules, amount) = (rules?, amount?);
    let mut own = Vec::new();
    for rule in rules {
        if let Some(first) = seen.get(&rule.identity()) {
            let text = format!(
                "this rule is the same as the one on line {first}, which comes first: it is left out"
            );
            document.notes.warn((document.file(), rule.line), text);
        } else {
            seen.insert(rule.identity(), rule.line);
            own.push(rule);
        }
    }
    if own.is_empty() {
        let text =
            "no rule of this limit is left: it is left out, for no request would be counted by it";
        document
            .notes
            .warn((document.file(), line(item.node.place)), text);
        return None;
    }
    Some(Limit { rules: own, amount })
}

/// The rules of a limit, of which there must be one, and all of which must be sound.
fn rules(document: &mut Document<'_>, map: &Map<'_>) -> Option<Vec<Rule>> {
    let list = map.required(document, "rules", &LIMIT)?;
    if let Kind::List(items) = &list.node.kind
        && items.is_empty()
    {
        let fault = Fault::new("`rules` is an empty list")
            .help(r#"a limit needs a rule; for every request, write { "urlpathpattern": "/" }"#);
        document.error(list.spot(), fault);
        return None;
    }
    let Kind::List(_) = &list.node.kind else {
        document.refuse(&list, "a list");
        return None;
    };
    let items = document.items(&list);
    let read: Vec<Option<Rule>> = items.iter().map(|it| rule::read(document, it)).collect();
    read.into_iter().collect()
}

/// How many a second, such as the language can count.
fn amount_of(document: &mut Document<'_>, value: &Value<'_>) -> Option<u64> {
    let amount = positive(document, value, AMOUNT_MAX)?;
    match parse_band(&format!("{amount}/s"), Algorithm::BucketedWindow, None) {
        Ok(_) => Some(amount),
        Err(why) => {
            document.error(value.spot(), Fault::new(why));
            None
        }
    }
}
