//! The list of routes as an `OpenAPI` document. It is generated, so it matches the dispatch.
//!
//! | module | what it is |
//! |---|---|
//! | this one | from routes to paths |
//! | `schemas` | the schemas of requests and responses |

mod schemas;

use super::etag::ETag;
use super::json::DEPTH_MAX;
use super::route::{AdminRoute, BASE, Param, ParamKind, RouteMethod, TEXT_MAX, longest, words};
use super::table;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// The pattern of `If-Match`. (Weak tags are accepted, but never match.)
const IF_MATCH: &str = r#"^(\*|(W/)?"[!#-+\--~]*"( *, *(W/)?"[!#-+\--~]*")*)$"#;

/// Returns the document.
pub(super) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(build)
}

fn build() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in table::all() {
        let path = format!("{BASE}{}", route.path);
        let at = paths.entry(path).or_insert_with(|| json!({}));
        let verb = route.verb.as_str().to_ascii_lowercase();
        if let Value::Object(at) = at {
            at.insert(verb, operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!(
                "Policies, limits, guards, routes and buckets of a Tidegate server. Bodies are JSON, \
                 up to 1 MiB and {DEPTH_MAX} levels deep. What is changed has a version, its `ETag`, \
                 which changes must name in `If-Match`.",
            ),
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "What `tidegate token` makes.",
                },
            },
        },
    })
}

fn operation(route: &AdminRoute) -> Value {
    let mut parameters: Vec<Value> = route.params().map(in_path).collect();
    parameters.extend(route.query.iter().map(in_query));
    if route.is_versioned {
        parameters.push(json!({
            "name": "If-Match",
            "in": "header",
            "required": true,
            "description": "The `ETag` of what was seen, or `*` for whatever there is.",
            "schema": { "type": "string", "pattern": IF_MATCH },
        }));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.about,
        "description": format!("Takes the role `{}`.", route.role.as_str()),
        "tags": [route.tag],
        "parameters": parameters,
        "responses": responses(route),
    });
    if let (Some(body), Value::Object(operation)) = (&route.body, &mut operation) {
        let kind = if body.is_patch {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let content = json!({ kind: { "schema": reference(body.schema) } });
        let body = json!({ "required": true, "content": content });
        operation.insert("requestBody".to_owned(), body);
    }
    operation
}

fn responses(route: &AdminRoute) -> Value {
    let mut responses = Map::new();
    let mut fine = json!({ "description": "So it is." });
    if let Value::Object(fine) = &mut fine {
        if let Some(schema) = route.gives.schema {
            let content = json!({ "application/json": { "schema": reference(schema) } });
            fine.insert("content".to_owned(), content);
        }
        if route.gives.has_version {
            fine.insert("headers".to_owned(), etag());
        }
    }
    responses.insert(route.gives.status.to_string(), fine.clone());
    if route.id == "addMember" {
        // Adding an existing member returns 200.
        responses.insert("200".to_owned(), fine);
    }
    if route.gives.has_version && route.verb == RouteMethod::Get {
        let unchanged = json!({ "description": "What `If-None-Match` names.", "headers": etag() });
        responses.insert("304".to_owned(), unchanged);
    }
    for status in route.refusals() {
        if status == 431 {
            // The server rejects it before the admin API reads it.
            let refused = json!({ "description": why(status) });
            responses.insert(status.to_string(), refused);
            continue;
        }
        let content = json!({ "application/problem+json": { "schema": reference("Problem") } });
        let refused = json!({ "description": why(status), "content": content });
        responses.insert(status.to_string(), refused);
    }
    Value::Object(responses)
}

fn etag() -> Value {
    let example = ETag::of_text("").as_str().to_owned();
    json!({
        "ETag": {
            "description": "The version.",
            "schema": { "type": "string", "examples": [format!("\"{example}\"")] },
        },
    })
}

fn in_path(name: &str) -> Value {
    let schema = match words(name) {
        Some(words) => json!({ "type": "string", "enum": words }),
        None => json!({ "type": "string", "minLength": 1, "maxLength": longest(name) }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

fn in_query(param: &Param) -> Value {
    let schema = match &param.kind {
        ParamKind::Whole(from, to, default) => {
            json!({ "type": "integer", "minimum": from, "maximum": to, "default": default })
        }
        ParamKind::Text => json!({ "type": "string", "minLength": 1, "maxLength": TEXT_MAX }),
        ParamKind::Word(words) => json!({ "type": "string", "enum": words }),
    };
    json!({ "name": param.name, "in": "query", "description": param.about, "schema": schema })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn why(status: u16) -> &'static str {
    match status {
        400 => "The call is not as it should be: its path, its query, or JSON that cannot be read.",
        401 => "Nobody knows who calls.",
        403 => "The caller may not do that, or is a page of somebody else.",
        404 => "There is nothing of that name.",
        408 => "The body did not come in time.",
        409 => "It is used, or there already, or stands where it is not changed from here.",
        412 => "It has changed since it was seen.",
        413 => "The body is too large.",
        415 => "The body is not JSON, or compressed.",
        422 => "What was sent makes no sense: every error at once.",
        428 => "`If-Match` is missing.",
        431 => "The path, the query and the header fields are too large together.",
        429 => "Too many tokens from there were wrong.",
        503 => "A source, the store or the audit does not answer.",
        _ => "Something that we did wrong.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_every_schema_that_is_named_is_there() {
        let document = document();
        for route in table::all() {
            let at = &document["paths"][format!("{BASE}{}", route.path)];
            let operation = &at[route.verb.as_str().to_ascii_lowercase()];
            assert_eq!(operation["operationId"], route.id);
        }
        let text = document.to_string();
        for (at, _) in text.match_indices("\"$ref\":\"") {
            let name = text[at + 8..].split('"').next().unwrap();
            let path = name.strip_prefix("#/components/schemas/");
            let path = path.unwrap_or_else(|| panic!("{name} leads elsewhere"));
            assert!(
                document["components"]["schemas"].get(path).is_some(),
                "{name}"
            );
        }
    }
}
