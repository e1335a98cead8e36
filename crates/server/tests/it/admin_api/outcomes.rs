use super::kit::{Administered, OPERATE};
use super::slow::{Slow, late, policy};
use serde_json::{Value, json};
use tidegate_testkit::redis::ProxyFaults;

/// What was written down last: what came of what, and how often anything was.
fn last(slow: &Slow) -> (usize, Value) {
    let audit = slow.audit();
    let line = audit.last().cloned().unwrap_or_default();
    (audit.len(), line)
}

async fn reload(server: &Administered) -> (u16, Value) {
    let reply = server.call("POST", "/reload").by(OPERATE).send().await;
    (reply.status, reply.json())
}

/// What is served of the source, and the file is wrong in two ways: as policy, and as a text at all.
#[tokio::test]
async fn a_reload_of_which_some_is_served_and_some_refused_is_told_as_such() {
    let (server, slow) = Slow::start("10", "30s").await;
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
    // Of which nothing is served, nothing was changed.
    let (status, answer) = reload(&server).await;
    assert_eq!(status, 422, "{answer}");
    assert_eq!(last(&slow).0, 2);
}

/// A file that the configuration names is gone by the time at which what was written is to be served.
#[tokio::test]
async fn what_is_written_and_then_refused_after_all_is_told_as_such() {
    let (server, slow) = Slow::start("10", "30s").await;
    slow.proxy.set(late());
    let mut client = slow.begin(&server).await;
    slow.has_secret(false);
    let reply = client.reply().await;
    assert_eq!(reply.status, 422, "{}", reply.body);
    assert!(
        reply.body.contains("it was written there"),
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
async fn what_was_written_and_never_answered_is_unknown_and_what_was_not_sent_is_nothing() {
    let (server, slow) = Slow::start("10", "1s").await;
    slow.proxy.set(ProxyFaults::drop_replies());
    let reply = slow.begin(&server).await.reply().await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    let (count, line) = last(&slow);
    assert_eq!((count, &line["outcome"]), (1, &"unknown".into()), "{line}");
    assert_eq!(
        (&line["target"], &line["after"]),
        (&"policy/api".into(), &policy())
    );

    // It is certain that nobody heard of this one.
    slow.proxy.set(ProxyFaults::refuse());
    slow.proxy.reset();
    let other = json!({ "name": "other", "limits": [{ "name": "all", "rate": "1/s" }] });
    let reply = server.change("POST", "/policies", &other).await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(!slow.is_written("policy/other"));
    assert_eq!(last(&slow).0, 1, "{}", last(&slow).1);
}

#[tokio::test]
async fn what_was_refused_before_it_was_written_was_told_as_unknown_beside_what_was_refused_before()
{
    let (server, slow) = Slow::start("10", "30s").await;
    slow.put(
        "policy/bad",
        r#"{"name": "bad", "limits": [{"name": "all", "rate": "x"}]}"#,
    );
    let (status, answer) = reload(&server).await;
    assert_eq!(status, 422, "{answer}");
    let sources = server.get("/status").await.json()["sources"].clone();
    assert_eq!(sources[1]["refused"], true, "{sources}");
    let count = last(&slow).0;
    let reply = server.change("POST", "/policies", &policy()).await;
    assert_eq!(reply.status, 422, "{}", reply.body);
    assert!(!slow.is_written("policy/api"));
    assert_eq!(last(&slow).0, count, "{}", last(&slow).1);
}
