//! The HTTP API as an `OpenAPI` document. Its paths are those of the dispatch, and its schemas are made from
//! the tables by which bodies are read and written. It contains nothing about this server.

use super::PostRoute;
use crate::rls_json;
use crate::wire::permit::PermitVerb;
use crate::wire::question::LIST_MAX;
use crate::wire::rls::json as rls;
use crate::wire::schema::one_or_several;
use crate::wire::settle::SettleVerb;
use crate::wire::{answer, permit, problem, question, settle};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The path of the document.
pub(super) const PATH: &str = "/openapi.json";

/// The place of the schemas in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// The version of the API, as in its paths. The server's own version is not disclosed to callers without a
/// token.
const VERSION: &str = "1";

/// The headers by which a proxy describes the request to decide.
const FORWARDED: [(&str, &str); 7] = [
    (
        "X-Forwarded-For",
        "The addresses of the client and of proxies, as `client` of the policy trusts them.",
    ),
    ("X-Forwarded-Method", "The method."),
    ("X-Forwarded-Uri", "The path and the query."),
    ("X-Forwarded-Host", "The host."),
    (
        "X-Original-Method",
        "The method, without `X-Forwarded-Method`.",
    ),
    (
        "X-Original-URI",
        "The path and the query, without `X-Forwarded-Uri`.",
    ),
    ("X-Original-URL", "The whole URL, without the other two."),
];

/// Returns the document.
pub(super) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| build().to_string());
    &DOCUMENT
}

fn build() -> Value {
    let mut paths = Map::new();
    for (path, route) in PostRoute::ALL {
        let post = json!({ "post": Operation::of(route).post() });
        paths.insert(path.to_owned(), post);
    }
    paths.insert("/v1/auth".to_owned(), json!({ "get": auth("auth", None) }));
    let policy = json!({
        "name": "policy",
        "in": "path",
        "required": true,
        "description": "The policy to apply.",
        "schema": { "type": "string", "minLength": 1 },
    });
    let by_policy = json!({ "get": auth("authByPolicy", Some(policy)) });
    paths.insert("/v1/auth/{policy}".to_owned(), by_policy);
    paths.insert(rls_json::HEALTH.to_owned(), json!({ "get": health() }));
    paths.insert(PATH.to_owned(), json!({ "get": itself() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate decision API",
            "version": VERSION,
            "description": "Rate limit decisions. Bodies are JSON of up to 64 KiB, in which \
                whole numbers have no fraction and no exponent. Callers can claim any \
                client IP: expose this API to your own services only. Responses may get further members; \
                requests with unknown members are errors.",
        },
        "servers": [{ "url": "http://127.0.0.1:8080", "description": "The default listener." }],
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The listener's `token`, if it has one.",
                },
            },
        },
    })
}

/// Returns the schemas of all bodies.
fn schemas() -> Value {
    json!({
        "CheckRequest": question::schema::check(),
        "Decision": answer::schema(),
        "ReservationRequest": question::schema::reservation(),
        "Reservation": answer::reservation_schema(),
        "Commit": settle::schema(SettleVerb::Commit),
        "Refund": settle::schema(SettleVerb::Refund),
        "Settlement": settle::settled_schema(),
        "SettlementItem": settle::settled_item_schema(),
        "Acquired": answer::acquired_schema(),
        "Renewal": permit::schema(PermitVerb::Renew),
        "Renewed": permit::result_schema(PermitVerb::Renew),
        "Release": permit::schema(PermitVerb::Release),
        "Released": permit::result_schema(PermitVerb::Release),
        "RateLimitRequest": rls::request_schema(),
        "RateLimitResponse": rls::response_schema(),
        "Problem": problem::schema(),
    })
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("{SCHEMAS}{name}") })
}

fn as_json(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

/// An operation whose request has a body.
struct Operation {
    id: &'static str,
    about: &'static str,
    more: &'static str,
    request: Value,
    example: Value,
    response: Value,
    /// Statuses besides those that all bodies may get.
    failures: &'static [(&'static str, &'static str)],
}

impl Operation {
    fn of(route: PostRoute) -> Self {
        match route {
            PostRoute::Check => Self {
                id: "check",
                about: "Decides a request, or a list of requests.",
                more: "The status is 200 for allowed and for refused requests: read `allowed`. The items of \
                    a list are decided separately. An invalid item fails the list before any is decided.",
                request: one_or_several(&schema("CheckRequest"), LIST_MAX),
                example: json!({ "ip": "192.0.2.1", "method": "GET", "path": "/api/v2/users" }),
                response: one_or_several(&schema("Decision"), LIST_MAX),
                failures: &[UNDECIDED],
            },
            PostRoute::Reserve => Self {
                id: "reserve",
                about: "Reserves an estimate, for a request or for a list of requests.",
                more: "The policy must allow reservations. Settle each reservation by a commit or a refund.",
                request: one_or_several(&schema("ReservationRequest"), LIST_MAX),
                example: json!({ "user": "ann", "cost": 800, "ttl_ms": 30_000 }),
                response: one_or_several(&schema("Reservation"), LIST_MAX),
                failures: &[UNDECIDED],
            },
            PostRoute::Settle(SettleVerb::Commit) => Self {
                id: "commit",
                about: "Settles reservations by the units used.",
                more: "Idempotent: after a timeout, send the same call again. Unused units are refunded.",
                request: one_or_several(&schema("Commit"), LIST_MAX),
                example: json!({ "reservation": "r1PbOh5", "actual": 150 }),
                response: settled(),
                failures: &[UNKNOWN, UNSETTLED],
            },
            PostRoute::Settle(SettleVerb::Refund) => Self {
                id: "refund",
                about: "Settles reservations of which nothing was used.",
                more: "Idempotent: after a timeout, send the same call again.",
                request: one_or_several(&schema("Refund"), LIST_MAX),
                example: json!({ "reservation": "r1PbOh5" }),
                response: settled(),
                failures: &[UNKNOWN, UNSETTLED],
            },
            PostRoute::Acquire => Self::acquire(),
            PostRoute::Permits(PermitVerb::Renew) => Self::renew(),
            PostRoute::Permits(PermitVerb::Release) => Self::release(),
            PostRoute::Envoy => Self {
                id: "shouldRateLimit",
                about: "Decides a call of Envoy's rate limit service, in JSON.",
                more: "Names may also be written in snake case, and numbers as text.",
                request: schema("RateLimitRequest"),
                example: json!({
                    "domain": "shop",
                    "descriptors": [{ "entries": [{ "key": "user", "value": "ann" }] }],
                }),
                response: schema("RateLimitResponse"),
                failures: &[UNDECIDED],
            },
        }
    }

    fn acquire() -> Self {
        Self {
            id: "acquire",
            about: "Decides a request that is in flight until it is released.",
            more: "At limits of requests in flight (`concurrent`), it holds permits until `/v1/release`, or \
                until `ttl_ms` is over and they were not renewed. Without `ttl_ms`, `hold` of the limit applies.",
            request: schema("ReservationRequest"),
            example: json!({ "user": "ann", "ttl_ms": 30_000 }),
            response: schema("Acquired"),
            failures: &[UNDECIDED],
        }
    }

    fn renew() -> Self {
        Self {
            id: "renew",
            about: "Prolongs the permits of a request in flight.",
            more: "An end never moves back. If the response is `false`, others may have the permits: acquire again.",
            request: schema("Renewal"),
            example: json!({ "id": "r1PbOh5", "ttl_ms": 30_000 }),
            response: schema("Renewed"),
            failures: &[UNSETTLED],
        }
    }

    fn release() -> Self {
        Self {
            id: "release",
            about: "Releases the permits of a request that has ended.",
            more: "Idempotent: after a timeout, send the same call again.",
            request: schema("Release"),
            example: json!({ "id": "r1PbOh5" }),
            response: schema("Released"),
            failures: &[UNSETTLED],
        }
    }

    fn post(self) -> Value {
        let mut responses = Map::new();
        let success = json!({ "description": "Success.", "content": as_json(&self.response) });
        responses.insert("200".to_owned(), success);
        if self.id == "shouldRateLimit" {
            let over = json!({
                "description": "A limit is exceeded.",
                "content": as_json(&self.response),
            });
            responses.insert("429".to_owned(), over);
        }
        for (status, about) in OF_BODIES.iter().chain(self.failures) {
            responses.insert((*status).to_owned(), problem(status, about));
        }
        let mut body = json!({ "schema": self.request });
        if let Value::Object(body) = &mut body {
            body.insert("example".to_owned(), self.example);
        }
        json!({
            "operationId": self.id,
            "summary": self.about,
            "description": self.more,
            "requestBody": { "required": true, "content": { "application/json": body } },
            "responses": responses,
        })
    }
}

/// Returns the schema of the results of settlements.
fn settled() -> Value {
    let items = schema("SettlementItem");
    let list = json!({ "type": "array", "items": items, "maxItems": LIST_MAX });
    json!({ "oneOf": [schema("Settlement"), list] })
}

type DocumentedError = (&'static str, &'static str);

/// Errors that every operation with a body has.
const OF_BODIES: [DocumentedError; 6] = [
    (
        "400",
        "Not JSON, an unknown or duplicate member, an invalid value, an unknown policy, or a list that is too long.",
    ),
    UNAUTHORIZED,
    ("408", "The body did not arrive in time."),
    ("413", "The body is too large."),
    ("415", "The body is compressed, or its type is not JSON."),
    TOO_LARGE,
];
const UNAUTHORIZED: DocumentedError = (
    "401",
    "The listener requires a token, and the request has none.",
);
const TOO_LARGE: DocumentedError = ("431", "The request line and the headers are too large.");
const UNDECIDED: DocumentedError = (
    "503",
    "The store did not respond, and a limit has `on_failure: error`.",
);
const UNKNOWN: DocumentedError = (
    "404",
    "The reservation is unknown: its id is invalid, or from a server with another store or `key_secret`.",
);
const UNSETTLED: DocumentedError = (
    "503",
    "The store did not respond. Send the same call again.",
);

/// Returns a response that is a problem.
fn problem(status: &str, about: &str) -> Value {
    if status == TOO_LARGE.0 {
        // The listener rejects it before the API reads it.
        return json!({ "description": about });
    }
    let mut response = json!({
        "description": about,
        "content": { "application/problem+json": { "schema": schema("Problem") } },
    });
    let header = match (status, about) {
        ("401", _) => Some(("WWW-Authenticate", text("`Bearer`."))),
        ("503", about) if about == UNSETTLED.1 => Some(("Retry-After", seconds("1 second."))),
        _ => None,
    };
    if let (Some((name, header)), Value::Object(response)) = (header, &mut response) {
        response.insert("headers".to_owned(), json!({ name: header }));
    }
    response
}

fn text(about: &str) -> Value {
    json!({ "description": about, "schema": { "type": "string" } })
}

fn seconds(about: &str) -> Value {
    json!({ "description": about, "schema": { "type": "integer", "minimum": 0 } })
}

/// Returns the operation for proxies.
fn auth(id: &str, policy: Option<Value>) -> Value {
    let mut parameters: Vec<Value> = policy.into_iter().collect();
    parameters.push(json!({
        "name": "deny",
        "in": "query",
        "description": "`403` sends refusals with status 403, for nginx. It must be the first parameter. \
            Other values have no effect.",
        "schema": { "type": "string" },
    }));
    for (name, about) in FORWARDED {
        let schema = json!({ "type": "string" });
        parameters.push(json!({
            "name": name, "in": "header", "description": about, "schema": schema,
        }));
    }
    json!({
        "operationId": id,
        "summary": "Decides a request that a proxy is about to forward.",
        "description": "Only for trusted proxies, without a token. Accepts any method. The headers describe \
            the request to decide; limits and `client` may use further ones. `respond` of the policy selects \
            the headers, the status and the body of a refusal.",
        "security": [{}],
        "parameters": parameters,
        "responses": {
            "200": { "description": "Allowed.", "headers": limits() },
            "429": refusal("Refused. The status is another one if `respond.status` sets it."),
            "403": refusal("The caller is not a trusted proxy; or, with `deny=403`, refused."),
            "503": refusal("The store did not respond, and `on_failure` of the limit is `deny` or `error`."),
            "400": problem("400", "The headers that describe the request are incomplete or contradictory."),
            "404": problem("404", "There is no such policy."),
            "431": problem("431", TOO_LARGE.1),
        },
    })
}

/// Returns the headers about limits, which `respond` of the policy selects.
fn limits() -> Value {
    json!({
        "X-RateLimit-Limit": text("The capacity of the reported limit."),
        "X-RateLimit-Remaining": text("Whole units left."),
        "X-RateLimit-Reset": text("The time at which the bucket is full, or the seconds until then."),
        "RateLimit-Policy": text("The limits: `\"per-client\";q=100;w=60`."),
        "RateLimit": text("The state of the reported limit: `\"per-client\";r=99;t=1`."),
    })
}

fn refusal(about: &str) -> Value {
    let mut headers = limits();
    if let Value::Object(headers) = &mut headers {
        headers.insert(
            "Retry-After".to_owned(),
            seconds("Absent if waiting does not help."),
        );
        headers.insert(
            "X-Correlation-ID".to_owned(),
            text("The id by which the log names it."),
        );
        headers.insert(
            "X-Denied-Reason".to_owned(),
            json!({
                "description": "`limit` for a refusal, `unavailable` without the store, \
                    `untrusted-proxy` for callers without trust.",
                "schema": { "type": "string", "enum": ["limit", "unavailable", "untrusted-proxy"] },
            }),
        );
        headers.insert(
            "X-Denied-Status".to_owned(),
            seconds("With `deny=403`: the original status."),
        );
    }
    json!({
        "description": about,
        "headers": headers,
        "content": { "application/problem+json": { "schema": schema("Problem") } },
    })
}

fn health() -> Value {
    let text = json!({ "text/plain": { "schema": { "type": "string" } } });
    json!({
        "operationId": "health",
        "summary": "Reports whether this server accepts calls. Needs no token.",
        "security": [{}],
        "responses": {
            "200": { "description": "It does.", "content": text },
            "500": { "description": "It does not.", "content": text },
        },
    })
}

fn itself() -> Value {
    json!({
        "operationId": "openapi",
        "summary": "Returns this document. Needs no token.",
        "security": [{}],
        "responses": {
            "200": { "description": "Success.", "content": as_json(&json!({ "type": "object" })) },
        },
    })
}
