//! `match`: whom a limit applies to, and which requests take a route.

use super::client::networks;
use super::descriptor;
use super::fault::Fault;
use super::fields::{CONDITION, PLACE};
use super::foreign_path;
use super::key::attribute_name;
use super::reader::{Reader, Value};
use super::scalar::{header_name, method};
use super::syntax::Kind;
use super::table::{Fields, Table};
use crate::limit::Condition;
use crate::matching::{HostPattern, PathPattern};

/// Reads one condition, or a list of them.
pub(super) fn read_all(reader: &mut Reader<'_>, value: &Value<'_>) -> Vec<Condition> {
    let items = reader.one_or_many(value);
    let conditions = items.iter().filter_map(|item| condition(reader, item));
    let conditions: Vec<Condition> = conditions.collect();
    descriptor::refuse_mixed(reader, value, &conditions);
    conditions
}

/// Reads one condition of a route, or a list of them.
pub(super) fn read_places(reader: &mut Reader<'_>, value: &Value<'_>) -> Vec<Condition> {
    let items = reader.one_or_many(value);
    items
        .iter()
        .filter_map(|item| {
            let fields = said(reader, item, &PLACE)?;
            Some(place(reader, &fields))
        })
        .collect()
}

/// The fields of a condition, of which there must be one.
fn said<'v>(
    reader: &mut Reader<'_>,
    value: &Value<'v>,
    table: &'static Table,
) -> Option<Fields<'v>> {
    let fields = reader.fields(value, table)?;
    if fields.is_empty() {
        let fault = Fault::new("this condition says nothing")
            .help("for example `path: /api`; to match every request, leave `match` out");
        reader.error(fields.map().spot(), fault);
        return None;
    }
    Some(fields)
}

fn condition(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Condition> {
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

/// Path, method and host: what limits and routes both ask.
fn place(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Condition {
    Condition {
        path: path(reader, fields),
        methods: each(reader, fields, "method", method),
        hosts: each(reader, fields, "host", host),
        ..Condition::default()
    }
}

fn path(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<PathPattern> {
    let value = fields.get("path")?;
    if let Kind::List(_) = value.node.kind {
        let fault = Fault::new("`path` is a list; a condition has one path")
            .help("write one condition for each path: any of them will do");
        reader.error(value.spot(), fault);
        return None;
    }
    let pattern = reader.parse(&value, |text| {
        PathPattern::parse(text).map_err(|why| {
            let instead = foreign_path::instead_of(text);
            let example = "for example `/api`, `/api/*/users` or `/files/**/raw$`";
            Fault::new(why).help(instead.as_deref().unwrap_or(example))
        })
    })?;
    if let Some(instead) = foreign_path::instead_of(pattern.as_str()) {
        let fault = Fault::new(format!(
            "{} matches only these characters: a path is no regular expression and has no parameters",
            Fault::quote(pattern.as_str())
        ));
        reader.warn(value.spot(), fault.help(instead));
    }
    if pattern.matches_only_empty() {
        let fault =
            Fault::new("`$` matches only a request without a path, and no HTTP door has one")
                .help("write `/$` for the root, or `/` for every path");
        reader.warn(value.spot(), fault);
    }
    Some(pattern)
}

fn host(text: &str) -> Result<HostPattern, Fault> {
    HostPattern::parse(text)
        .map_err(|why| Fault::new(why).help("for example `api.example.com` or \"*.example.com\""))
}

/// One value or a list of them, each as `parse` understands it.
pub(super) fn each<T>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, Fault>,
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

/// A map of names to text, each name as `parse` understands it, and each text as `parse_text` does,
/// which is told the name too.
pub(super) fn pairs(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    name: &str,
    parse: impl Fn(&str) -> Result<String, Fault>,
    parse_text: impl Fn(&str, &str) -> Result<String, Fault>,
) -> Vec<(String, String)> {
    let Some(value) = fields.get(name) else {
        return Vec::new();
    };
    let Kind::Map(entries) = &value.node.kind else {
        reader.refuse_kind(
            &value,
            "a map of names to values, for example { X-Tier: gold }",
        );
        return Vec::new();
    };
    if entries.is_empty() {
        let fault = Fault::new(format!("`{name}` is an empty map"));
        reader.error(
            value.spot(),
            fault.help("leave the field out, or name something"),
        );
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for entry in entries {
        let child = value.child(&entry.key, &entry.value);
        let text = reader.text(&child);
        match parse(&entry.key.text) {
            // `X-Tier` and `x-tier` are the same header.
            Ok(name) if pairs.iter().any(|(other, _)| *other == name) => {
                let fault = Fault::new(format!("{} is there already", Fault::quote(&name)));
                reader.error(child.key_spot(), fault.help("names of headers ignore case"));
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
