//! `match`: the requests that a limit applies to, or that take a route.

use super::client::networks;
use super::descriptor;
use super::key::attribute_name;
use crate::language::foreign_path;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{header_name, method};
use crate::language::table::{FieldReader, FieldTable};
use crate::syntax::NodeKind;
use crate::tables::{CONDITION, PLACE};
use tidegate_policy::limit::Condition;
use tidegate_policy::matching::{HostPattern, PathPattern};
use tidegate_policy::text::ConfigFault;

/// Reads one condition, or a list of them.
pub(crate) fn read_all(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Vec<Condition> {
    let items = reader.one_or_many(value);
    let conditions = items.iter().filter_map(|item| condition(reader, item));
    let conditions: Vec<Condition> = conditions.collect();
    descriptor::refuse_mixed(reader, value, &conditions);
    conditions
}

/// Reads one condition of a route, or a list of them.
pub(crate) fn read_places(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
) -> Vec<Condition> {
    let items = reader.one_or_many(value);
    items
        .iter()
        .filter_map(|item| {
            let fields = said(reader, item, &PLACE)?;
            Some(place(reader, &fields))
        })
        .collect()
}

/// Reads the fields of a condition. There must be at least one.
fn said<'v>(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'v>,
    table: &'static FieldTable,
) -> Option<FieldReader<'v>> {
    let fields = reader.fields(value, table)?;
    if fields.is_empty() {
        let fault = ConfigFault::new("this condition is empty")
            .help("for example `path: /api`; to match every request, remove `match`");
        reader.error(fields.map().spot(), fault);
        return None;
    }
    Some(fields)
}

fn condition(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Condition> {
    let fields = said(reader, value, &CONDITION)?;
    let as_written = |_: &str, text: &str| Ok(text.to_owned());
    Some(Condition {
        headers: pairs(reader, &fields, "headers", header_name, as_written),
        clients: match fields.get("client") {
            Some(value) => networks(reader, &value),
            None => Vec::new(),
        },
        attributes: pairs(reader, &fields, "attributes", attribute_name, as_written),
        descriptor: descriptor::read(reader, &fields),
        ..place(reader, &fields)
    })
}

/// Reads path, method and host, the fields that limits and routes share.
fn place(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Condition {
    Condition {
        path: path(reader, fields),
        methods: each(reader, fields, "method", method),
        hosts: each(reader, fields, "host", host),
        ..Condition::default()
    }
}

fn path(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<PathPattern> {
    let value = fields.get("path")?;
    if let NodeKind::List(_) = value.node.kind {
        let fault = ConfigFault::new("`path` is a list; a condition has one path")
            .help("write one condition per path: one match is enough");
        reader.error(value.spot(), fault);
        return None;
    }
    let pattern = reader.parse(&value, |text| {
        PathPattern::parse(text).map_err(|why| {
            let instead = foreign_path::instead_of(text);
            let example = "for example `/api`, `/api/*/users` or `/files/**/raw$`";
            ConfigFault::new(why).help(instead.as_deref().unwrap_or(example))
        })
    })?;
    if let Some(instead) = foreign_path::instead_of(pattern.as_str()) {
        let fault = ConfigFault::new(format!(
            "{} is matched literally: paths have no regular expressions or parameters",
            ConfigFault::quote(pattern.as_str())
        ));
        reader.warn(value.spot(), fault.help(instead));
    }
    if pattern.matches_only_empty() {
        let fault = ConfigFault::new(
            "`$` matches only requests without a path, which HTTP requests \
                never are",
        )
        .help("write `/$` for the root, or `/` for every path");
        reader.warn(value.spot(), fault);
    }
    Some(pattern)
}

fn host(text: &str) -> Result<HostPattern, ConfigFault> {
    HostPattern::parse(text).map_err(|why| {
        ConfigFault::new(why).help("for example `api.example.com` or \"*.example.com\"")
    })
}

/// Reads a value or a list of values with `parse`.
pub(crate) fn each<T>(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, ConfigFault>,
) -> Vec<T> {
    let Some(value) = fields.get(name) else {
        return Vec::new();
    };
    let items = reader.one_or_many(&value);
    items
        .iter()
        .filter_map(|item| reader.parse(item, &parse))
        .collect()
}

/// Reads a map of names to texts: each name with `parse`, each text with `parse_text`, which also gets
/// the name.
pub(crate) fn pairs(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    parse: impl Fn(&str) -> Result<String, ConfigFault>,
    parse_text: impl Fn(&str, &str) -> Result<String, ConfigFault>,
) -> Vec<(String, String)> {
    let Some(value) = fields.get(name) else {
        return Vec::new();
    };
    let NodeKind::Map(entries) = &value.node.kind else {
        reader.refuse_kind(
            &value,
            "a map of names to values, for example { X-Tier: gold }",
        );
        return Vec::new();
    };
    if entries.is_empty() {
        let fault = ConfigFault::new(format!("`{name}` is an empty map"));
        reader.error(
            value.spot(),
            fault.help("remove the field, or add an entry"),
        );
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for entry in entries {
        let child = value.child(&entry.key, &entry.value);
        let text = reader.text(&child);
        match parse(&entry.key.text) {
            // `X-Tier` and `x-tier` are the same header.
            Ok(name) if pairs.iter().any(|(other, _)| *other == name) => {
                let fault = ConfigFault::new(format!("duplicate {}", ConfigFault::quote(&name)));
                reader.error(
                    child.key_spot(),
                    fault.help("header names are case-insensitive"),
                );
            }
            Ok(name) => {
                let text = text.and_then(|text| reader.accept(&child, parse_text(&name, &text)));
                pairs.extend(text.map(|text| (name, text)));
            }
            Err(fault) => reader.error(child.key_spot(), fault),
        }
    }
    pairs
}
