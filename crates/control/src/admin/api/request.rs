//! The typed body of a request, from JSON.
//!
//! serde stops at the first error. So the JSON is first held against the schema of the type, which finds all
//! errors; then it becomes the type. The schema is the one of the `OpenAPI` document, so every
//! promise of the document is checked.

use super::problem::AdminProblem;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tidegate_frontends::wire::fault::quote;
use tidegate_policy::text::closest;

/// The body of a request.
pub(super) trait RequestBody: Sized + Send + 'static {
    /// The type that has the schema.
    type SchemaType: DeserializeOwned + JsonSchema;

    /// Reads a body that has this schema. Reports all errors together.
    fn read(schema: &Value, body: &Value) -> Result<Self, AdminProblem>;
}

impl<B: DeserializeOwned + JsonSchema + Send + 'static> RequestBody for B {
    type SchemaType = B;

    fn read(schema: &Value, body: &Value) -> Result<Self, AdminProblem> {
        let read = PartialBody::<B>::read(schema, body)?;
        read.problem.map_or(Ok(read.body), Err)
    }
}

/// A body that could be read, and the errors in the rest of it. For a handler that finds more errors,
/// so that all are reported together.
#[derive(Debug)]
pub(super) struct PartialBody<B> {
    pub(super) body: B,
    pub(super) problem: Option<AdminProblem>,
}

impl<B: DeserializeOwned + JsonSchema + Send + 'static> RequestBody for PartialBody<B> {
    type SchemaType = B;

    fn read(schema: &Value, body: &Value) -> Result<Self, AdminProblem> {
        let mut problem = AdminProblem::invalid_body();
        let mut members = body.as_object().cloned().unwrap_or_default();
        let known = schema.get("properties").and_then(Value::as_object);
        let known = known.cloned().unwrap_or_default();
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            for name in members.keys().filter(|name| !known.contains_key(*name)) {
                problem = unknown(problem, name, &known);
            }
            members.retain(|name, _| known.contains_key(name));
        }
        let required = schema.get("required").and_then(Value::as_array);
        for (name, of) in &known {
            let is_required = required.is_some_and(|it| it.iter().any(|it| it == name));
            let wrong = match members.get(name) {
                Some(value) => check(of, value).err(),
                None if is_required => Some(format!("it is missing; {}", expectation(of))),
                None => None,
            };
            if let Some(wrong) = wrong {
                problem = problem.with(name, wrong);
            }
        }
        let problem = problem.has_errors().then_some(problem);
        match B::deserialize(Value::Object(members)) {
            Ok(body) => Ok(Self { body, problem }),
            Err(error) => {
                let unread = || AdminProblem::invalid("body", error.to_string());
                Err(problem.unwrap_or_else(unread))
            }
        }
    }
}

/// Returns the schema of a body, complete in itself.
pub(super) fn schema<B: RequestBody>() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.inline_subschemas = true;
    let schemas = settings.into_generator();
    schemas.into_root_schema_for::<B::SchemaType>().into()
}

/// Reports a member that the body does not have, with the nearest one that it does.
fn unknown(problem: AdminProblem, name: &str, known: &Map<String, Value>) -> AdminProblem {
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let message = format!(
        "there is no member {}; there is {}",
        quote(name),
        names.join(", ")
    );
    let help = closest(name, names).map(|meant| format!("did you mean `{meant}`?"));
    problem.with_help("body", message, help.as_deref())
}

/// Checks a value, by the few words that the schemas of our types use.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let expected = || expectation(schema);
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let is_any = any.iter().any(|one| check(one, value).is_ok());
        return is_any.then_some(()).ok_or_else(expected);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.contains(value).then_some(()).ok_or_else(expected);
    }
    if !types(schema).is_none_or(|mut types| types.any(|it| is_of(it, value))) {
        return Err(expected());
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let is_within = |length: usize, (min, max): (&str, &str)| {
        let length = length as u64;
        bound(min).is_none_or(|min| length >= min) && bound(max).is_none_or(|max| length <= max)
    };
    match value {
        Value::String(text) if !is_within(text.chars().count(), ("minLength", "maxLength")) => {
            Err("it is empty, or too long".to_owned())
        }
        Value::Array(items) if !is_within(items.len(), ("minItems", "maxItems")) => {
            Err("there are too few of them, or too many".to_owned())
        }
        Value::Array(items) => match schema.get("items") {
            Some(of) => items.iter().try_for_each(|item| check(of, item)),
            None => Ok(()),
        },
        Value::Object(parts) if !is_within(parts.len(), ("minProperties", "maxProperties")) => {
            Err("it has too few members, or too many".to_owned())
        }
        Value::Object(parts) => match schema.get("additionalProperties") {
            Some(of) => parts.values().try_for_each(|part| {
                check(of, part).map_err(|wrong| format!("of each member: {wrong}"))
            }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns the types that a schema allows; `None` if all.
fn types(schema: &Value) -> Option<Box<dyn Iterator<Item = &str> + '_>> {
    match schema.get("type")? {
        Value::Array(several) => Some(Box::new(several.iter().filter_map(Value::as_str))),
        one => Some(Box::new(one.as_str().into_iter())),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => value.is_number(),
    }
}

/// Returns what a value of this schema is, for messages.
fn expectation(schema: &Value) -> String {
    let words = schema.get("enum").and_then(Value::as_array);
    if let Some(words) = words {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return format!("expected one of {}", words.join(", "));
    }
    let mut names = Vec::new();
    let any = schema.get("anyOf").and_then(Value::as_array);
    for one in any.into_iter().flatten().chain([schema]) {
        names.extend(types(one).into_iter().flatten().map(|name| match name {
            "string" => "a text",
            "boolean" => "`true` or `false`",
            "array" => "a list",
            "object" => "an object",
            "null" => "`null`",
            _ => "a number",
        }));
    }
    format!("expected {}", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::bodies::buckets::{BucketSelector, ResetRequest};
    use crate::admin::api::bodies::documents::{ModeChange, ModeWord, PolicyAssignment};
    use crate::admin::api::bodies::plans::{NewEntry, PlanAssignment};
    use serde_json::json;

    fn wrong<B: RequestBody>(body: &Value) -> Vec<(String, String)> {
        let problem = B::read(&schema::<B>(), body).err();
        let problem = problem.unwrap_or_else(|| panic!("{body} is not refused"));
        problem.errors_with_places()
    }

    fn right<B: RequestBody>(body: &Value) -> B {
        B::read(&schema::<B>(), body).unwrap_or_else(|it| panic!("{body}: {it:?}"))
    }

    #[test]
    fn unknown_members_are_named_with_a_suggestion() {
        let errors = wrong::<ResetRequest>(&json!({ "limt": "a", "dryrun": true, "all": 1 }));
        assert_eq!(errors.len(), 3, "{errors:?}");
        let text = format!("{errors:?}");
        for part in [
            "there is no member `limt`",
            "did you mean `limit`?",
            "did you mean `dry_run`?",
            "expected `true` or `false`",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn each_type_is_checked_member_by_member() {
        let errors =
            wrong::<BucketSelector>(&json!({ "limit": 1, "key": { "ip": 2 }, "band": [] }));
        let places: Vec<&str> = errors.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["band", "key", "limit"]);
        let many: Map<String, Value> = (0..17).map(|n| (n.to_string(), "x".into())).collect();
        assert_eq!(wrong::<BucketSelector>(&json!({ "key": many })).len(), 1);
        let found: BucketSelector = right(&json!({ "limit": null, "key": { "ip": "a" } }));
        assert_eq!(found.limit, None);
        assert_eq!(found.key.unwrap()["ip"], "a");
        let reset: ResetRequest = right(&json!({ "limit": "a", "dry_run": true }));
        assert_eq!(
            (reset.selector.limit.as_deref(), reset.dry_run),
            (Some("a"), Some(true))
        );
    }

    #[test]
    fn a_handler_can_add_errors() {
        type Partial = PartialBody<BucketSelector>;
        let read: Partial = right(&json!({ "limit": "a", "limt": "b" }));
        assert_eq!(read.body.limit.as_deref(), Some("a"));
        assert_eq!(
            read.problem.map(|it| it.errors_with_places().len()),
            Some(1)
        );
        assert!(right::<Partial>(&json!({})).problem.is_none());
        assert_eq!(wrong::<Partial>(&json!({ "limit": 1, "limt": 2 })).len(), 2);
    }

    #[test]
    fn modes_are_parsed_by_name() {
        type Change = ModeChange<ModeWord>;
        for body in [json!({}), json!({ "mode": null }), json!({ "mode": "odd" })] {
            let errors = wrong::<Change>(&body);
            let expected = "expected one of enforce, shadow, off";
            assert!(errors[0].1.contains(expected), "{errors:?}");
        }
        let change: Change = right(&json!({ "mode": "shadow" }));
        assert_eq!(change.mode, ModeWord::Shadow);
    }

    #[test]
    fn nullable_members_must_be_present() {
        assert_eq!(wrong::<PlanAssignment>(&json!({})).len(), 1);
        assert_eq!(wrong::<PlanAssignment>(&json!({ "plan": "" })).len(), 1);
        assert_eq!(right::<PlanAssignment>(&json!({ "plan": null })).plan, None);
        for body in [json!({}), json!({ "policy": [] }), json!({ "policy": [1] })] {
            assert_eq!(wrong::<PolicyAssignment>(&body).len(), 1, "{body}");
        }
        for body in [json!(null), json!("a"), json!(["a", "b"])] {
            right::<PolicyAssignment>(&json!({ "policy": body }));
        }
    }

    #[test]
    fn plan_entry_settings_are_checked_by_the_plan_reader() {
        let entry: NewEntry = right(&json!({ "id": "a", "rate": 5, "rat": "1/s" }));
        assert_eq!(entry.settings.len(), 2);
        assert_eq!(wrong::<NewEntry>(&json!({ "id": "" })).len(), 1);
        assert_eq!(wrong::<NewEntry>(&json!({ "rate": "1/s" })).len(), 1);
    }
}
