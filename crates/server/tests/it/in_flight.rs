//! `POST /v1/acquire`, `/v1/renew`, `/v1/release`, and callers that do not say when a request ends.

use crate::kit::{Client, Reply, Server};
use serde_json::{Value, json};
use std::net::SocketAddr;

const JOBS: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: at-once, key: user, concurrent: 2, hold: 1h }
      - { name: per-hour, key: user, rate: 5/h }
  - name: plain
    limits: [{ name: all, rate: 10/h }]
";

async fn ask(address: SocketAddr, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    Client::connect(address).await.ask(&request).await
}

async fn acquire(address: SocketAddr, ttl_ms: u64) -> Value {
    let question = json!({ "user": "ann", "ttl_ms": ttl_ms });
    ask(address, "/v1/acquire", &question).await.json()
}

fn id(acquired: &Value) -> &str {
    acquired["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{acquired}"))
}

#[tokio::test]
async fn permits_are_held_until_they_are_released() {
    let server = Server::start(JOBS).await;
    let first = acquire(server.http, 60_000).await;
    assert_eq!(
        (&first["allowed"], &first["limit"], &first["expires_ms"]),
        (&json!(true), &json!("at-once"), &json!(60_000))
    );
    let second = acquire(server.http, 60_000).await;
    let refused = acquire(server.http, 60_000).await;
    assert_eq!(
        (&refused["allowed"], &refused["limit"], &refused["band"]),
        (&json!(false), &json!("at-once"), &json!("2 at once"))
    );
    assert!(refused.get("id").is_none() && refused.get("expires_ms").is_none());
    // Both end by themselves, so the wait is known.
    let wait_ms = refused["retry_after_ms"].as_u64().unwrap();
    assert!((50_000..=60_000).contains(&wait_ms), "{refused}");

    let renewal = json!({ "id": id(&first), "ttl_ms": 120_000 });
    let renewed = ask(server.http, "/v1/renew", &renewal).await;
    assert_eq!(
        (renewed.status, renewed.body.as_str()),
        (200, r#"{"held":true}"#)
    );
    let release = json!({ "id": id(&first) });
    for (path, body) in [
        ("/v1/release", r#"{"released":true}"#),
        ("/v1/release", r#"{"released":false}"#),
        ("/v1/renew", r#"{"held":false}"#),
    ] {
        let reply = ask(server.http, path, &release).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, body), "{path}");
    }
    // The rate was charged for the two that passed, and not for the refused one.
    let third = acquire(server.http, 60_000).await;
    assert_eq!(third["allowed"], true);
    for held in [&second, &third] {
        ask(server.http, "/v1/release", &json!({ "id": id(held) })).await;
    }
    for remaining in [1, 0] {
        let next = acquire(server.http, 60_000).await;
        assert_eq!(next["remaining"], remaining, "{next}");
        ask(server.http, "/v1/release", &json!({ "id": id(&next) })).await;
    }
    assert_eq!(acquire(server.http, 1).await["limit"], "per-hour");
}

#[tokio::test]
async fn a_check_holds_a_permit_for_the_time_of_the_limit() {
    let server = Server::start(JOBS).await;
    let question = json!({ "user": "ann" });
    for allowed in [true, true, false] {
        let checked = ask(server.http, "/v1/check", &question).await.json();
        assert_eq!(checked["allowed"], allowed);
        assert!(checked.get("id").is_none());
    }
    let refused = ask(server.http, "/v1/check", &question).await.json();
    let wait_ms = refused["retry_after_ms"].as_u64().unwrap();
    assert!((3_500_000..=3_600_000).contains(&wait_ms), "{refused}");
    // A policy without such limits has no ids.
    let plain = json!({ "policy": "plain", "ttl_ms": 5 });
    let acquired = ask(server.http, "/v1/acquire", &plain).await.json();
    assert!(acquired["allowed"] == true && acquired.get("id").is_none());
}

#[tokio::test]
async fn ids_that_are_not_those_of_permits_release_nothing() {
    let reserving =
        format!("{JOBS}  - {{ name: llm, reserve: 60s, limits: [{{ name: all, rate: 9/h }}] }}\n");
    let server = Server::start(&reserving).await;
    let question = json!({ "policy": "llm" });
    let reserved = ask(server.http, "/v1/reserve", &question).await.json();
    let reservation = reserved["reservation"].as_str().unwrap();
    for forged in [reservation, "r1", "", "r1AAAA"] {
        let reply = ask(server.http, "/v1/release", &json!({ "id": forged })).await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (200, r#"{"released":false}"#)
        );
    }
    let acquired = acquire(server.http, 60_000).await;
    let commit = json!({ "reservation": id(&acquired), "actual": 0 });
    assert_eq!(ask(server.http, "/v1/commit", &commit).await.status, 404);
    for (path, body) in [
        ("/v1/release", json!({ "id": "a", "ttl_ms": 5 })),
        ("/v1/renew", json!({ "ttl_ms": 5 })),
        ("/v1/renew", json!({ "id": "a", "ttl_ms": 0 })),
        ("/v1/acquire", json!([{ "user": "ann" }])),
    ] {
        assert_eq!(
            ask(server.http, path, &body).await.status,
            400,
            "{path} {body}"
        );
    }
}
