//! `GET /openapi.json`: the HTTP API as an OpenAPI document.

use crate::kit::folder::Folder;
use crate::kit::schemathesis::{is_installed, operations, run};
use crate::kit::{Client, CuttableServer, Server, TWO_A_MINUTE, get, post};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tidegate_testkit::golden;

/// A policy with reservations and descriptors, and guards.
const SHOP: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: shop
    domain: shop
    reserve: { default_ttl: 60s, max_ttl: 1h }
    limits:
      - { name: each, key: ip, rate: 3/s }
      - { name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 1/min }
      - { name: staff, match: { descriptor: [staff] }, rate: unlimited }
  - name: llm
    reserve: 60s
    limits:
      - { name: calls, rate: 10/s }
      - { name: tokens, unit: tokens, rate: 100/h }
      - { name: money, unit: microusd, rate: 100/h }
guards:
  - { name: friends, allow: user, list: [ann] }
  - { name: foes, deny: user, list: [bob] }
";

/// A list that is too long may also be too large. Proxies and probes may use any method.
const CHECKS: &str = r#"
[checks.negative_data_rejection]
expected-statuses = [400, 404, 413, 415]

[[operations]]
include-path-regex = "^/(v1/auth|healthcheck)"
checks.unsupported_method.enabled = false
"#;

#[tokio::test]
async fn the_published_document_is_the_served_one() {
    let server = Server::start(TWO_A_MINUTE).await;
    let reply = get(server.http, "/openapi.json").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let text = format!("{:#}\n", reply.json());
    golden::compare(&golden::docs("reference/openapi.json"), &text);
}

#[tokio::test]
async fn the_openapi_document_needs_no_token_and_is_read_only() {
    let with_token = TWO_A_MINUTE.replace(
        "http: '127.0.0.1:0'",
        "http: { address: '127.0.0.1:0', token: hunter2 }",
    );
    let server = Server::start(&with_token).await;
    assert_eq!(post(server.http, "{}").await.status, 401);
    let reply = get(server.http, "/openapi.json").await;
    assert_eq!(reply.status, 200);
    assert!(!reply.body.contains("hunter2"));
    let request = "POST /openapi.json HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";
    let reply = Client::connect(server.http).await.ask(request).await;
    assert_eq!(
        (reply.status, reply.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

/// Makes most calls name existing policies, so that they reach more code.
fn name(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().unwrap();
    for request in ["CheckRequest", "ReservationRequest"] {
        schemas[request]["properties"]["policy"] = json!({ "enum": ["shop", "llm", null] });
    }
    for operation in operations(document) {
        let parameters = operation.get_mut("parameters");
        let parameters = parameters.and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            if parameter["in"] == "path" {
                parameter["schema"] = json!({ "enum": ["shop", "nobody"] });
            }
        }
    }
}

#[tokio::test]
async fn the_server_conforms_to_the_openapi_document() {
    if !is_installed() {
        return;
    }
    let server = Server::start(SHOP).await;
    let mut document = get(server.http, "/openapi.json").await.json();
    name(&mut document);
    let folder = Folder::make();
    let document = folder.write("openapi.json", document.to_string());
    // A token is optional. JSON Schema accepts `1.0` as an integer, and cannot express which
    // headers contradict each other.
    let arguments = [
        "--max-examples",
        "30",
        "--exclude-checks",
        "positive_data_acceptance,ignored_auth",
    ];
    run(server.http, Path::new(&document), CHECKS, &arguments).await;
    assert_eq!(post(server.http, "{}").await.status, 200);
}

/// The schemas of a document, and the members found in responses.
struct Conformity {
    schemas: Value,
    seen: BTreeSet<String>,
}

impl Conformity {
    async fn by(server: &Server) -> Self {
        let mut document = get(server.http, "/openapi.json").await.json();
        Self {
            schemas: document["components"]["schemas"].take(),
            seen: BTreeSet::new(),
        }
    }

    /// Validates a response against a schema. Additional members are errors here.
    fn check(&mut self, name: &str, json: &Value) {
        let schema = self.schemas[name].clone();
        self.holds(name, &schema, json);
    }

    fn holds(&mut self, at: &str, schema: &Value, json: &Value) {
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            one => vec![one.clone()],
        };
        let found = match json {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        assert!(types.iter().any(|it| it == found), "{at}: {json}");
        if let Value::Array(words) = &schema["enum"] {
            assert!(words.contains(json), "{at}: {json}");
        }
        for item in json.as_array().into_iter().flatten() {
            self.holds(&format!("{at}[]"), &schema["items"], item);
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(json.get(name.as_str().unwrap()).is_some(), "{at}: {json}");
        }
        for (name, value) in json.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            let member = schema["properties"].get(name);
            let member = member.unwrap_or(&schema["additionalProperties"]);
            self.holds(&at, member, value);
            self.seen.insert(at);
        }
    }

    /// Fails unless some response had each member of these schemas, except for those of `others`.
    fn saw_all(&self, names: &[&str], others: &[&str]) {
        for name in names {
            for member in self.schemas[name]["properties"].as_object().unwrap().keys() {
                let at = format!("{name}.{member}");
                assert!(
                    self.seen.contains(&at) || others.contains(&at.as_str()),
                    "no response has {at}"
                );
            }
        }
    }
}

/// Reserves several units, and settles them: once by a number that could be of several, then by unit.
async fn settle_by_unit(conformity: &mut Conformity, client: &mut Client) {
    let cost = json!({ "tokens": 20, "microusd": 2 });
    let body = json!({ "policy": "llm", "cost": cost });
    let reply = client.ask(&call("/v1/reserve", &body)).await.json();
    conformity.check("Reservation", &reply);
    let id = &reply["reservation"];
    let settle = json!([
        { "reservation": id, "actual": 1 },
        { "reservation": id, "actual": { "tokens": 10 } },
    ]);
    let reply = client.ask(&call("/v1/commit", &settle)).await.json();
    for item in reply.as_array().unwrap() {
        conformity.check("SettlementItem", item);
    }
}

#[tokio::test]
async fn every_member_about_requests_in_flight_is_in_the_document() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies: [{ name: api, limits: [{ name: jobs, concurrent: 1, hold: 1h }] }]
",
    )
    .await;
    let mut conformity = Conformity::by(&server).await;
    let mut client = Client::connect(server.http).await;
    let body = json!({ "ttl_ms": 60_000 });
    let acquired = client.ask(&call("/v1/acquire", &body)).await.json();
    conformity.check("Acquired", &acquired);
    let refused = client.ask(&call("/v1/acquire", &body)).await.json();
    conformity.check("Acquired", &refused);
    let body = json!({ "id": acquired["id"] });
    let renewed = client.ask(&call("/v1/renew", &body)).await.json();
    conformity.check("Renewed", &renewed);
    let released = client.ask(&call("/v1/release", &body)).await.json();
    conformity.check("Released", &released);
    // Other decisions have these too.
    let elsewhere = ["unit", "decided_by", "reason", "guard", "descriptors"];
    let elsewhere = elsewhere.map(|name| format!("Acquired.{name}"));
    let elsewhere: Vec<&str> = elsewhere.iter().map(String::as_str).collect();
    conformity.saw_all(&["Acquired", "Renewed", "Released"], &elsewhere);
}

#[tokio::test]
async fn every_member_that_is_written_is_in_the_document() {
    let server = Server::start(SHOP).await;
    let mut conformity = Conformity::by(&server).await;
    let mut client = Client::connect(server.http).await;
    let described = json!([
        { "entries": [{ "key": "user", "value": "ann" }] },
        { "entries": [{ "key": "staff", "value": "1" }] },
        { "entries": [{ "key": "other", "value": "1" }] },
    ]);
    for question in [
        json!({ "ip": "192.0.2.1", "cost": 3 }),
        json!({ "ip": "192.0.2.1" }),
        json!({ "ip": "192.0.2.1", "cost": 4 }),
        json!({ "user": "ann" }),
        json!({ "user": "bob" }),
        json!({ "descriptors": described }),
        json!({ "descriptors": described }),
        json!({ "policy": "llm", "cost": { "tokens": 20 } }),
    ] {
        let reply = client.post(&question.to_string()).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        conformity.check("Decision", &reply.json());
    }
    let bad = client.post("{").await;
    conformity.check("Problem", &bad.json());

    for cost in [1, 2, 3] {
        let body = json!({ "ip": "192.0.2.2", "user": "eve", "cost": cost });
        let reply = client.ask(&call("/v1/reserve", &body)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let reservation = reply.json();
        conformity.check("Reservation", &reservation);
        let Some(id) = reservation["reservation"].as_str() else {
            continue;
        };
        let settle = json!({ "reservation": id, "actual": 1 });
        let reply = client.ask(&call("/v1/commit", &settle)).await;
        conformity.check("Settlement", &reply.json());
        let settle = json!([{ "reservation": id }, { "reservation": "r1nothing" }]);
        let reply = client.ask(&call("/v1/refund", &settle)).await;
        for item in reply.json().as_array().unwrap() {
            conformity.check("SettlementItem", item);
        }
    }

    settle_by_unit(&mut conformity, &mut client).await;

    // The store becomes unreachable.
    let lost = CuttableServer::start(
        "policies:
  - { name: local, limits: [{ name: a, rate: 1/h, on_failure: local }] }
  - { name: allow, limits: [{ name: a, rate: 1/h, on_failure: allow }] }
  - { name: deny, reserve: 1min, limits: [{ name: a, rate: 1/h, on_failure: deny }] }
",
    )
    .await;
    lost.cut();
    for policy in ["local", "allow", "deny"] {
        conformity.check("Decision", &lost.ask(policy).await.json());
    }
    let body = json!({ "policy": "deny" });
    let mut client = Client::connect(lost.server.http).await;
    let reply = client.ask(&call("/v1/reserve", &body)).await;
    conformity.check("Reservation", &reply.json());

    // Only FluxGate rule sets cause a notice, and only other listeners have an id. Reservations
    // have the other members of decisions.
    conformity.saw_all(
        &["Decision", "Settlement", "SettlementItem", "Problem"],
        &["Decision.notice", "Problem.correlationId"],
    );
    conformity.saw_all(
        &["Reservation"],
        &["Reservation.guard", "Reservation.descriptors"],
    );
}

fn call(path: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}")
}
