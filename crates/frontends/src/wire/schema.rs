//! JSON Schema of the bodies of the HTTP API, from the tables by which they are read and written.
//!
//! Each table has its schemas next to it, by an exhaustive match over its members: a member without a schema
//! does not compile.

use super::members::JsonMember;
use serde_json::{Map, Value, json};

/// Returns the schema of an object with these members.
pub(crate) fn object<M: JsonMember>(
    members: impl IntoIterator<Item = M>,
    required: &[M],
    schema: impl Fn(M) -> Value,
) -> Value {
    let mut properties = Map::new();
    for member in members {
        properties.insert(
            member.name().to_owned(),
            described(schema(member), member.about()),
        );
    }
    let mut object = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        let required: Vec<_> = required.iter().map(|member| member.name()).collect();
        insert(&mut object, "required", json!(required));
    }
    object
}

/// Returns the schema of an object that has no other members. Requests are closed; responses may grow.
pub(crate) fn closed(mut object: Value) -> Value {
    insert(&mut object, "additionalProperties", json!(false));
    object
}

/// Returns a schema with this description.
pub(crate) fn described(mut schema: Value, about: &str) -> Value {
    insert(&mut schema, "description", json!(about));
    schema
}

/// Returns the schema of a string, or of `null` for an unknown value.
pub(crate) fn text_or_null() -> Value {
    json!({ "type": ["string", "null"] })
}

/// Returns the schema of a whole number from `least`.
pub(crate) fn whole(least: u64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": u64::MAX })
}

/// Returns the schema of a whole number from `least`, or of `null` for an unknown value.
pub(crate) fn whole_or_null(least: u64) -> Value {
    json!({ "type": ["integer", "null"], "minimum": least, "maximum": u64::MAX })
}

/// Returns the schema of one value or of a list of up to `items_max`.
pub(crate) fn one_or_several(one: &Value, items_max: usize) -> Value {
    json!({ "oneOf": [one, { "type": "array", "items": one, "maxItems": items_max }] })
}

fn insert(schema: &mut Value, name: &str, value: Value) {
    if let Value::Object(schema) = schema {
        schema.insert(name.to_owned(), value);
    }
}
