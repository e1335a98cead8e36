use super::kit::{AdminServer, OPERATE, READ, WritableServer, admin};
use crate::kit::folder::Folder;
use crate::kit::{Reply, post};
use serde_json::{Value, json};

async fn asks(server: &AdminServer, ip: &str) -> bool {
    let question = json!({ "ip": ip, "path": "/" }).to_string();
    post(server.http, &question).await.is_allowed()
}

async fn buckets(server: &AdminServer, what: &str, body: &Value) -> Reply {
    let call = server.call("POST", &format!("/buckets/{what}")).by(OPERATE);
    call.json(&body.to_string()).send().await
}

#[tokio::test]
async fn a_bucket_is_inspected_and_reset() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for _ in 0..5 {
        assert!(asks(server, "192.0.2.1").await);
    }
    assert!(!asks(server, "192.0.2.1").await);
    let whose = json!({ "limit": "per-client", "key": { "ip": "192.0.2.1" } });
    let seen = buckets(server, "inspect", &whose).await.json();
    assert_eq!(seen["bucket"], "own/per-client/ip:192.0.2.1");
    assert_eq!(seen["bands"][0]["remaining"], 0);
    assert_eq!(seen["keys"][0]["exists"], true);
    assert_eq!(seen["found"], true);
    let named = json!({ "bucket": "own/per-client/ip:192.0.2.1" });
    assert_eq!(
        buckets(server, "inspect", &named).await.json()["bucket"],
        seen["bucket"]
    );

    let mut dry = named.clone();
    dry["dry_run"] = true.into();
    let told = buckets(server, "reset", &dry).await.json();
    assert_eq!(
        (&told["forgotten"], &told["dry_run"]),
        (&1.into(), &true.into())
    );
    assert_eq!(
        buckets(server, "inspect", &named).await.json()["bands"][0]["remaining"],
        0
    );
    let reset = buckets(server, "reset", &named).await;
    assert_eq!(reset.status, 200, "{}", reset.body);
    assert_eq!(reset.json()["forgotten"], 1);
    let again = buckets(server, "reset", &named).await.json();
    assert_eq!(
        (&again["found"], &again["forgotten"]),
        (&false.into(), &0.into())
    );
    assert_eq!(
        buckets(server, "inspect", &named).await.json()["found"],
        false
    );
    // The deny cache forgets a refusal within a second.
    while !asks(server, "192.0.2.1").await {}
}

#[tokio::test]
async fn all_buckets_of_a_limit_are_reset() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for nth in 1..=20 {
        assert!(asks(server, &format!("192.0.2.{nth}")).await);
    }
    let all = json!({ "limit": "per-client", "all": true, "policy": "own" });
    let told = buckets(server, "reset", &all).await;
    assert_eq!(told.status, 200, "{}", told.body);
    let told = told.json();
    assert_eq!(
        (&told["forgotten"], &told["complete"]),
        (&20.into(), &true.into())
    );
    let audit = writable.audit();
    let last = audit.last().unwrap();
    assert_eq!(last["target"], "bucket/own/per-client/*");
    assert_eq!(last["before"]["buckets"], 20);
}

#[tokio::test]
async fn meaningless_bucket_requests_are_rejected() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for body in [
        json!({}),
        json!({ "limit": "nobody" }),
        json!({ "policy": "nobody", "limit": "per-client" }),
        json!({ "limit": "per-client" }),
        json!({ "limit": "per-client", "key": { "ip": "nowhere" } }),
        json!({ "limit": "per-client", "key": { "ip": "192.0.2.1" }, "band": "none" }),
        json!({ "limit": "per-client", "key": [1] }),
        json!({ "limit": "per-client", "key": { "ip": 1 } }),
        json!({ "bucket": "own/per-client/ip:192.0.2.1", "limit": "per-client" }),
        json!({ "bucket": "x" }),
        json!({ "bucket": 1 }),
        json!({ "limit": "per-client", "key": { "ip": "192.0.2.1" }, "more": 1 }),
    ] {
        for what in ["inspect", "reset"] {
            let reply = buckets(server, what, &body).await;
            assert_eq!(reply.status, 422, "{what} {body}: {}", reply.body);
        }
    }
    for body in [
        json!({ "all": true }),
        json!({ "all": true, "limit": "per-client", "band": "x" }),
        json!({ "all": "yes", "limit": "per-client" }),
    ] {
        assert_eq!(buckets(server, "reset", &body).await.status, 422, "{body}");
    }
}

#[tokio::test]
async fn in_memory_buckets_can_be_inspected_and_reset() {
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: each, key: ip, rate: 1/h burst 2 }}] }}]
{}",
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    assert!(asks(&server, "192.0.2.1").await && asks(&server, "192.0.2.1").await);
    assert!(!asks(&server, "192.0.2.1").await);
    let whose = json!({ "limit": "each", "key": { "ip": "192.0.2.1" } });
    let call = server
        .call("POST", "/buckets/inspect")
        .by(READ)
        .json(&whose.to_string());
    let seen = call.send().await;
    assert_eq!(seen.status, 200, "{}", seen.body);
    assert_eq!(seen.json()["bands"][0]["remaining"], 0);
    assert_eq!(
        buckets(&server, "reset", &whose).await.json()["forgotten"],
        1
    );
    assert!(asks(&server, "192.0.2.1").await);
    let all = json!({ "limit": "each", "all": true });
    assert_eq!(buckets(&server, "reset", &all).await.status, 422);
}

#[tokio::test]
async fn a_client_sharing_an_overflow_bucket_was_reported_as_full() {
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: memory, max_keys: 16 }}
policies: [{{ name: api, limits: [{{ name: each, key: ip, rate: 1/h burst 2 }}] }}]
{}",
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let mut overflowed = None;
    for nth in 0..1_000 {
        let ip = format!("10.{}.{}.1", nth / 200, nth % 200);
        asks(&server, &ip).await;
        let whose = json!({ "limit": "each", "key": { "ip": ip } });
        let seen = buckets(&server, "inspect", &whose).await.json();
        if seen["found"] == false {
            overflowed = Some((whose, seen));
            break;
        }
        assert!(seen["note"].is_null(), "{seen}");
    }
    let (whose, seen) = overflowed.expect("a full store");
    let reset = buckets(&server, "reset", &whose).await.json();
    for said in [seen, reset] {
        let note = said["note"].as_str().unwrap();
        assert!(note.contains("overflow buckets"), "{said}");
    }
}
