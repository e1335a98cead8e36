//! An object that another one refers to cannot be removed.

use super::kit::{ADMIN, AdminServer, WritableServer, admin};
use crate::kit::Reply;
use crate::kit::folder::Folder;
use serde_json::json;
use tidegate_testkit::redis::Server;

async fn remove(server: &AdminServer, path: &str) -> Reply {
    let call = server.call("DELETE", path).by(ADMIN);
    call.header("if-match", "*").send().await
}

fn is_used(reply: &Reply, by: &str) {
    assert_eq!(reply.status, 409, "{}", reply.body);
    let problem = reply.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(by), "{detail}");
}

#[tokio::test]
async fn a_limit_replaced_by_another_cannot_be_deleted() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let policy = json!({ "name": "api", "limits": [
        { "name": "everyone", "key": "ip", "rate": "1/s" },
        { "name": "partners", "key": "user", "rate": "9/s", "replaces": ["everyone"] },
    ]});
    let made = server.change("POST", "/policies", &policy).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let (limit, _) = server.seen("/policies/api/limits/everyone").await;
    assert_eq!(
        limit["used_by"],
        json!([{ "kind": "limit", "name": "partners" }])
    );
    is_used(
        &remove(server, "/policies/api/limits/everyone").await,
        "limit `partners`",
    );
    let (limit, _) = server.seen("/policies/api/limits/everyone").await;
    assert_eq!(limit["document"]["rate"], "1/s", "it is there: {limit}");
    let path = "/policies/api/limits/partners";
    let without = server
        .change("PATCH", path, &json!({ "replaces": null }))
        .await;
    assert_eq!(without.status, 200, "{}", without.body);
    let gone = remove(server, "/policies/api/limits/everyone").await;
    assert_eq!(gone.status, 204, "{}", gone.body);
}

#[tokio::test]
async fn a_guard_with_active_bans_cannot_be_deleted() {
    let (redis, folder) = (Server::start(), Folder::make());
    for name in ["bans", "others"] {
        let guard = json!({ "name": name, "deny": "ip", "redis": { "set": name } });
        let field = format!("guard/{name}");
        let hash = ["HSET", "tidegate:policies", &field, &guard.to_string()];
        redis.command(&hash).int();
    }
    redis
        .command(&["HSET", "tidegate:policies", "version", "1"])
        .int();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{}', timeout: 10s }}
sources: [{{ redis: {{ key: 'tidegate:policies' }}, refresh: 1s }}]
addresses: {{ threshold: 1000000, ban: {{ guard: bans, for: 1h }} }}
policies: [{{ name: own, limits: [{{ name: all, rate: 1/s }}] }}]
{}",
        redis.url(),
        admin("")
    );
    let file = folder.write("tidegate.yaml", config);
    let server = AdminServer::start(&file).await;
    is_used(&remove(&server, "/guards/bans").await, "`addresses.ban`");
    let (guard, _) = server.seen("/guards/bans").await;
    assert_eq!(guard["source"], "redis", "it is there: {guard}");
    // An equal object without references is removed.
    let gone = remove(&server, "/guards/others").await;
    assert_eq!(gone.status, 204, "{}", gone.body);
}
