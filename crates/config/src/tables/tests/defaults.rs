//! A documented default and no value at all are the same configuration.

use super::{field_table, name};
use crate::config::{CONFIG, Config};
use crate::environment::Environment;
use crate::language::table::{FieldTable, Shape};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Other fields that a table or a field needs, or that make its default apply.
const CONTEXT: &[(&str, &str)] = &[
    (
        "configuration",
        r#"{ "store": "redis://127.0.0.1:6379", "plans": [{ "name": "events", "file": "plans.yaml" }] }"#,
    ),
    (
        "admin",
        r#"{ "tokens": [{ "name": "ci", "role": "read",
            "hash": "sha256:0000000000000000000000000000000000000000000000000000000000000000" }] }"#,
    ),
    ("audit.max", r#"{ "stream": "audit" }"#),
    ("guard", r#"{ "deny": "ip", "redis": { "set": "banned" } }"#),
    ("jwt", r#"{ "secret": "0123456789abcdef0123456789abcdef" }"#),
    (
        "limit.align",
        r#"{ "algorithm": "fixed-window", "rate": "10/s" }"#,
    ),
    (
        "limit.max_waiting",
        r#"{ "on_refusal": "wait", "max_wait": "2s" }"#,
    ),
    ("upstreams.http2", r#"{ "url": "https://orders.internal" }"#),
    ("mongodb.writable", r#"{ "documents": "plans" }"#),
];

/// A field that is an error where the first map with it is read, in `listen.http`.
const ELSEWHERE: &str = "listener.paths";

/// Wraps a value in a configuration.
type Wrap<'a> = &'a dyn Fn(Value) -> Value;

/// Every variable and every file is set.
struct Secrets;

impl Environment for Secrets {
    fn variable(&self, name: &str) -> Option<String> {
        (!name.starts_with("TIDEGATE_")).then(|| "0123456789abcdef0123456789abcdef".to_owned())
    }

    fn file(&self, _path: &str) -> Result<String, String> {
        Ok("0123456789abcdef0123456789abcdef\n".to_owned())
    }
}

#[derive(Default)]
struct DefaultCheck {
    known: BTreeSet<&'static str>,
    checked: usize,
    wrong: Vec<String>,
}

#[test]
fn a_documented_default_changes_nothing() {
    let mut check = DefaultCheck::default();
    check.table(&CONFIG, &|value| value);
    assert!(check.wrong.is_empty(), "{}", check.wrong.join("\n"));
    assert!(check.checked > 100, "{}", check.checked);
}

impl DefaultCheck {
    fn table(&mut self, table: &'static FieldTable, wrap: Wrap<'_>) {
        if !self.known.insert(name(table)) {
            return;
        }
        for field in table.fields {
            let mut map = minimal(table);
            let place = format!("{}.{}", name(table), field.name);
            map.extend(context(&place));
            if table.exactly_one.contains(&field.name) {
                for other in table.exactly_one {
                    map.remove(*other);
                }
            }
            map.remove(field.name);
            let (_, default) = field_table::split(field.about);
            let default = default.and_then(field_table::literal);
            if let Some(default) = default.filter(|_| place != ELSEWHERE) {
                let read = |map: &Map<String, Value>| read(&wrap(json!(map)));
                let without = read(&map);
                let mut with = map.clone();
                with.insert(field.name.to_owned(), value(default));
                let is_same =
                    matches!((&without, read(&with)), (Ok(one), Ok(other)) if *one == other);
                self.checked += 1;
                if !is_same {
                    self.wrong.push(format!(
                        "{place}: {default}\n{}\n{:?}\n{:?}\n",
                        wrap(json!(with)),
                        without.err(),
                        self::read(&wrap(json!(with))).err()
                    ));
                }
            }
            self.shape(&field.shape, &|value| {
                let mut map = map.clone();
                map.insert(field.name.to_owned(), value);
                wrap(json!(map))
            });
        }
    }

    fn shape(&mut self, shape: &'static Shape, wrap: Wrap<'_>) {
        match shape {
            Shape::Map(table) => self.table(table, wrap),
            Shape::Named(inner) => self.shape(inner, &|value| wrap(json!({ "x": value }))),
            Shape::List(item) => self.shape(item, &|value| wrap(json!([value]))),
            Shape::Either(shapes) => {
                for shape in *shapes {
                    self.shape(shape, wrap);
                }
            }
            _ => {}
        }
    }
}

/// Returns a configuration as text, without the warnings.
fn read(config: &Value) -> Result<String, String> {
    match Config::parse(&config.to_string(), "x", &Secrets) {
        Ok(config) => {
            let text = format!("{config:#?}");
            Ok(text.split("\n    warnings: ").next().unwrap().to_owned())
        }
        Err(errors) => Err(errors.to_string()),
    }
}

/// Returns a map with the fields that are required, each with its example.
fn minimal(table: &FieldTable) -> Map<String, Value> {
    let mut map = context(name(table));
    let is_chosen = table.exactly_one.iter().any(|name| map.contains_key(*name));
    let choice = table.exactly_one.first().filter(|_| !is_chosen);
    for field in table.fields {
        let is_needed = field.required || Some(&field.name) == choice;
        if is_needed && !map.contains_key(field.name) {
            map.insert(field.name.to_owned(), example_of(&field.shape));
        }
    }
    map
}

fn example_of(shape: &Shape) -> Value {
    match shape {
        Shape::Text(example) => json!(example),
        Shape::Word(words) => json!(words.list()[0]),
        Shape::Flag => json!(true),
        Shape::Whole(from, _) => json!(from),
        Shape::Share => json!(1),
        Shape::List(item) => json!([example_of(item)]),
        Shape::Either(shapes) => example_of(&shapes[0]),
        Shape::Pairs | Shape::Tree => json!({ "x": "y" }),
        Shape::Named(value) => json!({ "x": example_of(value) }),
        Shape::Map(table) => json!(minimal(table)),
    }
}

fn context(place: &str) -> Map<String, Value> {
    let found = CONTEXT.iter().filter(|(of, _)| *of == place);
    let mut map = Map::new();
    for (_, fields) in found {
        map.extend(serde_json::from_str::<Map<String, Value>>(fields).unwrap());
    }
    map
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
