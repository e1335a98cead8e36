//! The language as a JSON Schema, for editors. It is generated from the tables that the reader uses.

#[cfg(test)]
mod tests;

use crate::config::CONFIG;
use crate::language::table::{FieldRow, FieldTable, Shape};
use serde_json::{Map, Value, json};

/// Returns the language as a JSON Schema (draft 2020-12).
///
/// The schema has every field and every word, but not every rule. Only
/// [`Config::parse`](crate::config::Config::parse) can tell if a configuration is valid.
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    let mut schema = table(&CONFIG, &mut definitions);
    definitions.insert("variable".to_owned(), variable());
    if let Value::Object(schema) = &mut schema {
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".to_owned(), dialect.into());
        schema.insert("title".to_owned(), "Tidegate configuration".into());
        schema.insert("$defs".to_owned(), definitions.into());
    }
    schema
}

/// Returns the schema of a reference to an environment variable, which any value may be.
fn variable() -> Value {
    json!({
        "type": "string",
        "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}",
        "description": "${NAME} or ${NAME:-default}: the value of an environment variable.",
    })
}

fn table(table: &FieldTable, definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for field in table.fields {
        properties.insert(field.name.to_owned(), property(field, definitions));
    }
    let required = table.fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        insert(&mut schema, "required", required.into());
    }
    if !table.exactly_one.is_empty() {
        let choices = table.exactly_one.iter();
        let choices: Vec<Value> = choices.map(|name| json!({ "required": [name] })).collect();
        insert(&mut schema, "oneOf", choices.into());
    }
    schema
}

fn property(field: &FieldRow, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = shape(&field.shape, definitions);
    insert(&mut schema, "description", field.about.into());
    schema
}

fn shape(shape_of: &Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape_of {
        Shape::Text("") => json!({ "type": "string" }),
        Shape::Text(example) => json!({ "type": "string", "examples": [example] }),
        Shape::Word(words) => or_variable(&json!({ "enum": words.list() })),
        Shape::Flag => or_variable(&json!({ "type": "boolean" })),
        Shape::Whole(from, u64::MAX) => or_variable(&json!({ "type": "integer", "minimum": from })),
        Shape::Whole(from, to) => {
            or_variable(&json!({ "type": "integer", "minimum": from, "maximum": to }))
        }
        Shape::Share => {
            or_variable(&json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }))
        }
        Shape::List(item) => json!({ "type": "array", "items": shape(item, definitions) }),
        Shape::Either(shapes) => {
            let shapes = shapes.iter();
            let shapes: Vec<Value> = shapes.map(|one| shape(one, definitions)).collect();
            json!({ "anyOf": shapes })
        }
        Shape::Pairs => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
            "minProperties": 1,
        }),
        Shape::Tree => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean", "object"] },
        }),
        Shape::Named(value) => json!({
            "type": "object",
            "additionalProperties": shape(value, definitions),
        }),
        Shape::Map(of) => {
            // The name is part of a URI, which cannot contain blanks.
            let name = of.what.trim_matches('`').trim_start_matches("the ");
            let name = name.replace(' ', "-");
            if !definitions.contains_key(&name) {
                let definition = table(of, definitions);
                definitions.insert(name.clone(), definition);
            }
            json!({ "$ref": format!("#/$defs/{name}") })
        }
    }
}

fn or_variable(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "$ref": "#/$defs/variable" }] })
}

fn insert(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(schema) = schema {
        schema.insert(key.to_owned(), value);
    }
}
