//! The schemas of the admin API's requests and responses.

use super::super::of::modes::{OF_GUARDS, OF_LIMITS, OF_ROUTES};
use super::super::of::plans::{LEVELS, OF_ENTRIES};
use super::super::path;
use serde_json::{Map, Value, json};
use tidegate_policy::admin::AdminRole;
use tidegate_policy::config::json_schema;

/// Returns every schema by name: those of the configuration language, and those of this API.
pub(super) fn all() -> Map<String, Value> {
    let mut all = language();
    all.extend(answers());
    all.extend(items());
    all.extend(lists());
    all.extend(questions());
    all.extend(entries());
    all
}

/// Returns the schemas of policies, guards and routes, from the schema of the configuration.
fn language() -> Map<String, Value> {
    let mut schema = json_schema();
    let definitions = schema.get_mut("$defs").map(Value::take);
    let Some(Value::Object(definitions)) = definitions else {
        return Map::new();
    };
    let mut wanted = vec!["policy".to_owned(), "guard".to_owned(), "route".to_owned()];
    let mut found = Map::new();
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        if let Some(definition) = definitions.get(&name) {
            let mut definition = definition.clone();
            move_references(&mut definition, &mut wanted);
            found.insert(name, definition);
        }
    }
    found
}

/// Rewrites references to the schemas' location in this document, and collects their targets.
fn move_references(value: &mut Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let target = member.as_str().and_then(|it| it.strip_prefix("#/$defs/"));
                match target.filter(|_| name == "$ref") {
                    Some(target) => {
                        let target = path::decode(target, false).unwrap_or_default();
                        let moved = format!("#/components/schemas/{target}");
                        found.push(target);
                        *member = moved.into();
                    }
                    None => move_references(member, found),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| move_references(item, found)),
        _ => {}
    }
}

fn answers() -> Map<String, Value> {
    let roles: Vec<&str> = AdminRole::ALL.iter().map(|(word, _)| *word).collect();
    named([
        ("Document", json!({ "type": "object" })),
        (
            "Problem",
            object(json!({
                "type": text(), "title": text(), "status": whole(), "detail": text(),
                "errors": {
                    "type": "array",
                    "items": object(json!({
                        "where": text(), "message": text(), "help": or_null(&text()),
                    })),
                },
            })),
        ),
        (
            "Caller",
            object(json!({ "name": text(), "role": { "enum": roles } })),
        ),
        ("DocumentItem", document(None)),
        // A variable in it is shown as written.
        ("GuardItem", document(Some(text()))),
        ("RouteItem", document(Some(json!({ "enum": OF_ROUTES })))),
        (
            "LimitItem",
            object(json!({
                "policy": text(), "name": text(), "mode": text(), "source": or_null(&text()),
                "writable": flag(), "version": text(), "used_by": users(),
                "document": { "type": "object" },
            })),
        ),
        ("Status", status()),
        (
            "Reloaded",
            object(json!({ "version": text(), "sources": several("Source") })),
        ),
        ("Sight", sight()),
        (
            "Forgotten",
            object(json!({
                "bucket": text(), "found": flag(), "forgotten": whole(), "left": whole(),
                "complete": flag(), "dry_run": flag(), "note": or_null(&text()),
            })),
        ),
    ])
}

/// Returns the schema of a policy, a guard or a route, with its mode if it has one.
fn document(mode: Option<Value>) -> Value {
    let mut properties = json!({
        "name": text(), "source": or_null(&text()), "writable": flag(), "version": text(),
        "used_by": users(),
        "document": { "type": "object" },
    });
    if let (Value::Object(properties), Some(mode)) = (&mut properties, mode) {
        properties.insert("mode".to_owned(), mode);
    }
    object(properties)
}

/// Returns the schemas of list items.
fn items() -> Map<String, Value> {
    named([
        (
            "MemberItem",
            json!({
                "type": "object",
                "properties": {
                    "member": text(), "new": flag(), "ends_in_ms": or_null(&whole()),
                },
                "required": ["member", "ends_in_ms"],
            }),
        ),
        (
            "Entry",
            object(json!({
                "id": text(), "level": { "enum": LEVELS }, "writable": flag(),
                "version": or_null(&text()), "enabled": flag(),
                "settings": or_null(&json!({ "type": "object" })),
                "has": or_null(&object(json!({
                    "rate": or_null(&text()), "group": or_null(&text()), "is_default": flag(),
                }))),
                "used_by": users(), "users": whole(),
            })),
        ),
        (
            "Plan",
            object(json!({
                "name": text(), "kind": text(), "writable": flag(), "subjects": whole(),
                "groups": whole(),
                "age_ms": or_null(&whole()), "failing_for_ms": or_null(&whole()),
                "error": or_null(&text()), "used_by": users(),
            })),
        ),
        (
            "BanItem",
            object(json!({
                "guard": text(), "member": text(), "ends_in_ms": or_null(&whole()),
            })),
        ),
        (
            "Source",
            object(json!({
                "name": text(), "kind": text(), "writable": flag(), "version": or_null(&text()),
                "age_ms": or_null(&whole()), "applied_ms": or_null(&whole()), "stale": flag(),
                "refused": flag(), "fallback": flag(), "trouble": or_null(&text()),
            })),
        ),
    ])
}

fn status() -> Value {
    object(json!({
        "version": text(), "program": text(), "mode": { "enum": ["enforce", "shadow"] },
        "served": {
            "type": "object",
            "properties": {
                "policies": whole(), "guards": whole(), "routes": whole(),
                "limits": { "type": "object", "additionalProperties": whole() },
            },
        },
        "sources": several("Source"),
        "store": object(json!({
            "kind": { "enum": ["memory", "redis"] },
            "standing": { "enum": ["sound", "degraded", "stuck"] },
            "nodes": { "type": "array", "items": text() },
        })),
        "instances": object(json!({
            "counted": flag(), "this": or_null(&text()), "live": whole(),
            "versions_agree": or_null(&flag()),
            "all": {
                "type": "array",
                "items": object(json!({
                    "name": text(), "this": flag(),
                    "version": or_null(&text()), "program": or_null(&text()),
                    "heard_ms": whole(), "applied_ms": or_null(&whole()),
                })),
            },
        })),
        "lists": {
            "type": "array",
            "items": object(json!({
                "guard": text(), "enabled": flag(), "members": whole(), "skipped": whole(),
                "age_ms": or_null(&whole()), "failing_for_ms": or_null(&whole()),
                "error": or_null(&text()),
            })),
        },
        "plans": {
            "type": "array",
            "items": object(json!({
                "name": text(), "kind": text(), "subjects": whole(),
                "age_ms": or_null(&whole()), "failing_for_ms": or_null(&whole()),
                "error": or_null(&text()),
            })),
        },
    }))
}

fn sight() -> Value {
    json!({
        "type": "object",
        "properties": {
            "bucket": text(), "policy": text(), "limit": text(), "subject": text(),
            "found": flag(), "rate": text(), "note": text(), "blocked_for_ms": whole(),
            "bands": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "band": text(), "label": or_null(&text()), "algorithm": text(),
                        "capacity": whole(), "remaining": whole(),
                        "retry_after_ms": or_null(&whole()), "reset_ms": whole(),
                        "as_good_as_new": flag(), "at_us": or_null(&whole()), "key": text(),
                        "field": or_null(&text()),
                    },
                    "required": ["band", "algorithm", "capacity", "remaining", "reset_ms"],
                },
            },
            "keys": { "type": "array", "items": { "type": "object" } },
        },
        "required": ["bucket", "policy", "limit", "subject", "found", "bands", "keys"],
    })
}

/// Returns the schemas of pages.
fn lists() -> Map<String, Value> {
    let page = |item: &str| {
        object(json!({
            "items": several(item), "total": whole(), "offset": whole(), "limit": whole(),
        }))
    };
    named([
        ("Documents", page("DocumentItem")),
        ("Guards", page("GuardItem")),
        ("Routes", page("RouteItem")),
        ("Limits", page("LimitItem")),
        ("Members", page("MemberItem")),
        ("Bans", page("BanItem")),
        ("Plans", page("Plan")),
        ("Entries", page("Entry")),
    ])
}

fn questions() -> Map<String, Value> {
    let bucket = json!({
        "bucket": sent("Its name, such as `api/per-client/ip:192.0.2.1`, or its key in Redis."),
        "policy": sent("Its policy; the first unless told."),
        "limit": sent("Its limit, where it is told by whose it is."),
        "key": {
            "type": "object",
            "additionalProperties": { "type": "string" },
            "maxProperties": 16,
            "description": "Whose it is: a value for each part of the limit's key.",
            "examples": [{ "ip": "192.0.2.1" }],
        },
        "band": sent("One band only, by its label or as it is written."),
    });
    let mut reset = bucket.clone();
    if let Value::Object(reset) = &mut reset {
        let all = json!({ "type": "boolean", "description": "All buckets of `limit`." });
        let dry_run = json!({ "type": "boolean", "description": "Only tell how many." });
        reset.insert("all".to_owned(), all);
        reset.insert("dry_run".to_owned(), dry_run);
    }
    let policy = json!({ "type": "string", "minLength": 1 });
    let policies = json!({ "type": "array", "items": policy, "minItems": 1 });
    named([
        (
            "Patch",
            json!({
                "type": "object",
                "description": "A JSON merge patch (RFC 7396): members replace, `null` removes.",
            }),
        ),
        ("Bucket", optional(&bucket)),
        ("Reset", optional(&reset)),
        (
            "ModeOfLimit",
            object(json!({ "mode": { "enum": OF_LIMITS } })),
        ),
        (
            "ModeOfGuard",
            object(json!({ "mode": { "enum": OF_GUARDS } })),
        ),
        (
            "ModeOfRoute",
            object(json!({ "mode": { "enum": OF_ROUTES } })),
        ),
        (
            "Assignment",
            object(json!({ "policy": { "anyOf": [policy, policies, { "type": "null" }] } })),
        ),
        (
            "Member",
            json!({
                "type": "object",
                "properties": {
                    "member": { "type": "string", "minLength": 1, "maxLength": 1_024 },
                    "for": {
                        "type": "string",
                        "description": "For how long, where members leave by themselves.",
                        "examples": ["1h"],
                    },
                },
                "required": ["member"],
                "additionalProperties": false,
            }),
        ),
    ])
}

/// Returns the schemas of plan entries in requests.
fn entries() -> Map<String, Value> {
    let plan = json!({ "type": "string", "minLength": 1 });
    named([
        (
            "ModeOfEntry",
            object(json!({ "mode": { "enum": OF_ENTRIES } })),
        ),
        ("PlanOfEntry", object(json!({ "plan": or_null(&plan) }))),
        ("NewEntry", new_entry()),
    ])
}

/// Returns the schema of a new plan, group or subject. Numbers may have any width, or be text, so the
/// schema does not restrict their types.
fn new_entry() -> Value {
    let told = |about: &str| json!({ "description": about });
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "minLength": 1, "maxLength": 512 },
            "rate": told("How much, such as `100/min`, or `unlimited`."),
            "N": told("How many, where `rate` does not say it."),
            "T": told("Per how many seconds, or a duration."),
            "plan": told("Its plan, of a group or a subject."),
            "group": told("Its group, of a subject."),
            "quota": told("The quota of a group: a rate, or a map as this one."),
            "enabled": told("Whether it counts; it does unless told."),
        },
        "required": ["id"],
    })
}

fn named<const N: usize>(schemas: [(&str, Value); N]) -> Map<String, Value> {
    let schemas = schemas.into_iter();
    schemas
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

/// Returns the schema of an object that has all of these members, and no others.
fn object(properties: Value) -> Value {
    let names = properties.as_object().into_iter().flatten();
    let required: Vec<&String> = names.map(|(name, _)| name).collect();
    let mut schema = json!({ "required": required });
    if let Value::Object(schema) = &mut schema {
        schema.insert("type".to_owned(), "object".into());
        schema.insert("additionalProperties".to_owned(), false.into());
        schema.insert("properties".to_owned(), properties);
    }
    schema
}

/// Returns the schema of an object that may have any of these members, and no others.
fn optional(properties: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Returns the schema of a list of users.
fn users() -> Value {
    let user = object(json!({ "kind": text(), "name": text() }));
    json!({ "type": "array", "items": user })
}

fn several(item: &str) -> Value {
    json!({ "type": "array", "items": super::reference(item) })
}

fn sent(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn or_null(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}
