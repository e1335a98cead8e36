use super::kit::{ADMIN, OPERATE, READ, WritableServer};
use crate::kit::post;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

fn policy(name: &str) -> Value {
    json!({ "name": name, "limits": [{ "name": "all", "key": "ip", "rate": "1/min burst 2" }] })
}

async fn asks(server: &super::kit::AdminServer, policy: &str) -> u16 {
    let question = json!({ "ip": "192.0.2.1", "policy": policy, "path": "/" });
    let reply = post(server.http, &question.to_string()).await;
    match reply.status {
        200 if reply.is_allowed() => 200,
        200 => 429,
        status => status,
    }
}

#[tokio::test]
async fn a_policy_is_created_applied_changed_and_deleted() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    assert_eq!(asks(server, "api").await, 400);
    assert_eq!(
        server
            .change("POST", "/policies", &policy("api"))
            .await
            .status,
        201
    );
    assert_eq!(
        server
            .change("POST", "/policies", &policy("api"))
            .await
            .status,
        409
    );
    let asked = [
        asks(server, "api").await,
        asks(server, "api").await,
        asks(server, "api").await,
    ];
    assert_eq!(asked, [200, 200, 429]);

    let (item, _) = server.seen("/policies/api").await;
    assert_eq!(
        (&item["source"], &item["writable"]),
        (&"redis".into(), &true.into())
    );
    let renamed = server
        .change("PATCH", "/policies/api", &json!({ "name": "x" }))
        .await;
    assert_eq!(renamed.status, 422, "{}", renamed.body);
    let more = json!({ "limits": [{ "name": "all", "key": "ip", "rate": "100/min" }] });
    assert_eq!(
        server.change("PATCH", "/policies/api", &more).await.status,
        200
    );
    // The bucket stays, and refills at its new rate.
    while asks(server, "api").await != 200 {}

    let gone = server
        .call("DELETE", "/policies/api")
        .by(ADMIN)
        .header("if-match", "*");
    let gone = gone.send().await;
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
    assert_eq!(server.get("/policies/api").await.status, 404);
    assert_eq!(asks(server, "api").await, 400);
}

#[tokio::test]
async fn a_change_reaches_other_instances_in_time() {
    let writable = WritableServer::start().await;
    let other = writable.another().await;
    assert_eq!(
        writable
            .server
            .change("POST", "/policies", &policy("api"))
            .await
            .status,
        201
    );
    let heard = async {
        while asks(&other, "api").await == 400 {}
        while other.get("/policies/api").await.status == 404 {}
    };
    let heard = timeout(Duration::from_secs(5), heard).await;
    assert!(heard.is_ok(), "it took too long");
    let (here, _) = writable.server.seen("/policies/api").await;
    let (there, _) = other.seen("/policies/api").await;
    assert_eq!(here, there);
}

#[tokio::test]
async fn limits_are_added_changed_switched_and_removed() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    server.change("POST", "/policies", &policy("api")).await;
    let limit = json!({ "name": "each", "key": "user", "rate": "5/s" });
    let added = server.change("POST", "/policies/api/limits", &limit).await;
    assert_eq!(added.status, 201, "{}", added.body);
    assert_eq!(
        added.header("location"),
        Some("/admin/v1/policies/api/limits/each")
    );
    assert_eq!(
        server
            .change("POST", "/policies/api/limits", &limit)
            .await
            .status,
        409
    );
    let changed = json!({ "rate": "6/s", "key": null });
    let changed = server
        .change("PATCH", "/policies/api/limits/each", &changed)
        .await;
    assert_eq!(
        changed.json()["document"],
        json!({ "name": "each", "rate": "6/s" })
    );

    for mode in ["shadow", "off", "enforce"] {
        let body = json!({ "mode": mode }).to_string();
        let path = "/policies/api/limits/all/mode";
        let call = server.call("PUT", path).by(OPERATE).header("if-match", "*");
        let turned = call.json(&body).send().await;
        assert_eq!(turned.status, 200, "{}", turned.body);
        assert_eq!(turned.json()["mode"], mode);
    }
    let off = json!({ "mode": "off" });
    assert_eq!(
        server
            .change("PUT", "/policies/api/mode", &off)
            .await
            .status,
        200
    );
    let asked = [
        asks(server, "api").await,
        asks(server, "api").await,
        asks(server, "api").await,
    ];
    assert_eq!(asked, [200, 200, 200]);
    let off = server.get("/limits?mode=off").await.json();
    assert_eq!(off["total"], 2);
    let wrong = server
        .change("PUT", "/policies/api/mode", &json!({ "mode": "maybe" }))
        .await;
    assert_eq!(wrong.status, 422);

    let gone = server
        .change("DELETE", "/policies/api/limits/each", &Value::Null)
        .await;
    assert_eq!(gone.status, 400, "a body has no meaning here");
    let call = server.call("DELETE", "/policies/api/limits/each").by(ADMIN);
    assert_eq!(call.header("if-match", "*").send().await.status, 204);
    assert_eq!(server.get("/policies/api/limits/each").await.status, 404);
}

#[tokio::test]
async fn a_policy_used_by_a_route_cannot_be_deleted() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    server.change("POST", "/policies", &policy("api")).await;
    let route = json!({
        "name": "shop", "upstreams": ["http://127.0.0.1:1"], "match": { "path": "/shop" },
        "policy": ["own", "api"],
    });
    let made = server.change("POST", "/routes", &route).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let (item, _) = server.seen("/policies/api").await;
    assert_eq!(
        item["used_by"],
        json!([{ "kind": "route", "name": "shop" }])
    );
    let remove = || {
        server
            .call("DELETE", "/policies/api")
            .by(ADMIN)
            .header("if-match", "*")
    };
    let used = remove().send().await;
    assert_eq!(used.status, 409);
    assert!(
        used.json()["detail"]
            .as_str()
            .unwrap()
            .contains("route `shop`"),
        "{}",
        used.body
    );

    let (limit, _) = server.seen("/policies/api/limits/all").await;
    assert_eq!(limit["used_by"], item["used_by"]);

    let unknown = json!({ "policy": "nobody" });
    let unknown = server.change("PUT", "/routes/shop/policy", &unknown).await;
    assert_eq!(unknown.status, 422, "{}", unknown.body);
    let assigned = server
        .change("PUT", "/routes/shop/policy", &json!({ "policy": "own" }))
        .await;
    assert_eq!(assigned.json()["document"]["policy"], "own");
    assert_eq!(remove().send().await.status, 204);
    let cleared = server
        .change("PUT", "/routes/shop/policy", &json!({ "policy": null }))
        .await;
    assert_eq!(cleared.json()["document"].get("policy"), None);
}

#[tokio::test]
async fn a_guard_holding_bans_cannot_be_deleted() {
    let writable = WritableServer::start().await;
    let (item, _) = writable.server.seen("/guards/bans").await;
    assert_eq!(
        item["used_by"],
        json!([{ "kind": "setting", "name": "addresses.ban" }])
    );
}

#[tokio::test]
async fn guards_are_created_switched_and_deleted() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let guard = json!({ "name": "mine", "deny": "ip", "list": ["192.0.2.1"] });
    assert_eq!(server.change("POST", "/guards", &guard).await.status, 201);
    assert_eq!(asks(server, "own").await, 429);
    let turned = server
        .change("PUT", "/guards/mine/mode", &json!({ "mode": "shadow" }))
        .await;
    assert_eq!(turned.json()["document"]["mode"], "shadow");
    assert_eq!(asks(server, "own").await, 200);
    let call = server
        .call("DELETE", "/guards/mine")
        .by(ADMIN)
        .header("if-match", "*");
    assert_eq!(call.send().await.status, 204);
}

#[tokio::test]
async fn lists_are_paged_and_filtered_by_name() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for nth in 0..5 {
        let made = server
            .change("POST", "/policies", &policy(&format!("p{nth}")))
            .await;
        assert_eq!(made.status, 201);
    }
    let page = server.get("/policies?limit=2&offset=1").await.json();
    let names = page["items"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["p0", "p1"]);
    assert_eq!((&page["total"], &page["offset"]), (&6.into(), &1.into()));
    let some = server.get("/policies?name=p").await.json();
    assert_eq!(some["total"], 5);
    let some = server.get("/policies?source=redis&limit=1").await.json();
    assert_eq!(
        (&some["total"], some["items"].as_array().unwrap().len()),
        (&5.into(), 1)
    );
    let limits = server.get("/limits?policy=own&mode=shadow").await.json();
    assert_eq!(limits["items"][0]["name"], "watched");
    let call = server.call("GET", "/policies?limit=0&size=3").by(READ);
    let wrong = call.send().await;
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.json()["errors"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn secrets_are_not_shown_and_survive_other_changes() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let made = json!({
        "name": "api",
        "limits": [{
            "name": "all", "rate": "1/min",
            "match": { "headers": { "X-Api-Key": "hunter2" } },
        }],
    });
    assert_eq!(server.change("POST", "/policies", &made).await.status, 201);
    let (item, _) = server.seen("/policies/api").await;
    assert!(!item.to_string().contains("hunter2"), "{item}");
    let path = "/policies/api/limits/all";
    let changed = server
        .change("PATCH", path, &json!({ "rate": "2/min" }))
        .await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let kept = writable
        .redis
        .client()
        .command(&["HGET", "tidegate:policies", "policy/api"]);
    assert!(
        kept.text().contains("hunter2") && kept.text().contains("2/min"),
        "{kept:?}"
    );
    // A masked value in a change must not overwrite the secret.
    let masked = json!({ "match": item["document"]["limits"][0]["match"] });
    let masked = server.change("PATCH", path, &masked).await;
    assert_eq!(masked.status, 422, "{}", masked.body);
    let audit = writable.audit();
    assert!(!json!(audit).to_string().contains("hunter2"), "{audit:?}");
}
