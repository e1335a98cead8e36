use super::kit::{ADMIN, READ, WritableServer};
use serde_json::{Value, json};

#[tokio::test]
async fn a_change_requires_the_version_seen() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    let created = server.change("POST", "/policies", &made).await;
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(created.header("location"), Some("/admin/v1/policies/api"));
    let (item, etag) = server.seen("/policies/api").await;
    assert_eq!(created.header("etag"), Some(etag.as_str()));
    assert_eq!(etag, format!("\"{}\"", item["version"].as_str().unwrap()));

    let patch = json!({ "evaluate": "first" }).to_string();
    let call = || server.call("PATCH", "/policies/api").by(ADMIN).json(&patch);
    assert_eq!(call().send().await.status, 428);
    assert_eq!(
        call().header("if-match", "\"another\"").send().await.status,
        412
    );
    assert_eq!(
        call()
            .header("if-match", &format!("W/{etag}"))
            .send()
            .await
            .status,
        412
    );
    assert_eq!(
        call()
            .header("if-match", "not a version")
            .send()
            .await
            .status,
        400
    );
    let changed = call().header("if-match", &etag).send().await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_ne!(changed.header("etag"), Some(etag.as_str()));
    assert_eq!(changed.json()["document"]["evaluate"], "first");
    // The version that was read is outdated.
    assert_eq!(call().header("if-match", &etag).send().await.status, 412);
    let gone = server.call("DELETE", "/policies/api").by(ADMIN);
    assert_eq!(gone.header("if-match", &etag).send().await.status, 412);
}

#[tokio::test]
async fn of_two_concurrent_changes_one_gets_a_conflict() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let other = writable.another().await;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    // The other instance is notified.
    let mut seen = other.get("/policies/api").await;
    while seen.status == 404 {
        seen = other.get("/policies/api").await;
    }
    let etag = seen.header("etag").unwrap().to_owned();
    let rates = ["20/s", "30/s"].map(|rate| json!({ "rate": rate }).to_string());
    let (_, limit_tag) = server.seen("/policies/api/limits/all").await;
    let on = |server: &super::kit::AdminServer, body: &str| {
        let call = server.call("PATCH", "/policies/api/limits/all").by(ADMIN);
        call.header("if-match", &limit_tag).json(body)
    };
    let (one, two) = tokio::join!(on(server, &rates[0]).send(), on(&other, &rates[1]).send());
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412], "{} {}", one.body, two.body);
    assert!(!etag.is_empty());
    let won = if one.status == 200 { "20/s" } else { "30/s" };
    for server in [server, &other] {
        let mut rate = server.get("/policies/api/limits/all").await.json();
        while rate["document"]["rate"] != won {
            rate = server.get("/policies/api/limits/all").await.json();
        }
    }
}

#[tokio::test]
async fn changes_of_other_items_cause_no_conflict() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for name in ["a", "b"] {
        let made = json!({ "name": name, "limits": [{ "name": "all", "rate": "10/s" }] });
        assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    }
    let (_, a) = server.seen("/policies/a").await;
    let (_, b) = server.seen("/policies/b").await;
    let patch = |name: &str, etag: &str| {
        let call = server.call("PATCH", &format!("/policies/{name}")).by(ADMIN);
        call.header("if-match", etag)
            .json(r#"{"evaluate": "first"}"#)
    };
    let (one, two) = tokio::join!(patch("a", &a).send(), patch("b", &b).send());
    assert_eq!(
        (one.status, two.status),
        (200, 200),
        "{} {}",
        one.body,
        two.body
    );
}

#[tokio::test]
async fn an_unchanged_item_is_304() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let (_, etag) = server.seen("/policies/own").await;
    let call = || server.call("GET", "/policies/own").by(READ);
    let seen = call().header("if-none-match", &etag).send().await;
    assert_eq!((seen.status, seen.body.as_str()), (304, ""));
    assert_eq!(
        call().header("if-none-match", "\"x\"").send().await.status,
        200
    );
    let head = server
        .call("HEAD", "/policies/own")
        .by(READ)
        .send_for_text()
        .await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains(&etag) && head.ends_with("\r\n\r\n"), "{head}");
}

/// Writes a document into the source by hand, and waits until it was loaded and rejected.
async fn put_by_hand(writable: &WritableServer, field: &str, document: &str) {
    let key = "tidegate:policies";
    writable.redis.command(&["HSET", key, field, document]);
    writable.redis.command(&["HINCRBY", key, "version", "1"]);
    while source(writable).await["status"] != "REJECTED" {}
}

/// Returns the status of the source.
async fn source(writable: &WritableServer) -> Value {
    let status = writable.server.get("/status").await.json();
    status["sources"][1].clone()
}

#[tokio::test]
async fn a_pending_change_was_overwritten_from_the_served_version() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    let (_, etag) = server.seen("/policies/api").await;
    let (_, limit_tag) = server.seen("/policies/api/limits/all").await;
    // Another client stored a different document there, next to an invalid one.
    let waiting = json!({ "name": "api", "limits": [{ "name": "all", "rate": "20/s" }] });
    let redis = &writable.redis;
    let key = "tidegate:policies";
    redis.command(&["HSET", key, "policy/api", &waiting.to_string()]);
    let wrong = r#"{"name": "bad", "limits": [{"name": "all", "rate": "fast"}]}"#;
    put_by_hand(&writable, "policy/bad", wrong).await;

    let by = |verb: &str, path: &str, etag: &str| {
        let call = server.call(verb, path).by(ADMIN);
        call.header("if-match", etag)
    };
    let first = json!({ "evaluate": "first" }).to_string();
    let rate = json!({ "rate": "30/s" }).to_string();
    for call in [
        by("PATCH", "/policies/api", &etag).json(&first),
        by("PATCH", "/policies/api/limits/all", &limit_tag).json(&rate),
        by("DELETE", "/policies/api", &etag),
    ] {
        let refused = call.send().await;
        assert_eq!(refused.status, 412, "{}", refused.body);
        assert!(refused.body.contains("is not served"), "{}", refused.body);
    }
    // A stored document that is not served exists all the same.
    let good = json!({ "name": "bad", "limits": [{ "name": "all", "rate": "1/s" }] });
    let refused = server.change("POST", "/policies", &good).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("already"), "{}", refused.body);

    // Once the other is gone, the pending document is served unchanged.
    redis.command(&["HDEL", key, "policy/bad"]);
    redis.command(&["HINCRBY", key, "version", "1"]);
    while source(&writable).await["status"] != "UP" {}
    let (item, _) = server.seen("/policies/api").await;
    assert_eq!(item["document"], waiting);
}

#[tokio::test]
async fn a_change_to_a_pending_item_was_answered_as_served() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    let waiting = made.to_string().replace("10/s", "20/s");
    let (redis, key) = (&writable.redis, "tidegate:policies");
    redis.command(&["HSET", key, "policy/api", &waiting]);
    let wrong = r#"{"name": "bad", "limits": [{"name": "all", "rate": "fast"}]}"#;
    put_by_hand(&writable, "policy/bad", wrong).await;

    let limit = "/policies/api/limits/all";
    let rate = json!({ "rate": "20/s" });
    let refused = server.change("PATCH", limit, &rate).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    // The error names the other document as the cause.
    assert!(refused.body.contains("fast"), "{}", refused.body);
    redis.command(&["HDEL", key, "policy/bad"]);
    redis.command(&["HINCRBY", key, "version", "1"]);
    while source(&writable).await["status"] != "UP" {}
    let same = server.change("PATCH", limit, &rate).await;
    assert_eq!(same.status, 200, "{}", same.body);
}

#[tokio::test]
async fn a_pending_item_can_be_changed_explicitly() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    let waiting =
        r#"{"name": "api", "evaluate": "first", "limits": [{"name": "all", "rate": "fast"}]}"#;
    put_by_hand(&writable, "policy/api", waiting).await;
    let limits = json!({ "limits": [{ "name": "all", "rate": "20/s" }] });
    let changed = server.change("PATCH", "/policies/api", &limits).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let document = &changed.json()["document"];
    // Nothing of the stored document is lost except the fixed part.
    assert_eq!(document["evaluate"], "first", "{document}");
    assert_eq!(document["limits"], limits["limits"], "{document}");
    assert_eq!(source(&writable).await["status"], "UP");
}

#[tokio::test]
async fn an_invalid_document_was_reported_as_concurrent_changes() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    put_by_hand(&writable, "policy/odd", "not a document").await;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    let refused = server.change("POST", "/policies", &made).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    for expected in ["`redis`", "`policy/odd`: not JSON"] {
        assert!(refused.body.contains(expected), "{}", refused.body);
    }
    // Creating it again, or removing it, fixes it.
    let odd = json!({ "name": "odd", "limits": [{ "name": "all", "rate": "1/s" }] });
    let mended = server.change("POST", "/policies", &odd).await;
    assert_eq!(mended.status, 201, "{}", mended.body);
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    assert_eq!(source(&writable).await["status"], "UP");
}

#[tokio::test]
async fn invalid_documents_could_be_fixed_only_by_hand() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    put_by_hand(&writable, "policy/odd", "not a document").await;
    put_by_hand(&writable, "policy/api", "[").await;
    put_by_hand(
        &writable,
        "policy/bad",
        r#"{"name": "bad", "limits": [{"name": "all", "rate": "fast"}]}"#,
    )
    .await;
    while !source(&writable).await["error"]
        .to_string()
        .contains("policy/odd")
    {}
    let remove = |name: &str| {
        let call = server.call("DELETE", &format!("/policies/{name}"));
        call.by(ADMIN).header("if-match", "*")
    };
    // The change is written, although another error remains.
    let less = remove("odd").send().await;
    assert_eq!(less.status, 422, "{}", less.body);
    assert!(
        less.body.contains("`policy/api`: not JSON"),
        "{}",
        less.body
    );
    let last = writable.audit().pop().unwrap();
    assert_eq!(
        (&last["outcome"], &last["target"]),
        (&"refused_after_writing".into(), &"policy/odd".into())
    );
    let error = source(&writable).await["error"].to_string();
    assert!(!error.contains("policy/odd"), "{error}");
    assert_eq!(remove("odd").send().await.status, 404);
    // All are documents again, one of them invalid.
    let rate = json!({ "limits": [{ "name": "all", "rate": "20/s" }] });
    let unsound = server.change("PATCH", "/policies/api", &rate).await;
    assert_eq!(unsound.status, 422, "{}", unsound.body);
    assert!(unsound.body.contains("fast"), "{}", unsound.body);
    assert_eq!(remove("bad").send().await.status, 204);
    assert_eq!(source(&writable).await["status"], "UP");
    let (item, _) = server.seen("/policies/api").await;
    assert_eq!(item["document"]["limits"], rate["limits"]);
}

#[tokio::test]
async fn several_invalid_documents_could_not_be_fixed_one_by_one() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for name in ["one", "two"] {
        let wrong = json!({ "name": name, "limits": [{ "name": "all", "rate": "fast" }] });
        put_by_hand(&writable, &format!("policy/{name}"), &wrong.to_string()).await;
    }
    while server.get("/policies/own").await.status != 200 {}
    // No further object is created next to them.
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    let refused = server.change("POST", "/policies", &made).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    let remove = |name: &str| {
        let call = server.call("DELETE", &format!("/policies/{name}"));
        call.by(ADMIN).header("if-match", "*")
    };
    let less = remove("one").send().await;
    assert_eq!(less.status, 422, "{}", less.body);
    assert_eq!(remove("two").send().await.status, 204);
    assert_eq!(source(&writable).await["status"], "UP");
}

#[tokio::test]
async fn lost_policies_were_reported_as_concurrent_changes() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    writable.redis.command(&["DEL", "tidegate:policies"]);
    let more = json!({ "name": "web", "limits": [{ "name": "all", "rate": "10/s" }] });
    let refused = server.change("POST", "/policies", &more).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("is missing"), "{}", refused.body);
}
