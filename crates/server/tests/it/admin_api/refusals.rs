use super::kit::{ADMIN, READ, WritableServer};
use crate::kit::Client;
use serde_json::json;
use tidegate_testkit::redis::RespReply;

#[tokio::test]
async fn all_errors_of_a_document_are_reported_at_once() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let wrong = json!({
        "name": "api",
        "evaluat": "all",
        "limits": [
            { "name": "a", "rate": "fast" },
            { "name": "a", "rate": "1/s", "key": "nobody" },
            { "name": "b" },
        ],
    });
    let refused = server.change("POST", "/policies", &wrong).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    let problem = refused.json();
    let errors = problem["errors"].as_array().unwrap();
    assert!(errors.len() >= 5, "{problem}");
    for error in errors {
        assert!(
            error["where"].as_str().unwrap().contains("redis"),
            "{error}"
        );
        assert!(error["message"].is_string(), "{error}");
    }
    let helped = errors.iter().any(|it| {
        it["help"]
            .as_str()
            .is_some_and(|help| help.contains("evaluate"))
    });
    assert!(helped, "{problem}");
    // Nothing was created.
    assert_eq!(server.get("/policies/api").await.status, 404);
    assert_eq!(
        server.get("/status").await.json()["sources"][1]["status"],
        "UP"
    );
}

#[tokio::test]
async fn a_valid_but_unservable_document_was_written() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    // No certificate has such a name.
    let route = json!({
        "name": "safe",
        "match": { "path": "/safe" },
        "upstreams": ["https://a..b:1"],
    });
    let refused = server.change("POST", "/routes", &route).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.contains("route `safe`"), "{}", refused.body);
    let version = ["HGET", "tidegate:policies", "version"];
    assert_eq!(writable.redis.command(&version), RespReply::Nil);
    let status = server.get("/status").await.json();
    assert_eq!(status["sources"][1]["status"], "UP", "{status}");
}

#[tokio::test]
async fn bodies_are_json_of_a_bounded_size_and_depth() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let call = || server.call("POST", "/policies").by(ADMIN);
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(40), "]".repeat(40));
    for (body, expected) in [
        ("", 400),
        ("{", 400),
        ("{} {}", 400),
        ("\u{1}", 400),
        (r#"{"name": "a", "name": "b"}"#, 400),
        (deep.as_str(), 400),
        ("[]", 422),
        ("null", 422),
        ("\"text\"", 422),
        ("{}", 422),
        (r#"{"name": 5}"#, 422),
        (r#"{"name": ""}"#, 422),
        (r#"{"name": "a b"}"#, 422),
    ] {
        let reply = call().json(body).send().await;
        assert_eq!(reply.status, expected, "{body}: {}", reply.body);
        assert!(
            reply.json()["errors"][0]["where"].is_string(),
            "{}",
            reply.body
        );
    }
    for (kind, expected) in [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/merge-patch+json", 415),
        ("application/json; charset=utf-8", 422),
    ] {
        let reply = call().header("content-type", kind).body("{}").send().await;
        assert_eq!(reply.status, expected, "{kind}");
    }
    assert_eq!(call().body("{}").send().await.status, 415);
    let zipped = call()
        .header("content-encoding", "gzip")
        .json("{}")
        .send()
        .await;
    assert_eq!(zipped.status, 415);
    let patch = server
        .call("PATCH", "/policies/own")
        .by(ADMIN)
        .header("if-match", "*");
    let patch = patch
        .header("content-type", "application/merge-patch+json")
        .body("{}");
    assert_eq!(patch.send().await.status, 409, "it is in a file");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(1 << 20));
    let refused = server
        .call("POST", "/policies")
        .by(ADMIN)
        .json(&large)
        .send()
        .await;
    assert_eq!(refused.status, 413);
    assert_eq!(refused.header("connection"), Some("close"));
    // A body without a length is read up to the bound.
    let mut client = Client::connect(server.address).await;
    let head = format!(
        "POST /admin/v1/policies HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {ADMIN}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    client.send(&head).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..20 {
        // The server may close before the last piece.
        client.try_send(&chunk).await.ok();
    }
    assert_eq!(client.reply().await.status, 413);
    // The body of an unauthorized call is not read.
    let stranger = server.call("POST", "/policies").json(&large).send().await;
    assert_eq!(stranger.status, 401);
}

#[tokio::test]
async fn methods_and_paths_are_matched_exactly() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for (verb, path, expected, allowed) in [
        ("PUT", "/policies", 405, Some("GET, HEAD, POST")),
        ("OPTIONS", "/policies", 405, Some("GET, HEAD, POST")),
        (
            "POST",
            "/policies/own",
            405,
            Some("GET, HEAD, PATCH, DELETE"),
        ),
        ("TRACE", "/status", 405, Some("GET, HEAD")),
        ("GET", "/policies/", 404, None),
        ("GET", "//policies", 404, None),
        ("GET", "/policies/../status", 404, None),
        ("GET", "/policies/%6Fwn", 200, None),
        ("GET", "/policies/%256Fwn", 404, None),
        ("GET", "/policies/%zz", 400, None),
        ("GET", "/policies/%00", 400, None),
        ("GET", "/policies/%ff", 400, None),
        ("GET", "/status?x=1", 400, None),
    ] {
        let reply = server.call(verb, path).by(ADMIN).send().await;
        assert_eq!(reply.status, expected, "{verb} {path}: {}", reply.body);
        assert_eq!(reply.header("allow"), allowed, "{verb} {path}");
    }
    let long = format!("/policies/{}", "x".repeat(2_000));
    assert_eq!(server.get(&long).await.status, 400);
    let with_body = server
        .call("GET", "/status")
        .by(READ)
        .json("{}")
        .send()
        .await;
    assert_eq!(with_body.status, 400);
}

#[tokio::test]
async fn responses_are_not_cacheable() {
    let writable = WritableServer::start().await;
    for path in ["/status", "/nothing"] {
        let reply = writable.server.get(path).await;
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(reply.header("access-control-allow-origin"), None, "{path}");
    }
}
