//! The list of routes as an `OpenAPI` document. It is generated, so it matches the dispatch; and the schemas
//! are those of the types that the handlers take and return.

use super::etag::ETag;
use super::json::DEPTH_MAX;
use super::problem::ProblemBody;
use super::reply::AdminReply;
use super::routes;
use super::routing::path;
use super::routing::route::{
    AdminRoute, BASE, Param, ParamKind, RouteMethod, TEXT_MAX, longest, words,
};
use crate::admin::body::AdminBody;
use crate::admin::health::body::StatusDocument;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use tidegate_config::json_schema;

/// A document that is made once, with its version.
#[derive(Debug)]
pub(super) struct StaticDocument {
    text: String,
    etag: ETag,
}

impl StaticDocument {
    /// Returns it as a response, without a copy.
    pub(super) fn reply(&'static self) -> AdminReply {
        AdminReply::ok(AdminBody::Static(self.text.as_bytes())).at(self.etag.clone())
    }
}

/// The schemas that paths refer to.
struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

/// The pattern of `If-Match`. (Weak tags are accepted, but never match.)
const IF_MATCH: &str = r#"^(\*|(W/)?"[!#-+\--~]*"( *, *(W/)?"[!#-+\--~]*")*)$"#;

/// The place of the schemas in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// Returns the document.
pub(super) fn document() -> &'static StaticDocument {
    static DOCUMENT: LazyLock<StaticDocument> = LazyLock::new(|| {
        let text = build().to_string();
        let etag = ETag::of_text(&text);
        StaticDocument { text, etag }
    });
    &DOCUMENT
}

fn build() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let path = format!("{BASE}{}", route.path);
        let at = paths.entry(path).or_insert_with(|| json!({}));
        let verb = route.verb.as_str().to_ascii_lowercase();
        if let Value::Object(at) = at {
            at.insert(verb, operation(route, &mut schemas));
        }
    }
    paths.insert("/status".to_owned(), health(&mut schemas));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate admin API",
            "version": "1",
            "description": format!(
                "Policies, limits, guards, routes and buckets of a Tidegate server. Bodies are JSON of up \
                 to 1 MiB and {DEPTH_MAX} levels. An item that can be changed has a version, its `ETag`, \
                 and a change must name it in `If-Match`.",
            ),
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.all(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token, as `tidegate token` makes one.",
                },
            },
        },
    })
}

/// Describes the status endpoint, which is outside of the API: the listener's token protects it, if there is
/// one, and no role.
fn health(schemas: &mut Schemas) -> Value {
    let schema: Value = schemas.responses.subschema_for::<StatusDocument>().into();
    let content = json!({ "application/json": { "schema": schema } });
    let response = |about: &str| json!({ "description": about, "content": content });
    json!({
        "get": {
            "operationId": "getHealth",
            "summary": "Returns the status of the server and of everything that it depends on.",
            "description": "Requires the token of the listener, if it has one.",
            "tags": ["server"],
            "security": [{}, { "token": [] }],
            "parameters": [],
            "responses": {
                "200": response("The server answers requests: `UP` or `DEGRADED`."),
                "503": response("The server does not answer requests: `DOWN`."),
            },
        },
    })
}

fn operation(route: &AdminRoute, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<Value> = route.params().map(in_path).collect();
    parameters.extend(route.query.iter().map(in_query));
    if route.is_versioned {
        parameters.push(json!({
            "name": "If-Match",
            "in": "header",
            "required": true,
            "description": "The `ETag` of the version that was seen, or `*` for any.",
            "schema": { "type": "string", "pattern": IF_MATCH },
        }));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.about,
        "description": format!("Requires the role `{}`.", route.role.as_str()),
        "tags": [route.tag],
        "parameters": parameters,
        "responses": responses(route, schemas),
    });
    if let (Some(body), Value::Object(operation)) = (&route.body, &mut operation) {
        let kind = if body.is_patch {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let schema = match body.language {
            Some(name) => json!({ "$ref": format!("{SCHEMAS}{name}") }),
            None => (body.schema)(&mut schemas.requests).into(),
        };
        let content = json!({ kind: { "schema": schema } });
        let body = json!({ "required": true, "content": content });
        operation.insert("requestBody".to_owned(), body);
    }
    operation
}

fn responses(route: &AdminRoute, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    let mut success = json!({ "description": "Success." });
    if let Value::Object(success) = &mut success {
        if let Some(schema) = route.response {
            let schema: Value = schema(&mut schemas.responses).into();
            let content = json!({ "application/json": { "schema": schema } });
            success.insert("content".to_owned(), content);
        }
        if route.has_version {
            success.insert("headers".to_owned(), etag());
        }
    }
    responses.insert(route.status.to_string(), success.clone());
    if route.may_be_ok {
        responses.insert("200".to_owned(), success);
    }
    if route.has_version && route.verb == RouteMethod::Get {
        let about = "Not modified: `If-None-Match` names this version.";
        let unchanged = json!({ "description": about, "headers": etag() });
        responses.insert("304".to_owned(), unchanged);
    }
    let problem: Value = schemas.responses.subschema_for::<ProblemBody<'_>>().into();
    for status in route.refusals() {
        let mut failure = json!({ "description": why(status) });
        // The server rejects a 431 before the admin API reads it.
        if let (Value::Object(failure), true) = (&mut failure, status != 431) {
            let content = json!({ "application/problem+json": { "schema": problem } });
            failure.insert("content".to_owned(), content);
        }
        responses.insert(status.to_string(), failure);
    }
    Value::Object(responses)
}

impl Schemas {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            responses: settings.for_serialize().into_generator(),
        }
    }

    /// Returns every schema by name: those of the configuration language, and those of this API.
    fn all(mut self) -> Map<String, Value> {
        let mut all = language();
        all.extend(self.requests.take_definitions(true));
        all.extend(self.responses.take_definitions(true));
        all
    }
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
                        let moved = format!("{SCHEMAS}{target}");
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

fn why(status: u16) -> &'static str {
    match status {
        400 => "Malformed path, query or JSON.",
        401 => "Missing or unknown credential.",
        403 => "The role does not allow the call, or a page of another origin made it.",
        404 => "Not found.",
        408 => "The body did not arrive in time.",
        409 => "In use, already there, or not changeable by this API.",
        412 => "Changed since the version that was seen.",
        413 => "The body is too large.",
        415 => "The body is not JSON, or compressed.",
        422 => "Invalid; all errors are listed.",
        428 => "`If-Match` is missing.",
        429 => "Too many wrong tokens.",
        431 => "Path, query and headers are too large together.",
        503 => "A source, the store or the audit log is unavailable.",
        _ => "Internal error.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_every_named_schema_exists() {
        let document = build();
        for route in routes::all() {
            assert!(
                !route.about.is_empty() && !route.tag.is_empty(),
                "{route:?}"
            );
            let at = &document["paths"][format!("{BASE}{}", route.path)];
            let operation = &at[route.verb.as_str().to_ascii_lowercase()];
            assert_eq!(operation["operationId"], route.id);
        }
        let text = document.to_string();
        for (at, _) in text.match_indices("\"$ref\":\"") {
            let name = text[at + 8..].split('"').next().unwrap();
            let path = name.strip_prefix(SCHEMAS);
            let path = path.unwrap_or_else(|| panic!("{name} leads elsewhere"));
            assert!(
                document["components"]["schemas"].get(path).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_schema_name_is_unique() {
        let mut schemas = Schemas::new();
        for route in routes::all() {
            operation(route, &mut schemas);
        }
        let (mut requests, mut responses) = (schemas.requests, schemas.responses);
        let (asked, told) = (
            requests.take_definitions(true),
            responses.take_definitions(true),
        );
        let language = language();
        for (name, schema) in &asked {
            assert!(told.get(name).is_none_or(|it| it == schema), "{name}");
            assert!(!language.contains_key(name), "{name}");
        }
        assert!(told.keys().all(|name| !language.contains_key(name)));
    }
}
