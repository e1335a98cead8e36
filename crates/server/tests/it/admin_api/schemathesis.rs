//! Schemathesis reads the served document and holds the server against it: whatever it says that a
//! call may be, and a good deal that it says it may not be.

use super::kit::{ADMIN, Writable};
use crate::kit::folder::Folder;
use serde_json::{Value, json};
use std::path::Path;
use tokio::process::Command;

/// Where `scripts/test` installs it.
const LIBRARY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/tools/python/schemathesis"
);

/// Plans that can be changed, and some that cannot.
const PLANS: &str = "  - name: consuming
    limits:
      - { name: each, key: user, rate: { plan: consumers, subject: user, default: 1/h } }
      - { name: more, key: user, rate: { plan: filed, subject: user, default: 1/h } }
plans:
  - { name: consumers, from: { redis: {} } }
  - { name: filed, from: { file: plans.yaml } }
";

/// Makes something of each kind that can be changed.
async fn make(writable: &Writable) {
    let limit = json!({ "name": "all", "rate": "10/s" });
    for (path, document) in [
        ("/policies", json!({ "name": "api", "limits": [limit] })),
        (
            "/guards",
            json!({ "name": "mine", "refuse": "ip", "list": ["192.0.2.1"] }),
        ),
        (
            "/routes",
            json!({ "id": "shop", "upstreams": ["http://127.0.0.1:1"] }),
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

/// Lets calls be about what is there, more often than not.
fn name(document: &mut Value) {
    let paths = document["paths"].as_object_mut().unwrap();
    for operation in paths
        .values_mut()
        .flat_map(|at| at.as_object_mut().unwrap().values_mut())
    {
        for parameter in operation["parameters"].as_array_mut().unwrap() {
            let names = match parameter["name"].as_str().unwrap() {
                "policy" if parameter["in"] == "path" => ["api", "own", "nobody"],
                "limit" if parameter["in"] == "path" => ["all", "per-client", "nobody"],
                "guard" => ["mine", "bans", "nobody"],
                "route" => ["shop", "old", "nobody"],
                "plan" => ["consumers", "filed", "nobody"],
                "entry" => {
                    // Anything may be one's id, and is once it was made.
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
async fn the_server_does_what_its_document_says() {
    let library = Path::new(LIBRARY);
    if !library.join("schemathesis/__init__.py").exists() {
        let ci = std::env::var_os("CI");
        let in_ci = ci.is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0");
        assert!(!in_ci, "schemathesis is not installed");
        return eprintln!("skipped: schemathesis is not installed; see scripts/test");
    }
    let folder = Folder::make();
    let file = folder.write("plans.yaml", "subjects: { ann: 1/h }");
    let writable = Writable::with(&PLANS.replace("plans.yaml", &file)).await;
    let address = writable.server.address;
    let document = writable.server.get("/openapi.json").await;
    assert_eq!(document.status, 200);
    let mut document = document.json();
    make(&writable).await;
    name(&mut document);
    let document = writable.folder.write("openapi.json", document.to_string());
    let mut command = Command::new("python3");
    command
        .arg(library.join("bin/schemathesis"))
        .arg("run")
        .arg(&document)
        .args(["--url", &format!("http://{address}")])
        .args(["--header", &format!("Authorization: Bearer {ADMIN}")])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args([
            "--max-examples",
            "10",
            "--generation-deterministic",
            "--workers",
            "1",
        ])
        // What a document cannot say of rates and names, the server refuses all the same; 428 is for
        // nothing else than a version that is missing; and who tries wrong tokens as often as this gets
        // 429, which is as it should be.
        .args([
            "--exclude-checks",
            "positive_data_acceptance,missing_required_header,ignored_auth",
        ])
        .args(["--request-timeout", "10", "--no-color"])
        .env("PYTHONPATH", library)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true);
    let output = command.output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // It went on serving.
    assert_eq!(writable.server.get("/status").await.status, 200);
}
