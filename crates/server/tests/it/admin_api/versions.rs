use super::kit::{ADMIN, READ, Writable};
use serde_json::json;

#[tokio::test]
async fn a_change_names_the_version_that_was_seen() {
    let writable = Writable::start().await;
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
    // What was seen is gone now.
    assert_eq!(call().header("if-match", &etag).send().await.status, 412);
    let gone = server.call("DELETE", "/policies/api").by(ADMIN);
    assert_eq!(gone.header("if-match", &etag).send().await.status, 412);
}

#[tokio::test]
async fn of_two_who_change_the_same_at_once_one_is_told_that_it_has_changed() {
    let writable = Writable::start().await;
    let server = &writable.server;
    let other = writable.another().await;
    let made = json!({ "name": "api", "limits": [{ "name": "all", "rate": "10/s" }] });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    // The other instance hears of it.
    let mut seen = other.get("/policies/api").await;
    while seen.status == 404 {
        seen = other.get("/policies/api").await;
    }
    let etag = seen.header("etag").unwrap().to_owned();
    let rates = ["20/s", "30/s"].map(|rate| json!({ "rate": rate }).to_string());
    let (_, limit_tag) = server.seen("/policies/api/limits/all").await;
    let on = |server: &super::kit::Administered, body: &str| {
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
async fn whoever_changes_something_else_is_not_in_the_way() {
    let writable = Writable::start().await;
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
async fn who_has_seen_it_already_is_not_told_again() {
    let writable = Writable::start().await;
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
