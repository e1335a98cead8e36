use super::kit::{ADMIN, OPERATE, READ, WritableServer};
use serde_json::{Value, json};

const SECRET: &str = "s3cret-of-the-upstream";

fn route(secret: &str) -> Value {
    json!({
        "name": "shop", "upstreams": ["http://127.0.0.1:1"], "match": { "path": "/shop" },
        "policy": "own", "request_headers": { "set": { "X-Internal-Key": secret } },
    })
}

#[tokio::test]
async fn a_route_header_was_audited_in_plain_text() {
    let mut writable = WritableServer::start().await;
    let server = &writable.server;
    let made = server.change("POST", "/routes", &route(SECRET)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let change = json!({ "match": { "path": "/shops" } });
    let changed = server.change("PATCH", "/routes/shop", &change).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let seen = server.get("/routes/shop").await;
    let set = &seen.json()["document"]["request_headers"]["set"];
    assert_eq!(set["X-Internal-Key"], "***");
    let wrong = json!({ "request_headers": { "set": { "X-Internal-Key": [SECRET] } } });
    let wrong = server.change("PATCH", "/routes/shop", &wrong).await;
    assert_eq!(wrong.status, 422, "{}", wrong.body);
    // It is masked, and kept.
    let kept = writable
        .redis
        .command(&["HGET", "tidegate:policies", "route/shop"]);
    assert!(kept.text().contains(SECRET), "{}", kept.text());

    let told = json!(writable.audit()).to_string();
    assert!(told.contains("X-Internal-Key"), "{told}");
    let stream = writable
        .redis
        .command(&["XRANGE", "tidegate:audit", "-", "+"]);
    let entries = stream.list().iter().map(|entry| entry.list()[1].texts());
    let streamed = entries.flatten().collect::<Vec<_>>().join("\n");
    assert!(streamed.contains("X-Internal-Key"), "{streamed}");
    let message = "admin change";
    let process = &mut writable.server.process;
    let created = process.logs(message, ("action", "createRoute")).await;
    let altered = process.logs(message, ("action", "changeRoute")).await;
    let logged = format!("{created}{altered}");
    assert!(logged.contains("X-Internal-Key"), "{logged}");
    let bodies = [made.body, changed.body, seen.body, wrong.body];
    for shown in bodies.into_iter().chain([told, streamed, logged]) {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[tokio::test]
async fn a_change_of_only_a_secret_kept_the_version() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    server.change("POST", "/routes", &route(SECRET)).await;
    let (before, etag) = server.seen("/routes/shop").await;
    let change = json!({ "request_headers": { "set": { "X-Internal-Key": "another" } } });
    let changed = server.change("PATCH", "/routes/shop", &change).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let (after, now) = server.seen("/routes/shop").await;
    assert_eq!(before["document"], after["document"]);
    assert_ne!(etag, now);
    let call = server.call("PATCH", "/routes/shop").by(ADMIN);
    let call = call.header("if-match", &etag).json(&change.to_string());
    assert_eq!(call.send().await.status, 412);

    // The same for a limit.
    let limit = |secret: &str| {
        let token = json!({ "headers": { "x-token": secret } });
        json!({ "name": "all", "rate": "1/s", "match": token })
    };
    let policy = json!({ "name": "api", "limits": [limit(SECRET)] });
    let made = server.change("POST", "/policies", &policy).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = "/policies/api/limits/all";
    let (before, etag) = server.seen(path).await;
    let changed = server.change("PATCH", path, &limit("another")).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let (after, now) = server.seen(path).await;
    assert_eq!(before["document"], after["document"]);
    assert_ne!(etag, now);
}

#[tokio::test]
async fn failed_and_uncertain_changes_were_not_audited() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let call = server.call("DELETE", "/guards/keys/members/hunter2");
    assert_eq!(call.by(READ).send().await.status, 403);
    let call = server.call("DELETE", "/policies/own").by(OPERATE);
    assert_eq!(call.header("if-match", "*").send().await.status, 403);
    // Adding to a key that is no set fails, which the server cannot know before.
    writable.redis.command(&["SET", "BadKeys", "x"]);
    let body = r#"{"member": "hunter2"}"#;
    let call = server.call("POST", "/guards/keys/members").by(OPERATE);
    assert_eq!(call.json(body).send().await.status, 503);

    let audit = writable.audit();
    let told: Vec<[&str; 4]> = audit
        .iter()
        .map(|line| ["who", "action", "outcome", "target"].map(|it| line[it].as_str().unwrap()))
        .collect();
    let expected = [
        [
            "rita",
            "removeMember",
            "forbidden",
            "guards/keys/members/{member}",
        ],
        ["oskar", "deletePolicy", "forbidden", "policies/own"],
        ["oskar", "addMember", "unknown", "guard/keys/member"],
    ];
    assert_eq!(told, expected);
    assert!(!json!(audit).to_string().contains("hunter2"));
}
