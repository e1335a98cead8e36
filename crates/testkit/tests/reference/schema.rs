//! The fields of a JSON body as a table.

use crate::api::Api;
use serde_json::Value;
use std::fmt::Write;

/// Returns the fields of all schemas without a part of their own, each below a heading.
pub(crate) fn write_others(api: &Api) -> String {
    let mut text = String::new();
    for name in api.others() {
        writeln!(text, "### {name}\n\n{}", write(api, name)).unwrap();
    }
    text
}

/// Returns the description of a schema and the table of its fields.
pub(crate) fn write(api: &Api, name: &str) -> String {
    let schema = api.schema(name);
    let mut text = String::new();
    if let Some(about) = schema["description"].as_str() {
        writeln!(text, "{about}\n").unwrap();
    }
    let mut rows = String::new();
    add_rows(api, schema, "", &mut rows);
    if rows.is_empty() {
        writeln!(text, "Value: {}.", value(api, schema)).unwrap();
    } else {
        let head = "| field | value | required | meaning |\n|---|---|---|---|\n";
        write!(text, "{head}{rows}").unwrap();
    }
    text
}

/// Adds a row for each field, and for the fields of objects in it: `entries[].key`.
fn add_rows(api: &Api, schema: &Value, prefix: &str, rows: &mut String) {
    let required: Vec<&Value> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|it| *it == name);
        let is_required = if is_required { "yes" } else { "" };
        let about = field["description"].as_str().unwrap_or_default();
        let (path, value) = (format!("`{prefix}{name}`"), value(api, field));
        let row = [
            path.as_str(),
            &value,
            is_required,
            about.trim_end_matches('.'),
        ];
        writeln!(rows, "{}", cells(&row)).unwrap();
        let (inner, brackets) = match &field["items"] {
            Value::Null => (field, ""),
            items => (items, "[]"),
        };
        let choices = inner["anyOf"].as_array().into_iter().flatten();
        for inner in choices.chain([inner]) {
            add_rows(api, inner, &format!("{prefix}{name}{brackets}."), rows);
        }
    }
}

/// Returns a row of a table.
pub(crate) fn cells(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|it| it.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

/// Returns the values that a schema allows, such as "text or null".
pub(crate) fn value(api: &Api, schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return api.link(name.rsplit('/').next().unwrap());
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[keyword].as_array() {
            let choices = choices.iter().map(|choice| value(api, choice));
            return choices.collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(word) = schema.get("const") {
        return format!("`{}`", plain(word));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(|word| format!("`{}`", plain(word)));
        return words.collect::<Vec<_>>().join(", ");
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().collect(),
        Value::Null => return "any".to_owned(),
        one => vec![one],
    };
    let types = types
        .iter()
        .map(|it| kind(api, schema, it.as_str().unwrap()));
    types.collect::<Vec<_>>().join(" or ")
}

fn kind(api: &Api, schema: &Value, kind: &str) -> String {
    match kind {
        "string" => match schema["format"].as_str() {
            Some("ipv4") => "IPv4 address".to_owned(),
            Some("ipv6") => "IPv6 address".to_owned(),
            _ => "text".to_owned(),
        },
        "integer" => format!("integer{}", range(schema)),
        "array" => {
            let most = schema["maxItems"].as_u64();
            let most = most.map_or_else(String::new, |most| format!(" of up to {most}"));
            format!("list{most}: {}", inner(api, &schema["items"]))
        }
        "object" if schema["additionalProperties"].is_object() => {
            format!("by name: {}", inner(api, &schema["additionalProperties"]))
        }
        other => other.to_owned(),
    }
}

/// Returns the values of items, in parentheses if there is a choice.
fn inner(api: &Api, schema: &Value) -> String {
    let value = value(api, schema);
    if value.contains(" or ") {
        format!("({value})")
    } else {
        value
    }
}

/// Returns the range of an integer. The largest numbers that fit its type are no bound worth a word.
fn range(schema: &Value) -> String {
    let most = schema["maximum"].as_u64().filter(|most| *most < 1 << 53);
    match (schema["minimum"].as_i64(), most) {
        (Some(least), Some(most)) => format!(" {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        _ => String::new(),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
