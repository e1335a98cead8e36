use super::kit::{ADMIN, AdminServer, OPERATE, WritableServer, admin};
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use serde_json::{Value, json};

#[tokio::test]
async fn every_change_and_nothing_else_is_audited() {
    let mut writable = WritableServer::start().await;
    let server = &writable.server;
    let policy = json!({ "name": "api", "limits": [{ "name": "all", "rate": "1/s" }] });
    server.change("POST", "/policies", &policy).await;
    server
        .change(
            "PATCH",
            "/policies/api/limits/all",
            &json!({ "rate": "2/s" }),
        )
        .await;
    // Refused calls and calls without an effect are not recorded.
    server
        .change(
            "PATCH",
            "/policies/api/limits/all",
            &json!({ "rate": "2/s" }),
        )
        .await;
    server
        .change("PATCH", "/policies/api/limits/all", &json!({ "rate": "x" }))
        .await;
    server
        .change("PATCH", "/policies/nobody", &json!({ "rate": "x" }))
        .await;
    server.get("/policies").await;
    let call = server.call("POST", "/reload").by(OPERATE);
    assert_eq!(call.send().await.status, 200);
    let call = server
        .call("DELETE", "/policies/api")
        .by(ADMIN)
        .header("if-match", "*");
    assert_eq!(call.send().await.status, 204);

    let lines = writable.audit();
    check(&lines, &policy);
    let count = writable
        .redis
        .client()
        .command(&["XLEN", "tidegate:audit"])
        .int();
    assert_eq!(count, 4);
    let message = "admin change";
    let logged = writable
        .server
        .process
        .logs(message, ("action", "createPolicy"))
        .await;
    assert_eq!(
        (&logged["who"], &logged["what"]),
        (&"ann".into(), &"policy/api".into())
    );
}

/// Checks the callers and actions, in order, with the states before and after.
fn check(lines: &[Value], policy: &Value) {
    let told: Vec<(&str, &str, &str)> = lines
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap();
            (text("who"), text("action"), text("target"))
        })
        .collect();
    let expected = [
        ("ann", "createPolicy", "policy/api"),
        ("ann", "changeLimit", "policy/api"),
        ("oskar", "reload", "configuration"),
        ("ann", "deletePolicy", "policy/api"),
    ];
    assert_eq!(told, expected);
    assert!(lines.iter().all(|line| line["outcome"] == "done"));
    assert_eq!(
        (&lines[0]["before"], &lines[0]["after"]),
        (&Value::Null, policy)
    );
    assert_eq!(lines[1]["before"]["limits"][0]["rate"], "1/s");
    assert_eq!(lines[1]["after"]["limits"][0]["rate"], "2/s");
    assert_eq!(lines[3]["after"], Value::Null);
    assert!(
        lines
            .iter()
            .all(|line| line["at_ms"].as_u64().unwrap() > 1_600_000_000_000)
    );
    assert!(lines.iter().all(|line| line["peer"] == "127.0.0.1"));
}

#[tokio::test]
async fn a_change_that_cannot_be_audited_is_not_made() {
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: all, key: ip, rate: 1/h }}] }}]
{}",
        admin("file: '/nowhere/at/all/audit.jsonl'")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let refused = server.call("POST", "/reload").by(OPERATE).send().await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert_eq!(server.get("/status").await.status, 200);
}

/// Regression: a named pipe without a reader blocked the call, and every other change after it.
#[tokio::test]
async fn a_named_pipe_as_audit_log_blocked_every_change() {
    let folder = Folder::make();
    let audit = folder.write("audit.jsonl", "");
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: all, key: ip, rate: 1/h }}] }}]
{}",
        admin(&format!("file: '{audit}'"))
    );
    let file = folder.write("tidegate.yaml", &config);
    let mut server = AdminServer::start(&file).await;
    std::fs::remove_file(&audit).unwrap();
    let mkfifo = std::process::Command::new("mkfifo").arg(&audit).status();
    assert!(mkfifo.unwrap().success());

    let refused = server.call("POST", "/reload").by(OPERATE).send().await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    let why = "it is a named pipe, not a regular file";
    let message = "audit log not writable; change rejected";
    server.process.logs(message, ("error", why)).await;

    let ended = run(tidegate(&["serve", "--config", &file])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}
