use super::slow::{Slow, late, policy};
use crate::kit::process::Ended;
use serde_json::Value;
use tidegate_testkit::redis::ProxyFaults;

/// Where in the log a message stands.
fn place(ended: &Ended, message: &str) -> usize {
    let said = |line: &str| {
        let line: Option<Value> = serde_json::from_str(line).ok();
        line.is_some_and(|line| line["message"] == message)
    };
    let found = ended.stderr.lines().position(said);
    found.unwrap_or_else(|| panic!("never logged {message}, but {}", ended.stderr))
}

/// That the change was made, and made while the server was stopping.
fn was_made(slow: &Slow, ended: &Ended) {
    assert!(ended.status.success(), "{}", ended.stderr);
    let audit = slow.audit();
    assert_eq!(audit.len(), 1, "{audit:?}");
    let told = ["outcome", "target"].map(|it| audit[0][it].as_str().unwrap());
    assert_eq!(told, ["done", "policy/api"]);
    assert_eq!(audit[0]["after"], policy());
    let done = place(ended, "changed by an administrator");
    assert!(place(ended, "draining") < done, "{}", ended.stderr);
    assert!(done < place(ended, "drained"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_change_under_way_is_made_written_down_and_answered_before_the_server_stops() {
    let (server, slow) = Slow::start("60", "30s").await;
    slow.proxy.set(late());
    let mut client = slow.begin(&server).await;
    server.process.signal("TERM").await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    was_made(&slow, &server.process.ended().await);
}

#[tokio::test]
async fn a_change_whose_caller_has_gone_is_made_and_written_down_before_the_server_stops() {
    let (server, slow) = Slow::start("60", "30s").await;
    slow.proxy.set(late());
    drop(slow.begin(&server).await);
    server.process.signal("TERM").await;
    was_made(&slow, &server.process.ended().await);
}

#[tokio::test]
async fn what_does_not_come_to_its_end_in_time_is_written_down_as_unknown() {
    let (server, slow) = Slow::start("1", "5m").await;
    slow.proxy.set(ProxyFaults::drop_replies());
    let mut client = slow.begin(&server).await;
    server.process.signal("TERM").await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.body.contains("not known"), "{}", reply.body);
    let ended = server.process.ended().await;
    place(&ended, "cut changes of administrators that did not finish");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let audit = slow.audit();
    assert_eq!(audit.len(), 1, "{audit:?}");
    let told = ["who", "action", "outcome", "target"].map(|it| audit[0][it].as_str().unwrap());
    assert_eq!(told, ["ann", "createPolicy", "unknown", "policies"]);
}
