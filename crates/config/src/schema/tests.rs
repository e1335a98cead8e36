//! Checks that the schema and the reader have the same fields, and that real configurations conform.

use super::json_schema;
use crate::config::CONFIG;
use crate::config::Config;
use crate::environment::NoEnvironment;
use crate::language::table::{FieldTable, Shape};
use crate::syntax::{NodeKind, YamlNode, read};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tidegate_policy::text::ConfigFault;

/// Wraps a value in a configuration.
type Wrap<'a> = &'a dyn Fn(Value) -> Value;

#[test]
fn every_field_of_the_tables_is_read() {
    check_table(&CONFIG, "", &|value| value);
}

/// Puts an invalid value into each field in turn: only a field that is read reports it.
fn check_table(table: &'static FieldTable, at: &str, wrap: Wrap<'_>) {
    for field in table.fields {
        let dot = if at.is_empty() { "" } else { "." };
        let path = format!("{at}{dot}{}", field.name);
        let wrap = |value: Value| wrap(json!({ field.name: value }));
        let text = wrap(json!([[]])).to_string();
        let errors = Config::parse(&text, "x", &NoEnvironment).unwrap_err();
        let mut problems = errors.problems().iter();
        assert!(
            problems.any(|problem| problem.path().starts_with(&path)),
            "nobody reads {path}"
        );
        check_shape(&field.shape, &path, &wrap);
    }
}

fn check_shape(shape: &'static Shape, path: &str, wrap: Wrap<'_>) {
    match shape {
        Shape::Map(table) => check_table(table, path, wrap),
        Shape::Named(inner) => {
            check_shape(inner, &format!("{path}.x"), &|value| {
                wrap(json!({ "x": value }))
            });
        }
        Shape::List(item) => {
            check_shape(item, &format!("{path}[0]"), &|value| wrap(json!([value])));
        }
        Shape::Either(shapes) => {
            for shape in *shapes {
                check_shape(shape, path, wrap);
            }
        }
        _ => {}
    }
}

#[test]
fn every_property_has_a_description() {
    let schema = json_schema();
    let definitions = schema["$defs"].as_object().unwrap();
    assert_eq!(definitions.len(), 55, "{:?}", definitions.keys());
    for table in definitions.values().chain([&schema]) {
        for (name, property) in table["properties"].as_object().into_iter().flatten() {
            let about = property["description"].as_str().unwrap();
            assert!(about.ends_with('.'), "{name}: {about}");
        }
    }
}

#[test]
fn two_tables_of_one_name_shared_one_definition() {
    let mut known: Vec<&'static FieldTable> = Vec::new();
    let mut left: Vec<&'static Shape> = CONFIG.fields.iter().map(|it| &it.shape).collect();
    while let Some(shape) = left.pop() {
        match shape {
            Shape::Named(inner) | Shape::List(inner) => left.push(inner),
            Shape::Either(shapes) => left.extend(shapes.iter()),
            Shape::Map(table) if !known.iter().any(|it| std::ptr::eq(*it, *table)) => {
                let other = known.iter().find(|it| it.what == table.what);
                let fields =
                    |it: &FieldTable| it.fields.iter().map(|it| it.name).collect::<Vec<_>>();
                let is_same = other.is_none_or(|it| fields(it) == fields(table));
                assert!(is_same, "two different tables are called {}", table.what);
                left.extend(table.fields.iter().map(|it| &it.shape));
                known.push(table);
            }
            _ => {}
        }
    }
}

#[test]
fn real_configurations_conform() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/vectors");
    let mut files: Vec<_> = fs::read_dir(vectors)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("config.yaml"))
        .filter(|path| path.exists())
        .collect();
    for name in ["everything", "cluster", "open", "plans", "switched-off"] {
        let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
        files.push(good.join(name).with_extension("yaml"));
    }
    assert!(files.len() > 10);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (tree, faults) = read(&text, ConfigFault::new("nothing"));
        assert!(faults.is_empty());
        let value = to_json(&tree.unwrap());
        assert_eq!(check(&value), Ok(()), "{}", file.display());
    }
}

#[test]
fn mistakes_do_not_conform() {
    let limit = |limit: Value| json!({ "policies": [{ "name": "a", "limits": [limit] }] });
    assert_eq!(check(&limit(json!({ "name": "b", "rate": "1/s" }))), Ok(()));
    for wrong in [
        json!({ "name": "b" }),
        json!({ "rate": "1/s" }),
        json!({ "name": "b", "rate": "1/s", "bands": ["1/s"] }),
        json!({ "name": "b", "rate": "1/s", "algorithm": "magic" }),
        json!({ "name": "b", "rate": "1/s", "enabled": "yes" }),
        json!({ "name": "b", "rate": "1/s", "keys": "ip" }),
        json!({ "name": "b", "rate": "1/s", "match": [{ "path": ["/a"] }] }),
    ] {
        assert!(check(&limit(wrong.clone())).is_err(), "{wrong}");
    }
}

/// Converts a node as an editor sees it: plain scalars have types.
fn to_json(node: &YamlNode) -> Value {
    match &node.kind {
        NodeKind::Text(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        NodeKind::Null | NodeKind::Broken => Value::Null,
        NodeKind::List(items) => items.iter().map(to_json).collect(),
        NodeKind::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.text.clone(), to_json(&entry.value)))
            .collect(),
    }
}

fn check(value: &Value) -> Result<(), String> {
    let schema = json_schema();
    conforms(value, &schema, &schema)
}

/// Implements the part of JSON Schema that [`json_schema`] uses. Of patterns, it only checks that the
/// text contains `${`, as a variable does.
fn conforms(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                conforms(value, root.pointer(pointer).unwrap(), root)?;
                true
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is_a(value, wanted)),
                wanted => is_a(value, wanted),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "pattern" => value.as_str().is_some_and(|text| text.contains("${")),
            "required" => {
                let names = wanted.as_array().unwrap().iter();
                names
                    .map(|name| name.as_str().unwrap())
                    .all(|name| value.get(name).is_some())
            }
            "anyOf" => count(value, wanted, root) > 0,
            "oneOf" => count(value, wanted, root) == 1,
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    conforms(item, wanted, root)?;
                }
                true
            }
            "additionalProperties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    match (schema["properties"].get(name), wanted) {
                        (Some(known), _) => conforms(inner, known, root)?,
                        (None, Value::Bool(false)) => return Err(format!("{name} is unknown")),
                        (None, other) => conforms(inner, other, root)?,
                    }
                }
                true
            }
            "minimum" => value.as_f64() >= wanted.as_f64(),
            "maximum" => value.as_f64() <= wanted.as_f64(),
            "exclusiveMinimum" => value.as_f64() > wanted.as_f64(),
            "minProperties" => value.as_object().is_some_and(|map| !map.is_empty()),
            "properties" | "description" | "examples" | "title" | "$schema" | "$defs" => true,
            other => {
                return Err(format!(
                    "the schema uses {other}, which this test does not know"
                ));
            }
        };
        if !holds {
            return Err(format!("{value} is not {keyword} {wanted}"));
        }
    }
    Ok(())
}

fn count(value: &Value, schemas: &Value, root: &Value) -> usize {
    let schemas = schemas.as_array().unwrap().iter();
    schemas
        .filter(|schema| conforms(value, schema, root).is_ok())
        .count()
}

fn is_a(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    }
}
