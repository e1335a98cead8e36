use super::slow::{SlowRedis, late, policy};
use crate::kit::process::ProcessEnd;
use serde_json::Value;
use tidegate_testkit::redis::ProxyFaults;

/// Returns the line number of a message in the log.
fn place(ended: &ProcessEnd, message: &str) -> usize {
    let said = |line: &str| {
        let line: Option<Value> = serde_json::from_str(line).ok();
        line.is_some_and(|line| line["message"] == message)
    };
    let found = ended.stderr.lines().position(said);
    found.unwrap_or_else(|| panic!("never logged {message}, but {}", ended.stderr))
}

/// Asserts that the change was made while the server was stopping.
fn was_made(slow: &SlowRedis, ended: &ProcessEnd) {
    assert!(ended.status.success(), "{}", ended.stderr);
    let audit = slow.audit();
    assert_eq!(audit.len(), 1, "{audit:?}");
    let told = ["outcome", "target"].map(|it| audit[0][it].as_str().unwrap());
    assert_eq!(told, ["done", "policy/api"]);
    assert_eq!(audit[0]["after"], policy());
    let done = place(ended, "admin change");
    assert!(place(ended, "draining") < done, "{}", ended.stderr);
    assert!(done < place(ended, "drained"), "{}", ended.stderr);
}

#[tokio::test]
async fn shutdown_finishes_audits_and_answers_a_change() {
    let (server, slow) = SlowRedis::start("60", "30s").await;
    slow.proxy.set(late());
    let mut client = slow.begin(&server).await;
    server.process.signal("TERM").await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    was_made(&slow, &server.process.ended().await);
}

#[tokio::test]
async fn shutdown_finishes_and_audits_a_change_without_its_caller() {
    let (server, slow) = SlowRedis::start("60", "30s").await;
    slow.proxy.set(late());
    drop(slow.begin(&server).await);
    server.process.signal("TERM").await;
    was_made(&slow, &server.process.ended().await);
}

#[tokio::test]
async fn a_change_cut_by_shutdown_is_audited_as_unknown() {
    let (server, slow) = SlowRedis::start("1", "5m").await;
    slow.proxy.set(ProxyFaults::drop_replies());
    let mut client = slow.begin(&server).await;
    server.process.signal("TERM").await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.body.contains("not known"), "{}", reply.body);
    let ended = server.process.ended().await;
    place(&ended, "admin changes aborted: they did not finish in time");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let audit = slow.audit();
    assert_eq!(audit.len(), 1, "{audit:?}");
    let told = ["who", "action", "outcome", "target"].map(|it| audit[0][it].as_str().unwrap());
    assert_eq!(told, ["ann", "createPolicy", "unknown", "policies"]);
}
