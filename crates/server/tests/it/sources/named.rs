//! Files that the configuration names.

use super::double::Double;
use super::kit::{AWAY, Program, REFUSED, SERVED, policies};
use crate::kit::folder::Folder;
use std::fs;
use std::time::Duration;
use tokio::time::timeout;

/// The time within which a check every second must notice a change.
const PATIENCE: Duration = Duration::from_secs(30);

const RELOADED: &str = "config reloaded";

/// Waits until a server got a request with `credentials`.
async fn presented(server: &Double, credentials: &str) {
    let line = format!("authorization: {credentials}\r\n");
    let presented = async { while !server.asked(1).await.contains(&line) {} };
    let presented = timeout(PATIENCE, presented).await;
    presented.unwrap_or_else(|_| panic!("{}", server.last()));
}

fn central(server: &Double, token: &str) -> String {
    let url = format!("http://{}/policies", server.address);
    format!(
        "sources: [{{ name: central, http: {{ url: '{url}', token_file: '{token}' }}, refresh: 100ms }}]"
    )
}

#[tokio::test]
async fn a_replaced_token_file_was_read_only_after_a_signal() {
    let (server, folder) = (Double::unreachable().await, Folder::make());
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let token = folder.write("token", "first\n");
    let program = Program::start(&central(&server, &token)).await;
    presented(&server, "Bearer first").await;
    folder.write("token", "second\n");
    presented(&server, "Bearer second").await;
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn a_replaced_password_file_was_read_only_after_a_signal() {
    let (keeper, folder) = (Double::unreachable().await, Folder::make());
    let value = policies("api", "5/s");
    keeper.say(None, &serde_json::json!({ "value": value }).to_string());
    let password = folder.write("password", "one");
    let text = format!(
        "sources: [{{ keeper: {{ url: 'http://{}', key: k, password_file: '{password}', \
         format: tidegate }}, refresh: 100ms, timeout: 5s }}]",
        keeper.address
    );
    let program = Program::start(&text).await;
    // `admin:one`, and `admin:two` afterwards.
    presented(&keeper, "Basic YWRtaW46b25l").await;
    folder.write("password", "two");
    presented(&keeper, "Basic YWRtaW46dHdv").await;
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn a_missing_secret_file_is_logged_once_and_read_when_restored() {
    let (server, folder) = (Double::unreachable().await, Folder::make());
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let token = folder.write("token", "first");
    let mut program = Program::start(&central(&server, &token)).await;
    fs::remove_file(&token).unwrap();
    program.process.logs(REFUSED, ("source", "file")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("cannot be read"), "{log}");
    assert!(!log.contains("first"), "{log}");
    // The previous config stays in use, with its credentials.
    presented(&server, "Bearer first").await;
    assert_eq!(program.band("api").await, "5/s");
    folder.write("token", "second");
    presented(&server, "Bearer second").await;
    assert_eq!(program.loads("file", "rejected").await, 1);
}

#[tokio::test]
async fn named_files_were_not_watched_after_a_broken_config_was_restored() {
    let (server, folder) = (Double::unreachable().await, Folder::make());
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let token = folder.write("token", "first");
    let text = central(&server, &token);
    let mut program = Program::start(&text).await;
    program.write("sources: [{ htp: {} }]");
    program.process.logs(REFUSED, ("source", "file")).await;
    program.write(&text);
    program.process.logs(RELOADED, ("level", "INFO")).await;
    folder.write("token", "second");
    presented(&server, "Bearer second").await;
}

#[tokio::test]
async fn other_files_of_a_policy_are_watched_too() {
    let folder = Folder::make();
    let secret = folder.write("secret", "x".repeat(32));
    let text = format!(
        "client: {{ jwt: {{ secret_file: '{secret}' }} }}\n{}",
        policies("api", "5/s")
    );
    let mut program = Program::start(&text).await;
    folder.write("secret", "y".repeat(32));
    program.process.logs(RELOADED, ("level", "INFO")).await;
    // The same content again is no change: the file is checked, and not read. The metric is updated
    // a moment after the log.
    let applied = "tidegate_source_loads_total{source=\"file\",outcome=\"applied\"}";
    program.until(applied, 2.0).await;
}

#[tokio::test]
async fn a_password_change_during_a_keeper_outage_activated_the_fallback() {
    let (keeper, folder) = (Double::unreachable().await, Folder::make());
    let value = policies("api", "5/s");
    keeper.say(None, &serde_json::json!({ "value": value }).to_string());
    let password = folder.write("password", "one");
    let fallback = folder.write("fallback.yaml", policies("api", "1/s"));
    let text = format!(
        "sources: [{{ keeper: {{ url: 'http://{}', key: k, password_file: '{password}', \
         fallback_file: '{fallback}', format: tidegate }}, refresh: 100ms, timeout: 5s }}]",
        keeper.address
    );
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "5/s");
    keeper.hang_up();
    program.process.logs(AWAY, ("source", "keeper")).await;
    folder.write("password", "two");
    program.process.logs(RELOADED, ("level", "INFO")).await;
    // It still serves its own last version.
    assert_eq!(program.band("api").await, "5/s");
    assert!(program.is_stale("keeper").await);
    let value = policies("api", "6/s");
    keeper.say(None, &serde_json::json!({ "value": value }).to_string());
    program.process.logs(SERVED, ("source", "keeper")).await;
    assert!(keeper.last().contains("Basic YWRtaW46dHdv"));
    assert_eq!(program.band("api").await, "6/s");
}
