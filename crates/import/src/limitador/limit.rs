//! A limit.

use super::expression::{condition, variable};
use crate::document::{ImportedFile, bad_key, bad_value};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_config::reading::{ConfigValue, FieldReader, FieldTable, Shape, optional, required};
use tidegate_policy::text::ConfigFault;

/// The fields of a limit in limitador.
static LIMIT: FieldTable = FieldTable {
    what: "limit",
    fields: &[
        optional("id", Shape::Text("a"), "Id in the API."),
        required("namespace", Shape::Text("shop"), "Domain of requests."),
        optional("name", Shape::Text("a"), "Name in metrics."),
        required("max_value", Shape::Text("5"), "Amount per window."),
        required("seconds", Shape::Text("60"), "Window length."),
        optional(
            "conditions",
            Shape::List(&Shape::Text("")),
            "Conditions that must all match.",
        ),
        optional(
            "variables",
            Shape::List(&Shape::Text("")),
            "Values that each get their own window.",
        ),
    ],
    exactly_one: &[],
};

/// A limit that was read.
#[derive(Debug)]
pub(super) struct LimitadorLimit<'v> {
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    pub(super) amount: u64,
    pub(super) seconds: u64,
    /// The required entries, each with its value; `None` if any value matches.
    pub(super) entries: BTreeMap<String, Option<String>>,
    pub(super) variables: BTreeSet<String>,
    pub(super) value: ConfigValue<'v>,
}

/// Reads a limit; `None` after reporting all its errors.
pub(super) fn read<'v>(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'v>,
) -> Option<LimitadorLimit<'v>> {
    let fields = document.fields(value, &LIMIT)?;
    let namespace = text(document, &fields, "namespace");
    let name = fields.get("name").and_then(|value| document.text(&value));
    let amount = number(document, &fields, "max_value", u64::MAX);
    let seconds = number(document, &fields, "seconds", u64::MAX);
    if seconds == Some(0) {
        let spot = fields.get("seconds").map_or(value.spot(), |it| it.spot());
        document.error(
            spot,
            ConfigFault::new("`seconds` is 0; expected at least 1"),
        );
    }
    let variables = variables(document, &fields);
    let entries = entries(document, &fields, variables.as_ref());
    Some(LimitadorLimit {
        namespace: namespace?,
        name: name.map(str::to_owned),
        amount: amount?,
        seconds: seconds.filter(|seconds| *seconds > 0)?,
        entries: entries?,
        variables: variables?,
        value: value.clone(),
    })
}

/// Reads a required text, which must not be empty.
fn text(document: &mut ImportedFile<'_>, fields: &FieldReader<'_>, name: &str) -> Option<String> {
    let value = fields.get(name)?;
    let text = document.text(&value);
    if text.is_none() && value.node.as_text().is_none_or(str::is_empty) {
        let fault = ConfigFault::new(format!("`{name}` is empty"));
        document.error(value.spot(), fault);
    }
    text.map(str::to_owned)
}

fn number(
    document: &mut ImportedFile<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    most: u64,
) -> Option<u64> {
    let value = fields.get(name)?;
    if value.node.as_text().is_none_or(str::is_empty) {
        document.refuse(&value, "a whole number");
        return None;
    }
    document.number(&value, most)
}

fn variables(
    document: &mut ImportedFile<'_>,
    fields: &FieldReader<'_>,
) -> Option<BTreeSet<String>> {
    let Some(list) = fields.get("variables") else {
        return Some(BTreeSet::new());
    };
    let mut all = Some(BTreeSet::new());
    for item in document.items(&list) {
        let name = document.text(&item).and_then(variable);
        let name = name.ok_or_else(|| foreign("descriptors[0].NAME"));
        let name = name.and_then(|name| bad_name(&name).map_or(Ok(name), Err));
        match (name, &mut all) {
            (Ok(name), Some(all)) => {
                all.insert(name);
            }
            (Ok(_), None) => {}
            (Err(fault), _) => {
                document.error(item.spot(), fault);
                all = None;
            }
        }
    }
    all
}

/// Returns the required entries: those that conditions compare, and the variables.
fn entries(
    document: &mut ImportedFile<'_>,
    fields: &FieldReader<'_>,
    variables: Option<&BTreeSet<String>>,
) -> Option<BTreeMap<String, Option<String>>> {
    let mut entries: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut is_sound = true;
    let list = fields.get("conditions");
    for item in list.map_or_else(Vec::new, |list| document.items(&list)) {
        let wanted = document.text(&item).and_then(condition);
        let fault = match wanted {
            None => Some(foreign("descriptors[0].NAME == 'VALUE'")),
            Some(wanted) => wanted
                .into_iter()
                .find_map(|(name, value)| want(&mut entries, name, &value)),
        };
        if let Some(fault) = fault {
            document.error(item.spot(), fault);
            is_sound = false;
        }
    }
    for name in variables.into_iter().flatten() {
        entries.entry(name.clone()).or_insert(None);
    }
    is_sound.then_some(entries)
}

/// Adds an entry with a required value, or returns the reason why it cannot.
fn want(
    entries: &mut BTreeMap<String, Option<String>>,
    name: String,
    value: &str,
) -> Option<ConfigFault> {
    if let Some(fault) = bad_name(&name).or_else(|| bad_value(value)) {
        return Some(fault);
    }
    if value.is_empty() || value.contains('*') {
        let message = format!("{} is not a supported value", ConfigFault::quote(value));
        let help = "in Tidegate an empty value matches any value, and `*` any characters";
        return Some(ConfigFault::new(message).help(help));
    }
    let quoted = ConfigFault::quote(&name);
    match entries.insert(name, Some(value.to_owned())) {
        Some(Some(other)) if other != value => {
            let message = format!("{quoted} cannot have two values, so this limit never applies");
            Some(ConfigFault::new(message).help("remove the limit, or one of the conditions"))
        }
        _ => None,
    }
}

/// Returns a fault if the configuration does not allow this name for an entry.
fn bad_name(name: &str) -> Option<ConfigFault> {
    let odd = name.contains(['*', '#']).then(|| {
        ConfigFault::new(format!(
            "{} cannot be the key of an entry",
            ConfigFault::quote(name)
        ))
        .help("`*` and `#` have a special meaning in Tidegate")
    });
    bad_key(name).or(odd)
}

fn foreign(example: &str) -> ConfigFault {
    ConfigFault::new("this expression is not supported").help(format!(
        "supported expressions look like `{example}`; for other conditions see `match` in the \
         documentation"
    ))
}
