use super::kit::{AdminServer, OPERATE};
use super::slow::{SlowRedis, late, policy};
use serde_json::{Value, json};
use tidegate_testkit::redis::ProxyFaults;

/// Returns the number of audit lines, and the last one: the outcome of a call.
fn last(slow: &SlowRedis) -> (usize, Value) {
    let audit = slow.audit();
    let line = audit.last().cloned().unwrap_or_default();
    (audit.len(), line)
}

async fn reload(server: &AdminServer) -> (u16, Value) {
    let reply = server.call("POST", "/reload").by(OPERATE).send().await;
    (reply.status, reply.json())
}

/// Part of the source is served, and the file is invalid in two ways: as policy, and as YAML.
#[tokio::test]
async fn a_partly_rejected_reload_is_reported_as_such() {
    let (server, slow) = SlowRedis::start("10", "30s").await;
    for (nth, wrong) in ["rate: nonsense", "rate: ["].into_iter().enumerate() {
        let name = format!("new{nth}");
        let document = json!({ "name": name, "limits": [{ "name": "all", "rate": "1/s" }] });
        slow.put(&format!("policy/{name}"), &document.to_string());
        slow.write("rate: 1/min", wrong);
        let before = server.get("/status").await.json()["version"].clone();
        let (status, answer) = reload(&server).await;
        assert_eq!(status, 422, "{answer}");
        let new = server.get(&format!("/policies/{name}")).await;
        assert_eq!(new.status, 200, "{wrong}: {}", new.body);
        let after = server.get("/status").await.json()["version"].clone();
        assert_ne!(after, before);
        let (count, line) = last(&slow);
        assert_eq!(count, nth + 1, "{line}");
        assert_eq!(line["outcome"], "partly_refused", "{line}");
        let versions = (&line["before"]["version"], &line["after"]["version"]);
        assert_eq!(versions, (&before, &after));
    }
    // If nothing is served, nothing was changed.
    let (status, answer) = reload(&server).await;
    assert_eq!(status, 422, "{answer}");
    assert_eq!(last(&slow).0, 2);
}

/// A file that the configuration names is gone when the written change is to be served.
#[tokio::test]
async fn a_written_but_rejected_change_is_reported_as_such() {
    let (server, slow) = SlowRedis::start("10", "30s").await;
    slow.proxy.set(late());
    let mut client = slow.begin(&server).await;
    slow.has_secret(false);
    let reply = client.reply().await;
    assert_eq!(reply.status, 422, "{}", reply.body);
    assert!(
        reply
            .body
            .contains("the document was stored, but is not served"),
        "{}",
        reply.body
    );
    let (count, line) = last(&slow);
    assert_eq!(
        (count, &line["outcome"]),
        (1, &"refused_after_writing".into())
    );
    assert_eq!(
        (&line["target"], &line["after"]),
        (&"policy/api".into(), &policy())
    );
    assert!(slow.is_written("policy/api"));
    assert_eq!(server.get("/policies/api").await.status, 404);

    slow.proxy.set(ProxyFaults::none());
    slow.has_secret(true);
    let (status, answer) = reload(&server).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.get("/policies/api").await.status, 200);
    assert_eq!(last(&slow).1["outcome"], "done");
}

#[tokio::test]
async fn a_write_without_a_reply_is_unknown_and_an_unsent_one_is_none() {
    let (server, slow) = SlowRedis::start("10", "1s").await;
    slow.proxy.set(ProxyFaults::drop_replies());
    let reply = slow.begin(&server).await.reply().await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    let (count, line) = last(&slow);
    assert_eq!((count, &line["outcome"]), (1, &"unknown".into()), "{line}");
    assert_eq!(
        (&line["target"], &line["after"]),
        (&"policy/api".into(), &policy())
    );

    // The write certainly failed.
    slow.proxy.set(ProxyFaults::refuse());
    slow.proxy.reset();
    let other = json!({ "name": "other", "limits": [{ "name": "all", "rate": "1/s" }] });
    let reply = server.change("POST", "/policies", &other).await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(!slow.is_written("policy/other"));
    assert_eq!(last(&slow).0, 1, "{}", last(&slow).1);
}

#[tokio::test]
async fn a_change_rejected_before_its_write_was_reported_as_unknown() {
    let (server, slow) = SlowRedis::start("10", "30s").await;
    slow.put(
        "policy/bad",
        r#"{"name": "bad", "limits": [{"name": "all", "rate": "x"}]}"#,
    );
    let (status, answer) = reload(&server).await;
    assert_eq!(status, 422, "{answer}");
    let sources = server.get("/status").await.json()["sources"].clone();
    assert_eq!(sources[1]["status"], "REJECTED", "{sources}");
    let count = last(&slow).0;
    let reply = server.change("POST", "/policies", &policy()).await;
    assert_eq!(reply.status, 422, "{}", reply.body);
    assert!(!slow.is_written("policy/api"));
    assert_eq!(last(&slow).0, count, "{}", last(&slow).1);
}
