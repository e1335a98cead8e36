//! Schemathesis reads the served document and tests the server with it: all calls that the document
//! allows, and many that it forbids.

use super::kit::{ADMIN, WritableServer};
use crate::kit::folder::Folder;
use crate::kit::schemathesis::{is_installed, operations, run};
use serde_json::{Value, json};
use std::path::Path;

/// Writable plans, and some that are read-only.
const PLANS: &str = "  - name: consuming
    limits:
      - { name: each, key: user, rate: { plan: consumers, subject: user, default: 1/h } }
      - { name: more, key: user, rate: { plan: filed, subject: user, default: 1/h } }
plans:
  - { name: consumers, redis: {} }
  - { name: filed, file: plans.yaml }
";

/// Creates one object of each writable kind.
async fn make(writable: &WritableServer) {
    let limit = json!({ "name": "all", "rate": "10/s" });
    for (path, document) in [
        ("/policies", json!({ "name": "api", "limits": [limit] })),
        (
            "/guards",
            json!({ "name": "mine", "deny": "ip", "list": ["192.0.2.1"] }),
        ),
        (
            "/routes",
            json!({ "name": "shop", "upstreams": ["http://127.0.0.1:1"] }),
        ),
        (
            "/plans/consumers/plans",
            json!({ "id": "pro", "rate": "100/s" }),
        ),
        (
            "/plans/consumers/subjects",
            json!({ "id": "ann", "plan": "pro" }),
        ),
    ] {
        let made = writable.server.change("POST", path, &document).await;
        assert_eq!(made.status, 201, "{}", made.body);
    }
}

/// Makes most calls refer to existing objects.
fn name(document: &mut Value) {
    for operation in operations(document) {
        for parameter in operation["parameters"].as_array_mut().unwrap() {
            let names = match parameter["name"].as_str().unwrap() {
                "policy" if parameter["in"] == "path" => ["api", "own", "nobody"],
                "limit" if parameter["in"] == "path" => ["all", "per-client", "nobody"],
                "guard" => ["mine", "bans", "nobody"],
                "route" => ["shop", "old", "nobody"],
                "plan" => ["consumers", "filed", "nobody"],
                "entry" => {
                    // Any text may be an id, and exists once it was created.
                    let any = parameter["schema"].clone();
                    parameter["schema"] = json!({ "anyOf": [{ "enum": ["pro", "ann"] }, any] });
                    continue;
                }
                _ => continue,
            };
            parameter["schema"] = json!({ "enum": names });
        }
    }
}

#[tokio::test]
async fn the_server_conforms_to_its_openapi_document() {
    if !is_installed() {
        return;
    }
    let folder = Folder::make();
    let file = folder.write("plans.yaml", "subjects: { ann: 1/h }");
    let writable = WritableServer::with(&PLANS.replace("plans.yaml", &file)).await;
    let address = writable.server.address;
    let document = writable.server.get("/openapi.json").await;
    assert_eq!(document.status, 200);
    let mut document = document.json();
    make(&writable).await;
    name(&mut document);
    let document = writable.folder.write("openapi.json", document.to_string());
    let authorization = format!("Authorization: Bearer {ADMIN}");
    // The document cannot express the rules of rates and names, which the server still enforces;
    // 428 means a missing version only; and a client with this many invalid tokens gets 429, as
    // intended.
    let arguments = [
        "--header",
        &authorization,
        "--max-examples",
        "10",
        "--exclude-checks",
        "positive_data_acceptance,missing_required_header,ignored_auth",
    ];
    run(address, Path::new(&document), "", &arguments).await;
    // It still serves.
    assert_eq!(writable.server.get("/status").await.status, 200);
}
