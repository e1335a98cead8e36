//! Reservations with `curl`: the program, its configuration and the documented calls.

use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use serde_json::Value;
use tokio::process::Command;

const CONFIG: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: llm
    reserve: 60s
    limits:
      - { name: tokens, key: user, rate: 1000/h }
";

/// Returns the output of `curl -s URL -d BODY`.
async fn curl(url: &str, body: &str) -> Value {
    let mut command = Command::new("curl");
    command.args(["-s", "--max-time", "20", url, "-d", body]);
    let output = command.output().await.expect("curl is there");
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn the_documented_curl_example_of_a_reservation_works() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", CONFIG);
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    let base = format!("http://{}", process.address("http").await);
    let at = |path: &str| format!("{base}{path}");

    let reserved = curl(&at("/v1/reserve"), r#"{"user": "ann", "cost": 800}"#).await;
    assert_eq!(reserved["allowed"], true);
    let id = reserved["reservation"].as_str().unwrap();
    let body = format!(r#"{{"reservation": "{id}", "actual": 150}}"#);
    assert_eq!(curl(&at("/v1/commit"), &body).await["state"], "settled");
    assert_eq!(curl(&at("/v1/commit"), &body).await["state"], "already");
    let looked = curl(&at("/v1/check"), r#"{"user": "ann", "cost": 0}"#).await;
    assert_eq!(looked["remaining"], 850);

    let failed = curl(&at("/v1/reserve"), r#"{"user": "ann", "cost": 500}"#).await;
    let id = failed["reservation"].as_str().unwrap();
    let body = format!(r#"{{"reservation": "{id}"}}"#);
    assert_eq!(curl(&at("/v1/refund"), &body).await["state"], "settled");
    let damaged = body.replacen("r1", "r1x", 1);
    assert_eq!(curl(&at("/v1/refund"), &damaged).await["status"], 404);
    let looked = curl(&at("/v1/check"), r#"{"user": "ann", "cost": 0}"#).await;
    assert_eq!(looked["remaining"], 850);

    process.signal("TERM").await;
    let ended = process.ended().await;
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(!ended.stderr.contains(id), "ids are not logged");
}
